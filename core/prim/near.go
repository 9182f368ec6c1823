package prim

import (
	"slices"
	"strings"
)

// also is the rows by what people and models write where they mean them.
var also = alsoOf()

func alsoOf() map[string]string {
	m := map[string]string{}
	for i := range Table {
		for _, word := range Table[i].Also {
			if row, dup := m[word]; dup {
				panic("prim: " + row + " and " + Table[i].Name + " are also " + word)
			}
			m[word] = Table[i].Name
		}
	}
	return m
}

// absent is what other languages have and this one hasn't, so that nothing that is
// merely spelled like it is meant.
var absent = map[string]bool{
	"cbrt": true, "log": true, "log10": true, "exp": true, "sin": true, "cos": true, "tan": true, "random": true, "print": true,
	"md5": true, "sha1": true, "sha512": true, "hash": true,
	"ne": true, "neq": true, "not_equal": true, "noteq": true,
}

// Meant returns the operation that a word of other languages means, whatever it is
// spelled like; known is set, too, where it means none.
func Meant(word string) (name string, known bool) {
	word = strings.ToLower(word)
	if r, ok := also[word]; ok {
		return r, true
	}
	return "", absent[word] || instead[word] != ""
}

// instead is what to write for forms that other languages have and this one
// spells with its own.
var instead = map[string]string{
	"md5":    noHash,
	"sha1":   noHash,
	"sha512": noHash,
	"hash":   noHash,

	"fs.copy":       copyFile,
	"fs.cp":         copyFile,
	"fs.delete":     removeFile,
	"fs.unlink":     removeFile,
	"fs.rm":         removeFile,
	"fs.rename":     `write !fs.move({from: a, to: b})`,
	"fs.mv":         `write !fs.move({from: a, to: b})`,
	"fs.exists":     `write match try(!fs.stat(p)) { {ok: _} => true; {error: e} if contains(e.message, "not_found") => false }`,
	"fs.ls":         `write !fs.list(p)`,
	"fs.readdir":    `write !fs.list(p)`,
	"fs.read_file":  `write !fs.read(p)`,
	"fs.readfile":   `write !fs.read(p)`,
	"fs.write_file": `write !fs.write({path: p, content: s})`,
	"fs.writefile":  `write !fs.write({path: p, content: s})`,
	"kv.set":        `write !kv.put({key: k, value: v})`,
	"kv.has":        `write !kv.entry(k).version != 0`,
	"kv.exists":     `write !kv.entry(k).version != 0`,
	"kv.keys":       `write map(e => e.key, !kv.list({}))`,
	"kv.remove":     `write !kv.delete(k)`,
	"kv.incr":       `write !kv.put({key: k, value: !kv.get({key: k, default: 0}) + 1})`,
	"clock.time":    `write !clock.now({}).rfc3339`,
	"clock.today":   `write !clock.now({}).rfc3339[:10]`,

	"escape_html":      escapeHTML,
	"html_escape":      escapeHTML,
	"escapehtml":       escapeHTML,
	"htmlescape":       escapeHTML,
	"html.escape":      escapeHTML,
	"htmlspecialchars": escapeHTML,
	"uuid":             uuid,
	"uuid4":            uuid,
	"uuidv4":           uuid,
	"uuid.uuid4":       uuid,
	"random.uuid":      uuid,
	"random.int":       draws,
	"random.integer":   draws,
	"random.number":    draws,
	"random.random":    draws,
	"random.range":     draws,
	"random.randint":   draws,
	"randint":          draws,
	"random.choice":    `write xs[!random.seed({}) % length(xs)], an effect that a tool declares as random:seed`,
	"random.shuffle":   shuffle,
	"random.sample":    shuffle,
	"shuffle":          shuffle,
	"sample":           shuffle,
	"sleep":            `write !clock.sleep(500) for half a second, an effect that a tool declares as clock.sleep`,
	"http.get":         overHTTP,
	"http.post":        overHTTP,
	"http.request":     overHTTP,
	"requests.get":     overHTTP,
	"requests.post":    overHTTP,
	"env":              fromOutside,
	"getenv":           fromOutside,
	"par_map":          `write par(f(xs[0]), f(xs[1])) for two at once, a branch each; map(f, xs) does one after the other`,
	"pmap":             `write par(f(xs[0]), f(xs[1])) for two at once, a branch each; map(f, xs) does one after the other`,

	"ne":        Unequal,
	"neq":       Unequal,
	"not_equal": Unequal,
	"noteq":     Unequal,

	"to_entries":        `write entries(r): each entry is a pair (key, value), no record`,
	"number.isinteger":  `write type_of(x) == "int"`,
	"number.isnan":      `write match try(to_dec(s)) { {ok: n} => false; _ => true }`,
	"math.isqrt":        `write floor(sqrt(n))`,
	"math.gcd":          `write gcd(a, b)`,
	"math.lcm":          `write a * b / gcd(a, b)`,
	"statistics.median": `write median(xs)`,
	"statistics.mean":   `write mean(xs)`,
	"array.from":        `write chars(s) for a text's characters, map(f, range(0, n)) for what a function gives of the numbers below n`,
	"trimstart":         trimStart,
	"trim_start":        trimStart,
	"trimleft":          trimStart,
	"trim_left":         trimStart,
	"ltrim":             trimStart,
	"lstrip":            trimStart,
	"trimend":           trimEnd,
	"trim_end":          trimEnd,
	"trimright":         trimEnd,
	"trim_right":        trimEnd,
	"rtrim":             trimEnd,
	"rstrip":            trimEnd,
	"rem":               `write compare(a, 0) * (abs(a) % abs(b)) for what has the sign of a; a % b has that of b`,
	"remainder":         `write compare(a, 0) * (abs(a) % abs(b)) for what has the sign of a; a % b has that of b`,
	"quot":              `write to_int(div_dec(a, b, 0, "down"), "down"), which rounds towards 0; a / b rounds down`,
	"truncate":          `write to_int(x, "down") for a number, s[:n] for a text`,
	"scanl":             `write [init, ...scan(f, init, list)]`,
	"ascii_upcase":      `write upper(s)`,
	"ascii_downcase":    `write lower(s)`,
	"nub":               `write unique(xs)`,
	"span":              `write (take_while(f, xs), drop_while(f, xs))`,
	"replicate":         `write repeat(n, x) for a list, repeat_text(s, n) for a text`,
	"splitat":           `write (take(n, xs), drop(n, xs))`,
	"unwords":           `write join(xs, " ")`,
	"unlines":           `write join(xs, "\n")`,
	"sorton":            `write sort_by(f, xs)`,
	"lookup":            `write r[k] ?? null in a record, from_entries(pairs)[k] ?? null in a list of pairs`,
	"elem":              `write contains(xs, x)`,
	"notelem":           `write not contains(xs, x)`,
	"init":              `write xs[:-1]`,
	"intercalate":       `write join(xs, separator)`,
	"isprefixof":        `write starts_with(s, prefix)`,
	"issuffixof":        `write ends_with(s, suffix)`,
	"isinfixof":         `write contains(s, part)`,
	"iterate":           `write [x, ...scan((acc, _) => f(acc), x, range(0, n - 1))] for n values`,
	"flip":              `write (a, b) => f(b, a)`,
	"unzip":             `write (map(p => fst(p), pairs), map(p => snd(p), pairs))`,
	"order_by":          `write sort_by(x => x.k, xs)`,
	"limit":             `write take(n, xs)`,
	"having":            `write filter(x => x.n > 1, xs)`,
	"coalesce":          `write a ?? b`,
	"like":              `write contains(s, "a"), starts_with(s, "a") or ends_with(s, "a")`,
	"with_entries":      `write map_values(v => …, r), or from_entries(map((k, v) => (k, …), entries(r))): an entry is a pair, no record`,
	"lcm":               `write a * b / gcd(a, b)`,
	"isqrt":             `write floor(sqrt(n))`,
	"isnan":             `write match try(to_dec(s)) { {ok: n} => false; _ => true }`,
	"isinteger":         `write type_of(x) == "int"`,
	"next":              `write find(x => …, xs), null where there is none`,
	"divmod":            `write (a / b, a % b)`,
	"hex":               `write to_base(n, 16)`,
	"oct":               `write to_base(n, 8)`,
	"bin":               `write to_base(n, 2)`,
	"even":              `write n % 2 == 0`,
	"odd":               `write n % 2 == 1`,
	"foldr":             `write fold((acc, x) => …, init, reverse(list))`,
	"foldr1":            `write fold((acc, x) => …, init, reverse(list))`,
	"most_common":       `write sort_by(((k, n)) => -n, entries(count_by(x => x, xs)))[:3]`,

	"isnull":        `write x == null`,
	"is_null":       `write x == null`,
	"is_none":       `write x == null`,
	"sum_by":        `write sum(map(x => x.k, xs))`,
	"sumby":         `write sum(map(x => x.k, xs))`,
	"isdigit":       `write re_match(s, "^\\d+$")`,
	"isnumeric":     `write re_match(s, "^\\d+$")`,
	"isalpha":       `write re_match(s, "^[A-Za-z]+$")`,
	"isupper":       `write s == upper(s)`,
	"islower":       `write s == lower(s)`,
	"exp":           noPower,
	"log":           noPower,
	"log10":         noPower,
	"ln":            noPower,
	"sin":           angles,
	"cos":           angles,
	"tan":           angles,
	"pi":            angles,
	"radians":       angles,
	"asin":          arcs,
	"acos":          arcs,
	"atan":          arcs,
	"atan2":         arcs,
	"pop":           `write xs[-1] for the last item, xs[:-1] for those before it`,
	"mode":          `write max_by(x => count(y => y == x, xs), xs) for the item that is there most often`,
	"stdev":         spread,
	"stddev":        spread,
	"std":           spread,
	"stdevp":        spread,
	"pstdev":        spread,
	"variance":      spread,
	"var":           spread,
	"statistics":    spread,
	"clamp":         `write min(max(x, low), high)`,
	"sign":          `write compare(x, 0), which is -1, 0 or 1`,
	"isinstance":    `write type_of(x) == "string", or contains(["int", "dec"], type_of(x)) for a number; help type_of lists the kinds`,
	"percentile":    ranked,
	"quantile":      ranked,
	"iso_week":      week,
	"isoweek":       week,
	"week_of_year":  week,
	"week":          week,
	"number":        `write parse_int(s) for an integer, to_dec(s) for a decimal`,
	"boolean":       truth,
	"bool":          truth,
	"list":          `write [a, b], chars(s) for a text's characters, entries(r) for a record's pairs`,
	"array":         `write chars(s) for a text's characters, [a, b], range(0, n), repeat(n, 0) for copies, or type_of(x) == "list"`,
	"set":           `write unique(xs) for each value once, put(r, "k", v) for a record with a key`,
	"math":          `write floor(x), ceil(x), round(x), sqrt(x), pow(a, b), max(a, b), gcd(a, b), floor(sqrt(n)) for isqrt`,
	"json":          `write parse_json(s) and to_json(v)`,
	"object":        `write keys(r), values(r), entries(r), from_entries(pairs), {...a, ...b}`,
	"date":          asTexts,
	"datetime":      asTexts,
	"days_in_month": `write parse_time(add_time(add_time("2026-02-01", {months: 1}), {days: -1})).day`,
	"now":           asEffect,
	"time":          asEffect,
	"print":         asValue,
	"console":       asValue,
	"println":       asValue,
	"printf":        asValue,
	"echo":          asValue,
	"puts":          asValue,
	"sprintf":       `write text as in $"total: {n}", with format(n, 2) for digits after the point`,
	"sort_desc":     `write reverse(sort(xs))`,
	"is_array":      `write type_of(x) == "list"`,
	"isarray":       `write type_of(x) == "list"`,
	"today":         asEffect,
	"open":          `write !fs.read("a.txt") or !fs.write({path: "a.txt", content: "text"}), effects that a tool declares, as fs:./sandbox`,
	"random":        draws,
	"input":         asking,
	"prompt":        asking,
	"readline":      asking,
	"require":       `take it away: all operations are there without an import, and another tool is called with @name(x)`,
	"re":            `write re_match(s, pattern), re_find(s, pattern), re_find_all(s, pattern), re_replace(s, pattern, with) or re_split(s, pattern)`,
	"requests":      `write !fetch("https://example.com/a"), an effect that a tool declares as fetch.get:https://example.com/**`,
	"os":            fromOutside,
	"process":       fromOutside,
	"subprocess":    programs,
	"exec":          programs,
	"spawn":         programs,
	"popen":         programs,
	"system":        programs,
}

