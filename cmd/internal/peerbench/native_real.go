package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The programs that do what people write, in Go by hand: structs for records, the
// standard library for its formats, and cents for decimals.

func init() {
	for name, f := range map[string]func(n int) int{
		"invoices": invoices, "logs": logs, "join": join, "json": jsonThereAndBack, "csv": csvThereAndBack, "words": countWords,
		"decimals": account, "schedule": schedule, "texttable": textTable, "diff": diff, "histogram": histogram, "regex": extract,
	} {
		native[name] = func(a []int64) int64 { return int64(f(int(a[0]))) }
	}
}

func invoices(n int) int {
	type line struct{ price, qty int }
	type invoice struct {
		customer string
		rate     int
		lines    []line
	}
	all := make([]invoice, n)
	for i := range all {
		v := invoice{customer: "c" + strconv.Itoa(i*7%97), rate: 19, lines: make([]line, 1+i%5)}
		if i%3 == 0 {
			v.rate = 7
		}
		for j := range v.lines {
			v.lines[j] = line{199 + (i*37+j*91)%9800, 1 + (i+j)%4}
		}
		all[i] = v
	}
	owed := map[string]int{}
	for _, v := range all {
		net := 0
		for _, l := range v.lines {
			net += l.price * l.qty
		}
		reduced := net * 100
		if net > 10000 {
			reduced = net * 95
		}
		owed[v.customer] += (reduced*(100+v.rate) + 5000) / 10000
	}
	sum := 0
	for _, x := range owed {
		sum += x
	}
	return sum
}

func logs(n int) int {
	levels := []string{"INFO", "WARN", "ERROR", "DEBUG", "INFO"}
	paths := []string{"/", "/login", "/api/orders", "/api/items", "/search", "/static/app.js", "/help"}
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("2026-01-%d %s %s %dms", 10+i%20, levels[i*13%5], paths[i*31%7], i*7919%1500)
	}
	type entry struct {
		level, path string
		ms          int
	}
	type stat struct {
		path                  string
		calls, slowest, total int
	}
	groups, errors := map[string][]entry{}, 0
	for _, l := range strings.Split(strings.Join(out, "\n"), "\n") {
		parts := strings.Split(l, " ")
		ms, _ := strconv.Atoi(strings.ReplaceAll(parts[3], "ms", ""))
		groups[parts[2]] = append(groups[parts[2]], entry{parts[1], parts[2], ms})
		if parts[1] == "ERROR" {
			errors++
		}
	}
	var stats []stat
	for path, es := range groups {
		s := stat{path: path, calls: len(es)}
		for _, e := range es {
			s.slowest = max(s.slowest, e.ms)
			s.total += e.ms
		}
		stats = append(stats, s)
	}
	slices.SortFunc(stats, func(a, b stat) int { return b.total - a.total })
	sum := errors * 1000
	for _, s := range stats[:3] {
		sum += s.total/s.calls + s.slowest + len(s.path)
	}
	return sum
}

func join(n int) int {
	type customer struct {
		id           int
		name, region string
	}
	type order struct {
		id, customer, amount int
		name, region         string
	}
	byID := map[int]customer{}
	for i := range 1000 {
		byID[i] = customer{i, "customer " + strconv.Itoa(i), []string{"north", "south", "east", "west"}[i%4]}
	}
	orders := make([]order, n)
	for i := range orders {
		orders[i] = order{id: i, customer: i * 7919 % 1000, amount: i * 31 % 500}
	}
	var joined []order
	for _, o := range orders {
		if o.amount >= 50 {
			c := byID[o.customer]
			o.name, o.region = c.name, c.region
			joined = append(joined, o)
		}
	}
	groups := map[string][]order{}
	for _, o := range joined {
		groups[o.region] = append(groups[o.region], o)
	}
	sum := 0
	for _, os := range groups {
		sum += len(os)
		for _, o := range os {
			sum += o.amount
		}
	}
	slices.SortStableFunc(joined, func(a, b order) int { return b.amount - a.amount })
	for _, o := range joined[:min(10, len(joined))] {
		sum += o.id + len(o.name)
	}
	return sum
}

func jsonThereAndBack(n int) int {
	type item struct {
		ID    int      `json:"id"`
		Name  string   `json:"name"`
		On    bool     `json:"on"`
		Price int      `json:"price"`
		Tags  []string `json:"tags"`
	}
	type document struct {
		Items []item `json:"items"`
	}
	out := document{Items: make([]item, n)}
	for i := range out.Items {
		out.Items[i] = item{i, "item " + strconv.Itoa(i), i%2 == 0, 5 + i%100, []string{"new", "a \"b\"\n"}}
	}
	text, _ := json.Marshal(out)
	var doc, changed document
	if err := json.Unmarshal(text, &doc); err != nil {
		return -1
	}
	sum := len(text)
	for _, x := range doc.Items {
		sum += x.Price
		if x.On {
			x.Price++
			changed.Items = append(changed.Items, x)
		}
	}
	text, _ = json.Marshal(changed)
	return sum + len(text)
}

