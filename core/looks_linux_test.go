package core

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// What the worst uses of primitives are made from: as large as a run of 64 MiB and a
// billion steps can make it.
const (
	longText   = `let s = fold(p => fst(p) ++ fst(p), "añB ", range(0, 22)) in `
	escapes    = `let s = fold(p => fst(p) ++ fst(p), "\u0001\u0002", range(0, 20)) in `
	longList   = `let l = range(0, 2000000) in `
	chain      = `let l = fold(p => cons(snd(p), fst(p)), [], range(0, 700000)) in `
	deepPair   = `let v = fold(p => (fst(p), 1), 1, range(0, 700000)) in `
	sharedPair = `let v = fold(p => (fst(p), fst(p)), 1, range(0, 60)) in `
	shared24   = `let v = fold(p => (fst(p), fst(p)), 1, range(0, 22)) in `
	longInt    = `let n = fold(p => fst(p) * fst(p), 3, range(0, 22)) in `
	digits     = `let s = fold(p => fst(p) ++ fst(p), "7", range(0, 22)) in `
	manyKeys   = `let r = from_entries(map(i => (to_text(i), i), range(0, 200000))) in `
	aaaa       = `let s = fold(p => fst(p) ++ fst(p), "aaa", range(0, 23)) in let part = fold(p => fst(p) ++ "a", "", range(0, 30)) ++ "b" in `
	jsonLists  = `let s = fold(p => fst(p) ++ fst(p), "[1,2],", range(0, 17)) in let s = "[" ++ s ++ "0]" in `
	lines      = `let s = "a,b\n" ++ fold(p => fst(p) ++ fst(p), "1,2\n", range(0, 17)) in `
	jsonText   = `let s = "\"" ++ fold(p => fst(p) ++ fst(p), "\\u00e9", range(0, 21)) ++ "\"" in `
)