const (
	ranked   = `write sort(xs)[(length(xs) * 95 + 99) / 100 - 1] for the value that 95 % of xs don't exceed`
	angles   = `there is no trigonometry; write let pi = 3.141592653589793, sin = x => sum(map(k => ratio(pow(-1, k) * pow(round(x, 20), 2 * k + 1), product(range(1, 2 * k + 2))), range(0, 15))), cos = x => sin(x + pi / 2) for an x from -3 to 3, in radians`
	arcs     = `there is no trigonometry; write let atan = x => let h = fold((h, i) => ratio(h, 1 + sqrt(1 + h * h, 20)), x, range(0, 3)) in round(8 * sum(map(k => ratio(pow(-1, k) * pow(h, 2 * k + 1), 2 * k + 1), range(0, 12))), 15), asin = x => atan(ratio(x, sqrt(1 - x * x, 20)))`
	spread   = `write let m = mean(xs) in ratio(sum(map(x => (x - m) * (x - m), xs)), length(xs) - 1) for the variance of a sample (length(xs) for one of all), sqrt(V, 10) of it for the deviation`
	week     = `write let thu = add_time(t, {days: 3 - index_of(["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"], weekday(t))}) in floor(diff_time(format_time(thu, "YYYY-MM-DD"), $"{parse_time(thu).year}-01-01", "days") / 7) + 1 for the ISO week of t`
	truth    = "write a comparison, x != null or length(s) > 0: nothing but true is true"
	asTexts  = `dates are text: write parse_time(t).year, format_time(t, "YYYY-MM-DD"), add_time(t, {days: 1}), diff_time(a, b, "days") or weekday(t)`
	asValue  = `give what is to be shown as the value, text as in $"total: {n}"`
	asEffect = "write !clock.now({}), an effect that a tool declares as clock.now"
)