func csvThereAndBack(n int) int {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	w.Write([]string{"id", "kind", "name", "qty"})
	for i := range n {
		name := "no. " + strconv.Itoa(i)
		if i%5 == 0 {
			name += `, "new"`
		}
		w.Write([]string{strconv.Itoa(i), []string{"tool", "toy", "book"}[i%3], name, strconv.Itoa(i * 17 % 100)})
	}
	w.Flush()
	sum := out.Len()
	rows, _ := csv.NewReader(&out).ReadAll()
	kinds := map[string]int{}
	for _, r := range rows[1:] {
		qty, _ := strconv.Atoi(r[3])
		kinds[r[1]] += qty
		sum += len(r[2])
	}
	for _, x := range kinds {
		sum += x
	}
	return sum
}

func countWords(n int) int {
	stock := []string{"The", "quick", "brown", "fox", "jumps", "over", "lazy", "dog", "And", "then", "sleeps", "in", "a", "warm", "Place", "until", "the", "morning", "comes"}
	out := make([]string, n)
	for i := range out {
		out[i] = stock[(i*i+i*7)%1013%19]
	}
	counts := map[string]int{}
	for _, w := range strings.Fields(strings.ToLower(strings.Join(out, " "))) {
		counts[w]++
	}
	var all []string
	for w := range counts {
		all = append(all, w)
	}
	slices.Sort(all)
	slices.SortStableFunc(all, func(a, b string) int { return counts[b] - counts[a] })
	sum := len(all) * 1000000
	for _, w := range all[:min(10, len(all))] {
		sum += counts[w] * len(w)
	}
	return sum
}

func account(n int) int {
	balance := 100000
	for day := range n {
		paid := 25
		if day%30 == 0 {
			paid = 1250
		}
		balance += (balance*5+5000)/10000 - (balance*4+5000)/10000 + paid
	}
	return balance
}

func schedule(n int) int {
	type meeting struct {
		who        string
		start, end int
	}
	type gap struct{ from, to int }
	groups := map[string][]meeting{}
	for i := range n {
		start, who := i*7919%100000, "p"+strconv.Itoa(i%17)
		groups[who] = append(groups[who], meeting{who, start, start + 5 + i%50})
	}
	var gaps []gap
	for _, ms := range groups {
		slices.SortStableFunc(ms, func(a, b meeting) int { return a.start - b.start })
		until := 0
		for _, m := range ms {
			if m.start > until {
				gaps = append(gaps, gap{until, m.start})
				until = m.end
			} else {
				until = max(until, m.end)
			}
		}
	}
	shown, sum := make([]string, len(gaps)), 0
	for i, g := range gaps {
		shown[i] = fmt.Sprintf("%04d:%02d-%04d:%02d", g.from/60, g.from%60, g.to/60, g.to%60)
		sum += g.to - g.from
	}
	return sum + len(strings.Join(shown, ", "))
}

func textTable(n int) int {
	cells, widths := make([][4]string, n), [4]int{}
	for i := range cells {
		cells[i] = [4]string{"item " + strconv.Itoa(i*i%1000), strconv.Itoa(i % 250), strconv.Itoa(i * 7919 % 100000), "no"}
		if i%2 == 0 {
			cells[i][3] = "yes"
		}
		for k, c := range cells[i] {
			widths[k] = max(widths[k], len(c))
		}
	}
	var out strings.Builder
	for i, row := range cells {
		if i > 0 {
			out.WriteByte('\n')
		}
		for k, c := range row {
			if k > 0 {
				out.WriteString(" | ")
			}
			out.WriteString(c)
			for range widths[k] - len(c) {
				out.WriteByte(' ')
			}
		}
	}
	return out.Len() + widths[0] + widths[1] + widths[2] + widths[3]
}

func diff(n int) int {
	a, b, table := make([]string, n), make([]string, n), make([][]int, n+1)
	for i := range n {
		a[i], b[i] = "line "+strconv.Itoa(i*7%50), "line "+strconv.Itoa(i*11%60)
	}
	table[0] = make([]int, n+1)
	for i, x := range a {
		row := make([]int, n+1)
		for j, y := range b {
			if x == y {
				row[j+1] = table[i][j] + 1
			} else {
				row[j+1] = max(row[j], table[i][j+1])
			}
		}
		table[i+1] = row
	}
	var out []string
	for i, j := n, n; i > 0 || j > 0; {
		switch {
		case i > 0 && j > 0 && a[i-1] == b[j-1]:
			i, j = i-1, j-1
			out = append(out, "  "+a[i])
		case j > 0 && (i == 0 || table[i][j-1] >= table[i-1][j]):
			j--
			out = append(out, "+ "+b[j])
		default:
			i--
			out = append(out, "- "+a[i])
		}
	}
	slices.Reverse(out)
	return len(strings.Join(out, "\n"))*1000 + table[n][n]
}

