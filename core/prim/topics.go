package prim

import (
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A Topic is what help says of a subject, and of the signs, keywords and words of other
// languages that lead to it.
type Topic struct {
	// Names are the words that it answers to; the first is its title.
	Names []string
	// Doc is a paragraph.
	Doc string
	// Examples are run by a test of core on both evaluators.
	Examples []Written
	// See is what to ask for next: rows, groups and topics.
	See []string
}

// Written is an example in the text form.
type Written struct {
	Code, Input string // Input is JSON, empty for null
	Want        string // the result as JSON; empty where Fault is set
	Fault       fault.Kind
	// Gives is what each effect that it asks for gives, as JSON.
	Gives string
	// Beside is another tool that it calls, by name and code.
	Beside [2]string
}

// TopicNamed finds the topic that a word or sign leads to, in whatever case.
func TopicNamed(word string) (*Topic, bool) {
	for i := range Topics {
		for _, name := range Topics[i].Names {
			if strings.EqualFold(name, word) {
				return &Topics[i], true
			}
		}
	}
	return nil, false
}

// Topics is all of them, in the order in which help lists them.
var Topics = []Topic{
	{
		Names: []string{"functions", "=>", "function", "fn", "func", "fun", "def", "lambda", "->", "closure", "closures", "arrow", "procedure", "currying", "return", "yield", "main"},
		Doc:   "A function is x => e, of several parameters (a, b) => e; its body is its result. return is read in a block only, x => { let y = x + 1; return y }. A tool is such a function, and let names others inside it.",
		Examples: []Written{
			{Code: `xs => let double = x => 2 * x in map(x => double(x), xs)`, Input: `[1,2]`, Want: `[2,4]`},
			{Code: `let area = (w, h) => w * h in area(3, 4)`, Want: `12`},
		},
		See: []string{"parameters", "recursion", "let", "pipelines"},
	},
	{
		Names: []string{"parameters", "arguments", "inputs", "input", "args", "kwargs", "*args", "several parameters", "multiple parameters", "argument", "parameter"},
		Doc:   "A tool of one parameter gets its input as it is; one of several is called with a record of them by name, as in {\"price\":4,\"n\":3}. A tool that takes one record reads its fields.",
		Examples: []Written{
			{Code: `(price, n) => price * n`, Input: `{"price":4,"n":3}`, Want: `12`},
			{Code: `order => order.price * order.n`, Input: `{"price":4,"n":3}`, Want: `12`},
		},
		See: []string{"functions", "records", "tools"},
	},
	{
		Names: []string{"recursion", "recursive", "rec", "let rec", "recur", "recurse", "local functions", "tail calls", "tail recursion"},
		Doc:   "A function that let binds sees itself, and functions beside one another in one let see each other. self is the whole tool, so a tool calls itself with self(n - 1), wherever in it that stands. A call that is the last thing a function does takes no depth, so that it may be repeated as often as the steps allow.",
		Examples: []Written{
			{Code: `n => if n <= 1 then 1 else n * self(n - 1)`, Input: `5`, Want: `120`},
			{Code: `n => let add_up = (i, total) => if i > n then total else add_up(i + 1, total + i) in add_up(1, 0)`, Input: `100`, Want: `5050`},
		},
		See: []string{"self", "loops", "match", "budgets"},
	},
	{
		Names: []string{"loops", "for", "while", "foreach", "loop", "iteration", "iterate", "do", "until", "for each", "each", "break", "comprehension", "comprehensions", "list comprehension", "map/reduce", "reduce", "generator", "+=", "++i"},
		Doc:   "A loop is an operation on a list: map for what comes of each item, filter for those that are wanted, fold for one value out of all, range for the numbers to go through; [x * x for x in xs if x > 1] is map and filter. What has no list, such as while, is recursion.",
		Examples: []Written{
			{Code: `xs => xs |> filter(x => x > 1) |> map(x => x * x)`, Input: `[1,2,3]`, Want: `[4,9]`},
			{Code: `xs => fold((acc, x) => acc + x, 0, xs)`, Input: `[1,2,3]`, Want: `6`},
			{Code: `n => [i * i for i in range(1, n + 1)]`, Input: `4`, Want: `[1,4,9,16]`},
			{Code: `n => if n % 2 == 0 then self(n / 2) else n`, Input: `40`, Want: `5`},
		},
		See: []string{"map", "filter", "fold", "range", "recursion"},
	},
	{
		Names: []string{"lists", "list", "array", "arrays", "[", "[]", "...", "spread", "rest", "index", "indexing", "slices", "vector", "iterable", "set", "sets", "queue"},
		Doc:   "A list is [1, 2, 3]; its items may be of any type. xs[0] takes one item, xs[-1] the last one, xs[1:3] several, match takes it apart; [x, ...xs] and [...xs, x] add one, [...a, ...b] joins two.",
		Examples: []Written{
			{Code: `xs => xs[0] + xs[-1]`, Input: `[1,2,3]`, Want: `4`},
			{Code: `xs => match xs { [] => 0; [x, ...rest] => x }`, Input: `[7,8]`, Want: `7`},
			{Code: `xs => [0, ...xs, 9]`, Input: `[1]`, Want: `[0,1,9]`},
		},
		See: []string{"at", "append", "loops", "match", "library"},
	},
	{
		Names: []string{"records", "object", "objects", "dict", "dictionary", "dictionaries", "hashmap", "struct", "structs", "{", "{}", ".", "field", "fields", "property", "properties", "key"},
		Doc:   "A record is {name: \"a\", n: 1}, and {name, n} takes variables of those names; r.name is a field, get(r, k) one by a key that is computed, with a default as its third operand. Parameters and let take fields out: ({name, n}) => e. Records don't change: {...r, k: 1} is r with another k, {...a, ...b} both with b's values. Keys have no order but that of their text: keys, entries and to_json are sorted by it.",
		Examples: []Written{
			{Code: `r => {...r, total: r.price * r.n}`, Input: `{"price":4,"n":3}`, Want: `{"n":3,"price":4,"total":12}`},
			{Code: `({name, n}) => name ++ ": " ++ to_text(n)`, Input: `{"name":"a","n":3,"more":0}`, Want: `"a: 3"`},
			{Code: `keys({b: 1, a: 2})`, Want: `["a","b"]`},
			{Code: `r => {port: 80, host: "localhost", ...r}`, Input: `{"port":8080}`, Want: `{"host":"localhost","port":8080}`},
			{Code: `r => entries(r) |> map((k, v) => k ++ "=" ++ to_text(v)) |> join("&")`, Input: `{"a":1,"b":2}`, Want: `"a=1&b=2"`},
		},
		See: []string{"get", "put", "merge", "entries", "null", "match"},
	},
	{
		Names: []string{"pairs", "tuple", "tuples", "(,)", "unpacking"},
		Doc:   "A pair is (a, b); let, match and parameters take it apart, as in ((a, b)) => a, and fst and snd are its parts. zip, enumerate and entries give lists of pairs, whose items map takes as (a, b) => e. In JSON it is {\"pair\":[a,b]}.",
		Examples: []Written{
			{Code: `((a, b)) => (b, a)`, Input: `{"pair":[1,2]}`, Want: `{"pair":[2,1]}`},
			{Code: `xs => enumerate(xs) |> map((i, x) => i * x)`, Input: `[5,6,7]`, Want: `[0,6,14]`},
		},
		See: []string{"match", "lists", "entries", "zip"},
	},
	{
		Names: []string{"strings", "text", "texts", "string interpolation", "interpolation", "template strings", "template literals", "f-string", "f-strings", "f\"\"", "sprintf", "printf", "char", "substring", "quotes", "'", "\"", "`", "unicode"},
		Doc:   "A string stands in double quotes, \"a\\n\". a ++ b joins two, join a list of them, to_text makes one of any value. length counts characters (code points), and slice, split, replace, index_of work on them.",
		Examples: []Written{
			{Code: `r => "Hello " ++ r.name ++ ", " ++ to_text(r.n)`, Input: `{"name":"Ada","n":3}`, Want: `"Hello Ada, 3"`},
			{Code: `s => split(s, " ") |> map(w => upper(take(1, w)) ++ drop(1, w)) |> join(" ")`, Input: `"two words"`, Want: `"Two Words"`},
			{Code: `s => slice(s, 1, 3)`, Input: `"héllo"`, Want: `"él"`},
		},
		See: []string{"to_text", "split", "join", "slice"},
	},
	{
		Names: []string{"numbers", "integer", "integers", "number", "int", "bigint", "long", "//", "**", "^", "arithmetic operators", "math"},
		Doc:   "Integers are exact at any size. + - * work on integers and decimals; / and % of integers round down, round(a / b, 2) rounds the exact quotient, and a ** b is pow(a, b). to_text shows a number, parse_int and to_dec read one.",
		Examples: []Written{
			{Code: `n => pow(2, n) + 1`, Input: `70`, Want: `1180591620717411303425`},
			{Code: `n => [n / 2, n % 2, -n / 2]`, Input: `7`, Want: `[3,1,-4]`},
		},
		See: []string{"decimals", "arithmetic", "parse_int"},
	},
	{
		Names: []string{"decimals", "decimal", "float", "floats", "double", "money", "currency", "rounding", "toFixed", "fractions", "real"},
		Doc:   "A number with a point is an exact decimal: 0.1 + 0.2 is 0.3. + - * / and the comparisons take decimals and integers together; / of two integers rounds down, and of a decimal it fails where the digits have no end. ratio(a, b) gives a quotient with its digits, and so do mean(xs) and sum(xs) / length(xs); div_dec(a, b, 2, \"half_even\") says how many it has and how it is rounded; round_dec rounds what there is.",
		Examples: []Written{
			{Code: `r => round_dec(r.net * 1.19, 2, "half_up")`, Input: `{"net":19.99}`, Want: `23.79`},
			{Code: `(a, b) => div_dec(a, b, 3, "half_even")`, Input: `{"a":2,"b":3}`, Want: `0.667`},
			{Code: `x => to_int(x, "floor")`, Input: `2.7`, Want: `2`},
		},
		See: []string{"ratio", "mean", "div_dec", "round_dec", "to_dec", "to_int"},
	},
	{
		Names: []string{"match", "patterns", "pattern matching", "pattern", "switch", "case", "when", "_", "destructuring", "guards", "guard", "|", "default"},
		Doc:   "match takes the first branch whose pattern fits: a literal, a name for anything, _ to ignore it, (p, q), [p, q], [p, ...rest], {k: p} or {k} with other keys allowed, p | q for either. if after a pattern adds a condition. Branches are separated by semicolons; where none fits it fails. Patterns stand in let and in parameters as well.",
		Examples: []Written{
			{Code: `v => match v { 0 => "zero"; [x, ...rest] => length(rest); {kind: "circle" | "disc", r} if r > 0 => r * r; _ => null }`, Input: `{"kind":"disc","r":3}`, Want: `9`},
			{Code: `({name, size: (w, h)}) => let [first, ...rest] = chars(name) in (first, w * h)`, Input: `{"name":"ab","size":{"pair":[2,3]}}`, Want: `{"pair":["a",6]}`},
			{Code: `(a, b) => match (a > 0, b > 0) { (true, true) => "both"; (false, false) => "none"; _ => "one" }`, Input: `{"a":1,"b":0}`, Want: `"one"`},
			{Code: `v => match v { 0 => "zero" }`, Input: `1`, Fault: fault.RuntimeError},
		},
		See: []string{"conditions", "lists", "records", "no_match"},
	},
	{
		Names: []string{"conditions", "if", "then", "else", "elif", "elseif", "unless", "ternary", "?:", "? :", "?", "&&", "||", "!", "bool", "boolean", "booleans", "true", "false", "truthy"},
		Doc:   "if c then a else b is an expression with both branches; more conditions follow else, and c ? a : b, a if c else b and if c { a } else { b } are the same. and, or and not, also && and ||, take booleans only, and nothing else counts as true.",
		Examples: []Written{
			{Code: `n => if n < 0 then "minus" else if n == 0 then "zero" else "plus"`, Input: `3`, Want: `"plus"`},
			{Code: `xs => not isEmpty(xs) and head(xs) > 0`, Input: `[]`, Want: `false`},
			{Code: `n => n > 0 && n < 10 ? "digit" : "other"`, Input: `3`, Want: `"digit"`},
		},
		See: []string{"match", "comparisons", "logic"},
	},
	{
		Names: []string{"comparisons", "equality", "==", "!=", "===", "!==", "<>", "is", "<=>", "equals", "in"},
		Doc:   "< <= > >= compare numbers, and what one sees to be strings, lists or pairs, such as c >= \"0\"; == and != compare any two values, and compare(a, b) < 0 orders them. contains looks for an item of a list or a part of a string, has for a key.",
		Examples: []Written{
			{Code: `r => r.state == "open" and r.n != 0`, Input: `{"state":"open","n":1}`, Want: `true`},
			{Code: `s => contains(["a", "b"], s)`, Input: `"b"`, Want: `true`},
		},
		See: []string{"equal", "compare", "contains", "sort_by"},
	},
	{
		Names: []string{"let", "const", "val", "variable", "variables", "assignment", "=", ":=", ";", "blocks", "block", "statement", "statements", "begin", "local", "mutable", "pass", "del statement"},
		Doc:   "let a = 1, b = a + 1 in e names values for e; each is seen by the next ones. A name never changes: what changes in another language is an argument of a function or the accumulator of fold here. In braces, or at the top, semicolons or line ends do in place of in; a block is worth its last expression; return before it, and const for let, are read, too.",
		Examples: []Written{
			{Code: `r => let net = r.price * r.n, tax = net / 5 in {net, tax, total: net + tax}`, Input: `{"price":50,"n":3}`, Want: `{"net":150,"tax":30,"total":180}`},
			{Code: `r => { let {price, n} = r; let net = price * n; [net, net / 5] }`, Input: `{"price":50,"n":3}`, Want: `[150,30]`},
		},
		See: []string{"functions", "loops", "match"},
	},
	{
		Names: []string{"pipelines", "|>", "pipe", "pipeline operator", "methods", "method", "chaining", "dot call"},
		Doc:   "x |> f is f(x), and an operation after |> takes x as the operand that it lacks: xs |> map(f) is map(f, xs), s |> split(\",\") is split(s, \",\"). xs.map(f) is xs |> map(f), for every operation f; what JavaScript and Python call an operation is read where it means exactly that: xs.includes(x), xs.reduce(f, init), s.padStart(5, \"0\"), Math.max(a, b), len(xs). xs.length is how long a text or list is, and the field of a record.",
		Examples: []Written{
			{Code: `s => s |> trim |> split(",") |> map(w => upper(w)) |> join("-")`, Input: `" a,b "`, Want: `"A-B"`},
			{Code: `xs => xs.filter(x => x.startsWith("a")).length`, Input: `["ab", "b"]`, Want: `1`},
		},
		See: []string{"functions", "map", "compose"},
	},
	{
		Names: []string{"null", "None", "nil value", "undefined", "void", "unit", "NaN", "??", "?.", "optional", "Maybe", "Option", "missing", "missing keys", "defaults"},
		Doc:   "null is a value of its own, and the input where none is given. A key that is missing is a failure: r.k ?? d has something in its place, and where it is null, xs[i] ?? d too; has(r, k) asks for it.",
		Examples: []Written{
			{Code: `r => r.port ?? 80`, Input: `{}`, Want: `80`},
			{Code: `r => r.items[0].name ?? "none"`, Input: `{"items":[]}`, Want: `"none"`},
			{Code: `v => match v { null => "nothing"; x => x }`, Input: `null`, Want: `"nothing"`},
			{Code: `r => r.port`, Input: `{}`, Fault: fault.MissingKey},
		},
		See: []string{"get", "has", "match", "errors"},
	},
	{
		Names: []string{"errors", "error", "failures", "failure", "exceptions", "exception", "try/catch", "catch", "except", "finally", "throw", "throws", "panic", "assertion", "Result", "Err", "kinds of failure"},
		Doc:   "raise(v) fails, with any value; try(e) gives {ok: value} or {error: {kind, message, at, value}}, value being what raise was given, and match tells them apart. A budget that is used up can't be caught. help with a kind of failure, such as type_error, says when it occurs.",
		Examples: []Written{
			{Code: `s => match try(parse_int(s)) { {ok: n} => n; {error: e} => e.kind }`, Input: `"12x"`, Want: `"parse_error"`},
			{Code: `n => if n < 0 then raise("no root of " ++ to_text(n)) else n`, Input: `-1`, Fault: fault.Raised},
		},
		See: []string{"try", "raise", "null", "testing"},
	},
	{
		Names: []string{"effects", "effect", "side effects", "io", "i/o", "async", "await", "promise", "promises", "future", "callback", "then()", "file", "files", "open", "readFile", "writeFile", "read", "write", "http", "network", "print", "println", "console.log", "console", "log", "echo", "stdout", "input()", "process", "subprocess", "shell", "system", "popen", "spawn", "exec", "execute", "sessions", "session"},
		Doc:   "A program does nothing by itself: !kind.verb(e), such as !fs.read({path: p}), asks the host for an effect and gives its answer; nothing has to be awaited, and there is no print: what is to be seen is the result. A tool can ask for what it declares among what the server grants, code given to run for nothing. A program of the machine is driven in a session by !proc.start and its others, where one is granted: help with proc says how.",
		Examples: []Written{
			{Code: `p => !fs.read({path: p}) |> split("\n") |> count(line => contains(line, "ERROR"))`, Input: `"a.log"`, Gives: `"ERROR a\nok"`, Want: `1`},
			{Code: `ps => map(p => match try(!fs.read({path: p})) { {ok: s} => length(s); _ => 0 }, ps)`, Input: `["a","b"]`, Gives: `"abc"`, Want: `[3,3]`},
		},
		See: []string{"capabilities", "par", "testing", "errors"},
	},
	{
		Names: []string{"capabilities", "capability", "grants", "grant", "scope", "scopes", "authority", "permission", "permissions", "security", "sandbox", "kinds"},
		Doc:   "A capability is what a tool may act on: KIND.VERB:SCOPE, such as fs.read:./sandbox. The operator grants some, and list shows them; a tool gets those that it declares at evolve, \"capabilities\":[\"fs.read:./sandbox\"], never more than are granted. call:NAME lets it call another tool. help with a kind, such as fs or kv, says what its scopes and operations are, and help with search finds operations among those granted: {\"search\":\"issues\"}.",
		Examples: []Written{
			{Code: `p => !fs.read({path: p})`, Input: `"a.txt"`, Fault: fault.Denied},
		},
		See: []string{"effects", "tools", "evolve", "list"},
	},
	{
		Names: []string{"tools", "@", "tool", "import", "include", "require", "module", "modules", "package", "packages", "library function", "libraries", "from", "export", "use", "using", "namespace"},
		Doc:   "There is nothing to import: all operations are there, and a tool calls another with @name(e), having declared the capability call:name. Tools that call each other are evolved at once, with tools.",
		Examples: []Written{
			{Code: `xs => map(x => @square(x), xs)`, Input: `[1,2,3]`, Beside: [2]string{"square", "n => n * n"}, Want: `[1,4,9]`},
			{Code: `n => @binom(n, 2)`, Input: `5`, Beside: [2]string{"binom", "(n, k) => product(range(n - k + 1, n + 1)) / product(range(1, k + 1))"}, Want: `10`},
		},
		See: []string{"evolve", "capabilities", "call", "library"},
	},
	{
		Names: []string{"testing", "tests", "test", "unit tests", "assert", "expect", "debug", "debugging", "mock", "mocks"},
		Doc:   "evolve takes examples, [{\"input\":3,\"expect\":9}]: each is run first, a tool that gives something else is refused, and later versions must pass them too. \"error\" in place of \"expect\" names a kind of failure, and \"effects\" says what effects give, [{\"op\":\"fs.read\",\"value\":\"text\"}], or \"error\":\"not_found\" for one that fails.",
		Examples: []Written{
			{Code: `n => if equal(n * n, 9) then "as expected" else raise({got: n * n})`, Input: `3`, Want: `"as expected"`},
		},
		See: []string{"evolve", "errors", "run"},
	},
	{
		Names: []string{"budgets", "budget", "fuel", "limits", "steps", "memory", "depth", "stack overflow", "performance", "speed", "complexity"},
		Doc:   "Every run has budgets of steps, memory and depth, so that it ends; run takes steps and memory. evolve tells how a tool's steps grow. A call that isn't the last thing a function does takes depth: use fold, or hand on what has accumulated. What takes longer than one run goes on with continue.",
		Examples: []Written{
			{Code: `n => self(n + 1)`, Input: `0`, Fault: fault.OutOfFuel},
			{Code: `n => sum(range(0, n))`, Input: `1000`, Want: `499500`},
		},
		See: []string{"cost", "recursion", "continue", "run", "out_of_fuel"},
	},
	{
		Names: []string{"types", "type", "typeof", "instanceof", "isinstance", "cast", "casts", "conversion", "generics", "type hints", "annotations", "strict"},
		Doc:   "Nothing is declared: evolve tells the type that it infers, and strict refuses what isn't known to be free of type errors. type_of gives the name of a value's type: \"int\", \"dec\", \"bool\", \"string\", \"unit\" of null, \"list\", \"pair\", \"record\", \"function\", \"quoted\" or \"continuation\". Nothing is converted by itself: to_text, parse_int, to_dec and to_int do.",
		Examples: []Written{
			{Code: `v => if equal(type_of(v), "list") then length(v) else 1`, Input: `[1,2]`, Want: `2`},
			{Code: `s => parse_int(s) + 1`, Input: `"41"`, Want: `42`},
		},
		See: []string{"type_of", "infer", "to_text", "match"},
	},
	{
		Names: []string{"state", "class", "classes", "new", "this", "interface", "enum", "inheritance", "constructor", "oop", "global", "static", "singleton", "mutation", "generator state"},
		Doc:   "There are no classes and nothing changes: data are records, what works on them are functions, and cases are told apart by a field with match. What lasts between calls is kept by an effect, as with kv, or handed on by continue.",
		Examples: []Written{
			{Code: `shape => match shape { {kind: "square", a} => a * a; {kind: "box", w, h} => w * h }`, Input: `{"kind":"box","w":2,"h":3}`, Want: `6`},
		},
		See: []string{"records", "match", "continue", "effects"},
	},
	{
		Names: []string{"quoting", "'{", "quotation", "macro", "macros", "metaprogramming", "ast", "reflection", "homoiconic"},
		Doc:   "'{e} is code as a value, not evaluated; eval runs it, code_of gives a tool's, match takes it apart by a pattern with variables, analyze counts in it. In JSON it is {\"quote\":T}.",
		Examples: []Written{
			{Code: `q => match q { '{a + b} => eval(a); _ => null }`, Input: `"'{1 + 2}"`, Want: `1`},
			{Code: `x => eval('{x * 2})`, Input: `4`, Want: `8`},
		},
		See: []string{"eval", "code_of", "code", "meta"},
	},
	{
		Names: []string{"names", "::", "backquotes", "identifier", "identifiers", "keywords", "keyword", "reserved words"},
		Doc:   "A name is a letter or _, then letters, digits and _. A name that a function or let binds is that variable; any other that stands before parentheses is the operation. In backquotes any string is a variable, and after :: a name is the operation, whatever variables there are.",
		Examples: []Written{
			{Code: "let `a b` = 1 in `a b` + 1", Want: `2`},
			{Code: `length => ::length(length)`, Input: `[1,2,3]`, Want: `3`},
		},
		See: []string{"let", "functions"},
	},
	{
		Names: []string{"comments", "comment", "#", "/*", "--", "docstring"},
		Doc:   "// begins a comment, which goes to the end of its line. description at evolve says what a tool does.",
		Examples: []Written{
			{Code: "n => n * n // the square", Input: `3`, Want: `9`},
		},
		See: []string{"evolve", "numbers"},
	},
	{
		Names: []string{"json", "JSON.parse", "JSON.stringify", "serialization", "serialize", "ast json", "canonical"},
		Doc:   "Every program has a form in text and one in JSON, which is what is stored: an operation is an object with its name as the key, {\"add\":[a,b]}. Data in JSON are read by parse_json and written by to_json.",
		Examples: []Written{
			{Code: `s => sum(parse_json(s).items)`, Input: `"{\"items\":[1,2]}"`, Want: `3`},
			{Code: `r => to_json({n: r.n, ok: true})`, Input: `{"n":1}`, Want: `"{\"n\":1,\"ok\":true}"`},
		},
		See: []string{"parse_json", "to_json", "records"},
	},
	{
		Names: []string{"dates", "date", "time", "times", "datetime", "timestamp", "timestamps", "calendar", "now", "today", "timezone", "time zones", "strftime", "timedelta", "duration", "durations"},
		Doc:   "Dates and times are RFC 3339 text, \"2026-11-22\" or \"2026-11-22T09:30:00+01:00\"; add_time and diff_time reckon with them, parse_time takes one apart, format_time writes one in a layout. What time it is now is an effect, !clock.now({}), of the kind clock.",
		Examples: []Written{
			{Code: `d => add_time(d, {months: 1})`, Input: `"2026-01-31"`, Want: `"2026-02-28"`},
			{Code: `(from, to) => diff_time(to, from, "days")`, Input: `{"from":"2026-01-01","to":"2026-03-01"}`, Want: `59`},
			{Code: `d => weekday(d)`, Input: `"2026-11-22"`, Want: `"Sunday"`},
			{Code: `t => format_time(t, "DD.MM.YYYY HH:mm")`, Input: `"2026-11-22T09:30:00Z"`, Want: `"22.11.2026 09:30"`},
		},
		See: []string{"parse_time", "format_time", "capabilities"},
	},
	{
		Names: []string{"regex", "regexp", "regular expressions", "regular expression", "re", "grep", "search", "findall"},
		Doc:   "The text stands first, then the pattern, in the syntax of RE2: re_match, re_find, re_find_all, re_replace, re_split. A backslash is written twice in a string, \"\\\\d+\". What named groups, (?P<k>…), fit is given as a record. \\w, \\d and \\b are of ASCII: a letter of any script is \\p{L}, a word's sign [\\p{L}\\p{N}_]. Directly behind what was found no empty text is found; re_split leaves groups out; in what re_replace puts in, $1 is a group, $0 the whole.",
		Examples: []Written{
			{Code: `s => map(n => parse_int(n), re_find_all(s, "[0-9]+"))`, Input: `"a1 b22"`, Want: `[1,22]`},
			{Code: `s => re_find(s, "(?P<key>\\w+)=(?P<value>\\w+)")`, Input: `"-- a=1"`, Want: `{"key":"a","value":"1"}`},
			{Code: `s => re_replace(s, "\\s+", " ")`, Input: `"a  b"`, Want: `"a b"`},
		},
		See: []string{"re_find_all", "re_replace", "strings"},
	},
	{
		Names: []string{"formats", "csv", "url", "urls", "query string", "base64", "hex", "hash", "hashing", "checksum", "encoding", "encode", "decode", "sha", "hmac", "tsv", "btoa", "atob"},
		Doc:   "parse_csv reads comma-separated values as records by the names in their first line, and to_csv writes them, its columns in the order in which the records are written out, else of their text, or as they are listed; parse_url and to_url do so with URLs. base64, hex and URL text are written by …_encode and read by …_decode; sha256, hmac_sha256 and crc32 hash a string.",
		Examples: []Written{
			{Code: `s => map(r => parse_int(r.qty), parse_csv(s)) |> sum`, Input: `"name,qty\na,1\nb,2"`, Want: `3`},
			{Code: `rs => to_csv(rs)`, Input: `[{"a":1,"b":"x"}]`, Want: `"a,b\n1,x\n"`},
			{Code: `rs => to_csv(map(r => {name: r.n, age: r.a}, rs))`, Input: `[{"n":"x","a":1}]`, Want: `"name,age\nx,1\n"`},
			{Code: `u => parse_url(u).host`, Input: `"https://a.example/b?c=1"`, Want: `"a.example"`},
		},
		See: []string{"parse_csv", "parse_url", "sha256", "json"},
	},
}