// What one seed is enough for: each number follows from that before it (Park and Miller, 1988).
const (
	draws   = `write !random.seed({}) % n for a number below n, an effect that a tool declares as random:seed; let seed = !random.seed({}) % 2147483646 + 1 in map(s => s % 6 + 1, scan((s, _) => s * 48271 % 2147483647, seed, range(0, 1000))) for 1,000 throws of a die from one seed`
	shuffle = `write let seed = !random.seed({}) % 2147483646 + 1 in map(p => snd(p), sort_by(p => fst(p), zip(scan((s, _) => s * 48271 % 2147483647, seed, xs), xs))) for xs in an order by chance, [:6] of it for six of them`
	uuid    = `write let h = pad_left(to_base(!random.seed({}), 16), 64, "0") in $"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:32]}", with an effect that a tool declares as random:seed`
)

const (
	escapeHTML = `write replace(replace(replace(replace(replace(s, "&", "&amp;"), "<", "&lt;"), ">", "&gt;"), "\"", "&quot;"), "'", "&#39;")`
	overHTTP   = `write !fetch.request({method: "get", url: u}).json, .body for text, {method: "post", url: u, json: v} to send, effects that a tool declares as fetch.get:https://example.com/** and fetch.post:…`
)

const (
	asking      = `write !ask.user("how many?"), an effect that a tool declares as ask`
	programs    = `a tool drives programs that the operator names, as !proc.start("python3"): ask help for proc`
	fromOutside = `write !env.get("LANG") for a variable that the operator grants, as env:LANG, and !fs.list({}) for a folder's files`
)