// worst is, for each primitive, programs that have it do much at once. What is not
// here takes a step's work whatever it is given.
var worst = map[string][]string{
	"add": {longInt + `n + n`}, "sub": {longInt + `n - 1`}, "mul": {longInt + `n * n`},
	"div": {longInt + `(n * n) / (n + 1)`}, "mod": {longInt + `mod(n * n, n + 1)`},
	"eq": {longInt + `eq(n, n + 1)`}, "lt": {longInt + `n < n + 1`}, "lte": {longInt + `n <= n + 1`}, "gt": {longInt + `n > n + 1`}, "gte": {longInt + `n >= n + 1`},
	"equal": {
		sharedPair + `equal(v, fold(p => (fst(p), fst(p)), 1, range(0, 60)))`, deepPair + `equal(v, fold(p => (fst(p), 1), 1, range(0, 700000)))`,
		longText + `equal(s, s ++ "a")`, longList + `equal(l, map(x => x, l))`,
	},
	"compare":  {sharedPair + `compare(v, v)`, deepPair + `compare(v, v)`, longText + `compare(s, s ++ "a")`},
	"contains": {longList + `contains(l, -1)`, longText + `contains(s, "zz")`, sharedPair + `contains([v, v, v], (v, 2))`, longText + `contains(map(i => s, range(0, 1000)), s ++ "a")`},
	"length":   {chain + `length(l)`}, "nth": {chain + `nth(l, 699999)`}, "set_nth": {chain + `set_nth(l, 699999, 1)`}, "push": {chain + `push(l, 1)`},
	"at":    {chain + `at(l, -1)`, chain + `at(l, 1, -1)`, longText + `at(s, -1)`, longText + `at(s, 1, -1)`},
	"slice": {chain + `slice(l, 1, 699999)`, longText + `slice(s, 1, 4000000)`},
	"range": {longList + `length(l)`}, "concat": {longText + `s ++ s`},
	"split": {longText + `split(slice(s, 0, 2000000), " ")`, longText + `split(s, "zz")`, aaaa + `split(s, part)`}, "join": {`join(map(i => "a", range(0, 1000000)), "--")`},
	"chars": {longText + `chars(slice(s, 0, 400000))`}, "trim": {longText + `trim(s)`}, "upper": {longText + `upper(slice(s, 0, 15000000))`}, "lower": {longText + `lower(slice(s, 0, 15000000))`},
	"replace": {longText + `replace(s, "a", "bb")`, longText + `replace(s, "zz", "bb")`, aaaa + `replace(s, part, "")`}, "index_of": {longList + `index_of(l, -1)`, longText + `index_of(s ++ "zz", "zz")`, aaaa + `index_of(s, part)`},
	"starts_with": {longText + `starts_with(s, s)`}, "ends_with": {longText + `ends_with(s, s)`}, "parse_int": {digits + `parse_int(s)`},
	"to_text":    {shared24 + `to_text(v)`, deepPair + `to_text(v)`, longInt + `to_text(n)`, longText + `to_text([s])`, escapes + `to_text([s])`},
	"to_json":    {longText + `to_json([s])`, escapes + `to_json([s])`, longList + `to_json(l)`, longInt + `to_json(n)`},
	"parse_json": {jsonLists + `parse_json(s)`, jsonText + `parse_json(s)`, digits + `parse_json(s)`, `parse_json(lower("{" ++ join(map(i => to_json(to_text(mod(i * 7919, 1000003))) ++ ":1", range(0, 200000)), ",") ++ "}"))`},
	"keys":       {manyKeys + `keys(r)`}, "values": {manyKeys + `values(r)`}, "entries": {manyKeys + `entries(r)`}, "from_entries": {manyKeys + `from_entries(entries(r))`},
	"merge": {manyKeys + `merge(r, r)`}, "put": {manyKeys + `put(r, "a", 1)`}, "del": {manyKeys + `del(r, "1")`}, "get": {longText + `get({a: 1}, s, 2)`}, "has": {longText + `has({a: 1}, s)`},
	"raise":   {longInt + `try(raise(n))`, longText + `try(raise([s]))`, sharedPair + `try(raise(v))`, deepPair + `try(raise(v))`},
	"div_dec": {longInt + `try(div_dec(n, 7, 10, "floor"))`}, "ratio": {longInt + `try(ratio(n, 7))`}, "round_dec": {longInt + `try(round_dec(n, 2, "floor"))`}, "to_int": {longInt + `to_int(n, "floor")`}, "to_dec": {digits + `try(to_dec(s))`},
	"unique": {sharedPair + `unique([v, v, v])`}, "sort": {`sort(map(i => mod(i * 7919, 1000003), range(0, 300000)))`},
	"re_match": {longText + `re_match(s, "([a-zñ ]+)+zz")`, longText + `re_match(s, "zz")`, longText + `re_match(s, "[0-9]")`},
	"re_find":  {longText + `re_find(s, "(a?){40}(n|ñ){60}zz")`, longText + `re_find(slice(s, 0, 2000000), "(((.)*)*)*9")`, longText + `re_find(s, "(?:a|ñ|B| )*$")`}, "re_find_all": {longText + `re_find_all(slice(s, 0, 10000), "(?s)a.*z|a")`, aaaa + `length(re_find_all(slice(s, 0, 1000000), "a"))`},
	"re_replace": {longText + `re_replace(slice(s, 0, 1000000), "a", "$0$0")`, aaaa + `re_replace(slice(s, 0, 1000000), "(a)", "$1b")`, `let s = fold(p => fst(p) ++ fst(p), "${", range(0, 22)) in re_replace("b", "a", s)`, `let s = fold(p => fst(p) ++ fst(p), "$$", range(0, 18)) in re_replace("aaaaaaaa", "a", s)`}, "re_split": {longText + `re_split(slice(s, 0, 1000000), " ")`},
	"url_encode": {longText + `url_encode(slice(s, 0, 4000000))`}, "url_decode": {longText + `url_decode(s)`}, "base64_encode": {longText + `base64_encode(s)`}, "base64_decode": {longText + `base64_decode(base64_encode(slice(s, 0, 5000000)))`},
	"hex_encode": {longText + `hex_encode(slice(s, 0, 5000000))`}, "hex_decode": {longText + `hex_decode(hex_encode(slice(s, 0, 4000000)))`},
	"sha256": {longText + `sha256(s)`}, "hmac_sha256": {longText + `hmac_sha256(s, s)`}, "crc32": {longText + `crc32(s)`},
	"parse_csv": {longText + `try(parse_csv(s))`, lines + `parse_csv(s)`, `let s = "a\n\"" ++ fold(p => fst(p) ++ fst(p), "b \"\" c ", range(0, 20)) ++ "\"\n" in parse_csv(s)`},
	"to_csv":    {`to_csv(map(i => {a: i, b: "x,y"}, range(0, 100000)))`, longText + `to_csv([{a: s}])`, longInt + `to_csv([{a: n}])`, `let r = i => from_entries(map(j => (to_text(i * j), j), range(1, 100000))) in to_csv([r(1), r(-1)])`},
	"parse_url": {`let s = fold(p => fst(p) ++ fst(p), "a=%20&", range(0, 13)) in parse_url("?" ++ s)`}, "to_url": {`let s = fold(p => fst(p) ++ fst(p), "\u0001", range(0, 15)) in to_url({path: s})`},
	"pad_left": {`pad_left("a", 60000000, "é")`, longText + `pad_left(s, 17000000)`}, "pad_right": {`pad_right("a", 60000000)`}, "repeat_text": {`repeat_text("añ", 20000000)`},
	"title": {longText + `title(slice(s, 0, 15000000))`}, "words": {longText + `words(slice(s, 0, 2000000))`}, "codepoints": {longText + `codepoints(slice(s, 0, 1000000))`},
	"from_codepoints": {longList + `from_codepoints(map(i => 65 + mod(i, 50), l))`}, "to_json_indent": {longList + `to_json_indent(l, 2)`, `try(to_json_indent(fold(p => [fst(p)], 1, range(0, 700000)), 2))`},
	"last_index_of": {longText + `last_index_of(s, "zz")`, longList + `last_index_of(l, -1)`, aaaa + `last_index_of(s, part)`},
	"gcd":           {`gcd(pow(3, 40000), pow(7, 20000))`, longInt + `try(gcd(n, 7))`}, "bit_and": {longInt + `bit_and(n, n - 1)`}, "bit_or": {longInt + `bit_or(n, n - 1)`}, "bit_xor": {longInt + `bit_xor(n, n - 1)`},
	"shift": {`shift(1, 400000000)`, longInt + `shift(n, -1)`}, "to_base": {`to_base(pow(3, 40000), 7)`}, "from_base": {`from_base(repeat_text("z", 65536), 36)`},
	"sqrt": {`sqrt(pow(3, 8000), 200)`, `sqrt(2, 4096)`}, "format": {`format(pow(3, 40000), 4096, repeat_text("-", 1000))`},
	"to_data": {`to_data(` + quotedCode + `)`}, "to_code": {`to_code(to_data(` + quotedCode + `))`, sharedRecord + `try(to_code(r))`}, "analyze": {`analyze(` + quotedCode + `)`},
}