func histogram(n int) int {
	xs, bins, sum, spread, most := make([]int, n), map[int]int{}, 0, 0, 0
	for i := range xs {
		x := i*7919%1000 + i*i%997
		xs[i] = x
		bins[x/100]++
		sum += x
	}
	var bars []string
	for _, c := range bins {
		most = max(most, c)
	}
	for bin, c := range bins {
		bars = append(bars, fmt.Sprintf("%3d %s", bin, strings.Repeat("#", c*50/most)))
	}
	mean := sum / n
	for _, x := range xs {
		spread += (x - mean) * (x - mean)
	}
	slices.Sort(xs)
	return len(strings.Join(bars, "\n"))*1000000 + xs[n/2]*1000 + mean + spread/n
}

var (
	pairPattern = regexp.MustCompile(`(\w+)=(\w+)`)
	datePattern = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}`)
	userPattern = regexp.MustCompile(`user=\w+`)
)

func extract(n int) int {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "on 2026-%d-%d user=u%d cost=%d ok; ", 10+i%3, 10+i%19, i%100, i*37%1000)
	}
	text, costs, dates := out.String(), 0, map[string]bool{}
	for _, p := range pairPattern.FindAllStringSubmatch(text, -1) {
		if p[1] == "cost" {
			x, _ := strconv.Atoi(p[2])
			costs += x
		}
	}
	for _, d := range datePattern.FindAllString(text, -1) {
		dates[d] = true
	}
	return costs + len(dates)*1000000 + len(userPattern.ReplaceAllString(text, "user=*"))
}

// The six programs this folder adds to the eleven it was given.

func nqueens(n int64) int64 { return queens(n, nil, upTo(n)) }

// cell is a cons cell of integers; nil is the empty list.
type cell struct {
	head int64
	tail *cell
}

func queens(k int64, qs *cell, cols []int64) int64 {
	if k == 0 {
		return 1
	}
	return fold(func(acc, c int64) int64 {
		if safe(c, qs) {
			return acc + queens(k-1, &cell{c, qs}, cols)
		}
		return acc
	}, 0, cols)
}

func safe(c int64, qs *cell) bool {
	for d := int64(1); qs != nil; d++ {
		q := qs.head
		if q == c || q == c+d || q == c-d {
			return false
		}
		qs = qs.tail
	}
	return true
}

type tally = pair[int64, int64]

func hanoi(n int64) int64 {
	st := towers(n, 1, 2, 3, tally{0, 7})
	return st.fst*1000003 + st.snd
}

func towers(n, a, b, c int64, st tally) tally {
	for n != 0 {
		st = towers(n-1, a, c, b, st)
		st = tally{st.fst + 1, (st.snd*31 + (a*3 + b)) % 1000003}
		n, a, c = n-1, c, a
	}
	return st
}

func mapFilter(n int64) int64 {
	scale := func(k int64) fun { return func(x int64) int64 { return x * k } }
	shift := func(k int64) fun { return func(x int64) int64 { return x + k } }
	keep := func(k int64) func(int64) bool { return func(x int64) bool { return x%k != 0 } }
	xs := mapList(shift(5), filter(keep(4), mapList(scale(3), upTo(n))))
	return fold(func(a, x int64) int64 { return (a*7 + x) % 1000003 }, 0, xs)
}

func evenOdd(n int64) int64 {
	acc := int64(0)
	for i := n; i != 0; i-- {
		acc += even(i)
	}
	return acc
}

func even(n int64) int64 {
	if n == 0 {
		return 1
	}
	return odd(n - 1)
}

func odd(n int64) int64 {
	if n == 0 {
		return 0
	}
	return even(n - 1)
}

// numeral is a Church numeral over integer functions; powers apply one to
// the numeral three, which PIF's untyped application writes as c(three).
type numeral func(fun) fun

func church(n int64) int64 {
	c := num(n)
	inc := func(i int64) int64 { return i + 1 }
	mult := func(f fun) fun { return c(c(f)) }
	return power(n, num(3))(inc)(0) + mult(inc)(0)
}

func num(k int64) numeral {
	if k == 0 {
		return func(fun) fun { return func(x int64) int64 { return x } }
	}
	m := num(k - 1)
	return func(f fun) fun { return func(x int64) int64 { return f(m(f)(x)) } }
}

// power is the numeral k applied to m: f ↦ m(m(…m(f))), k times.
func power(k int64, m numeral) numeral {
	if k == 0 {
		return func(f fun) fun { return f }
	}
	p := power(k-1, m)
	return func(f fun) fun { return m(p(f)) }
}

// tree is a leaf with a number, or an inner node with two subtrees; Go has no
// untagged union, so the depth decides which, as in the program.
type tree struct {
	fst, snd *tree
	leaf     int64
}

func trees(n int64) int64 { return sumTree(n, buildTree(n, 1)) }

func buildTree(d, i int64) *tree {
	if d == 0 {
		return &tree{leaf: i}
	}
	return &tree{fst: buildTree(d-1, i*2), snd: buildTree(d-1, i*2+1)}
}

func sumTree(d int64, t *tree) int64 {
	if d == 0 {
		return t.leaf
	}
	return sumTree(d-1, t.fst) + sumTree(d-1, t.snd)
}