// Weekends is how a weekday is asked for, which is no number.
const Weekends = `weekday gives a name: write contains(["Saturday", "Sunday"], weekday(t)).`

// Unequal is what [Instead] says of a name for !=.
const Unequal = "write a != b, which is not(equal(a, b))"

// noPower has code for what there is no operation for, to about 12 digits.
const noPower = "exact numbers have no exp, log or power with a fraction; write let " + powers + " in exp(b * ln(a)) for a to the power of b, ratio(ln(x), ln(10)) for log10; sqrt(x, digits) is the square root"

const powers = `ln = x => let h = fold((h, i) => sqrt(h, 40), x, range(0, 8)), z = ratio(h - 1, h + 1) in round(512 * sum(map(k => ratio(pow(z, 2 * k + 1), 2 * k + 1), range(0, 6))), 12), exp = x => round(fold((p, i) => round(p * p, 40), sum(map(k => ratio(pow(ratio(x, 256), k), product(range(1, k + 1))), range(0, 16))), range(0, 8)), 10)`

const (
	trimStart = `write re_replace(s, "^\\s+", "")`
	trimEnd   = `write re_replace(s, "\\s+$", "")`
)

// What files have no operation of that name for.
const (
	copyFile   = `write !fs.write({path: to, content: !fs.read(from)}); of what is no text {path: from, encoding: "base64"} is read and written`
	removeFile = `write !fs.remove(p)`
)