const quotedCode = `fold(p => to_code({op: "add", args: [to_data(fst(p)), to_data(fst(p))]}), '{1}, range(0, 12))`

const sharedRecord = `let r = fold(p => {op: "add", args: [fst(p), fst(p)]}, {op: "int", value: 1, args: []}, range(0, 60)) in `

// threadTime is the processor's time that the thread has used: what other processes
// take doesn't count.
func threadTime(t testing.TB) time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var used syscall.Rusage
	must.NoError(t, syscall.Getrusage(thread, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// longestSilence runs a program, and returns the longest time in which it could not
// have been stopped, and how it ended.
func longestSilence(t testing.TB, code string) (time.Duration, string) {
	t.Helper()
	p, err := CompileText("", []byte(code))
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	m := p.Start(Input{}, Budgets{Steps: 1_000_000_000}, nil)
	defer m.Release()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var longest time.Duration
	last := threadTime(t)
	look := func() bool {
		now := threadTime(t)
		longest = max(longest, now-last)
		last = now
		return false
	}
	for {
		s := m.RunUntil(100_000, look)
		look()
		switch s {
		case Failed:
			return longest, string(m.Fault().Kind)
		case Done:
			if _, f := m.EncodeUntil(256<<10, look); f != nil {
				return longest, string(f.Kind)
			}
			look()
			return longest, "done"
		}
	}
}

// BenchmarkLongestSilence reports for each primitive the longest time in which a run
// that does its worst could not be stopped.
func BenchmarkLongestSilence(b *testing.B) {
	for i := range prim.Table {
		name := prim.Table[i].Name
		for k, code := range worst[name] {
			b.Run(fmt.Sprintf("%s-%d", name, k), func(b *testing.B) {
				var longest time.Duration
				end := ""
				for b.Loop() {
					var d time.Duration
					d, end = longestSilence(b, code)
					longest = max(longest, d)
				}
				b.ReportMetric(float64(longest.Milliseconds()), "ms-silent")
				b.ReportMetric(0, "end="+end)
			})
		}
	}
}

// Every primitive has its worst measured, or takes the same work whatever it is given.
func TestWorstIsKnown(t *testing.T) {
	for i := range prim.Table {
		r := &prim.Table[i]
		if _, known := worst[r.Name]; !known && r.Operation() && (r.Walk != nil || r.Work != nil || r.Cost != nil) {
			t.Errorf("%s takes work that grows, and isn't measured", r.Name)
		}
	}
	for name := range worst {
		if _, _, ok := prim.Lookup(name); !ok {
			t.Errorf("%s is no primitive", name)
		}
		for _, code := range worst[name] {
			if _, err := CompileText("", []byte(code)); err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(code), err)
			}
		}
	}
}