const noHash = "use sha256, hmac_sha256 or crc32, the only hashes"

// Instead returns an imperative sentence on how to write what an unknown operation
// of that name usually means; empty if there is nothing to say.
func Instead(name string) string { return instead[strings.ToLower(name)] }

// Nearest returns the operation that an unknown name most likely means: its spelling
// in another case, a word for the same thing, or the name with the fewest differing
// letters; empty if none is near.
func Nearest(name string) string {
	for i := range Table {
		if r := &Table[i]; r.Operation() && strings.EqualFold(r.Name, name) {
			return r.Name
		}
	}
	if r, ok := Meant(name); ok {
		return r
	}
	names := make([]string, 0, len(Table))
	for i := range Table {
		if Table[i].Operation() {
			names = append(names, Table[i].Name)
		}
	}
	word := strings.ToLower(name)
	for _, kind := range ofKind {
		for _, bare := range [...]string{strings.TrimPrefix(word, kind), strings.TrimSuffix(strings.TrimSuffix(word, "s"), kind)} {
			bare = strings.Trim(bare, "_")
			if r := also[bare]; r != "" {
				return r
			} else if slices.Contains(names, bare) {
				return bare
			}
		}
	}
	return Closest(name, names)
}

// ofKind is what names say that they take, as in str_split, jsonParse and sort_list.
var ofKind = [...]string{"string", "str", "text", "list", "array", "json", "dict", "object", "record", "math"}

// minPrefix is how many letters two words begin with at least, of names that are alike.
const minPrefix = 4

// beginsAs returns the name of the list each of whose words, between its _, is that
// of the given name or begins as it does; empty if there is none, or the name is one
// word.
func beginsAs(name string, names []string) string {
	words := strings.Split(strings.ToLower(name), "_")
	i := slices.IndexFunc(names, func(other string) bool {
		others := strings.Split(other, "_")
		return len(words) > 1 && slices.EqualFunc(words, others, func(w, o string) bool {
			return w == o || len(w) >= minPrefix && strings.HasPrefix(o, w[:minPrefix])
		})
	})
	if i < 0 {
		return ""
	}
	return names[i]
}

// Closest returns the name of the list with the fewest letters to change, add, take
// away or swap with a neighbour to make word; empty if more than a third (at least
// one) of the letters differ. Of names as near, one that begins as word does comes
// first; where none is near, one whose words begin as those of word do.
func Closest(word string, names []string) string {
	w := []rune(strings.ToLower(word))
	if len(w) > 40 {
		return ""
	}
	best, least, began := "", max(1, len(w)/3)+1, false
	for _, name := range names {
		n := []rune(strings.ToLower(name))
		if len(n) == 1 || len(w) == 1 && len(n) > 1 {
			continue
		}
		d := distance(w, n)
		begins := len(n) > 0 && len(w) > 0 && n[0] == w[0]
		if d < len(n) && (d < least || d == least && best != "" && begins && !began) {
			best, least, began = name, d, begins
		}
	}
	if best == "" {
		return beginsAs(word, names)
	}
	return best
}

// distance returns the optimal string alignment distance (Levenshtein with swaps).
func distance(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			d := last[j-1]
			if a[i-1] != b[j-1] {
				d++
			}
			d = min(d, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			row[j] = d
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
