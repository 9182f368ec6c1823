package prim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// maxDescribedBytes is how many characters of a string or number a message shows.
const maxDescribedBytes = 40

// Describe describes a value for a message: `the string "a"`, `the integer 5`, `a
// list`. Long ones are shortened; the work is bounded.
func Describe(v value.Value) string {
	switch v := value.Force(v).(type) {
	case value.Int:
		if n, ok := v.Int64(); ok {
			return "the integer " + strconv.FormatInt(n, 10)
		}
		if v.Words() > 2 {
			return fmt.Sprintf("an integer of %d bits", v.Big().BitLen())
		}
		return "the integer " + v.Big().String()
	case value.Dec:
		return "the decimal " + display.Truncate(v.String(), maxDescribedBytes)
	case value.Bool:
		return strconv.FormatBool(bool(v))
	case value.Str:
		return "the string " + quoted(string(v))
	case value.Unit:
		return "null"
	case value.Nil:
		return "the empty list"
	case *value.Cons:
		return "a list"
	case *value.Pair:
		return "a pair"
	case *value.Record:
		return "a record"
	case *value.Closure:
		return "a function"
	case *value.Code:
		return "quoted code"
	case *value.Continuation:
		return "a continuation"
	}
	return "no value"
}

func quoted(s string) string {
	cut := display.Prefix(s, maxDescribedBytes)
	q := strconv.Quote(cut)
	if len(cut) < len(s) {
		q = q[:len(q)-1] + `…"`
	}
	return q
}

var ordinals = [...]string{"first", "second", "third", "fourth"}

// Mismatch returns the type_error of a row whose operand i (from 0) is not of a kind
// it takes. got describes the operand, as [Describe] does.
func Mismatch(id term.ID, i int, got string) *fault.Fault { return Table[id].mismatch(i, got) }

func (r *Row) mismatch(i int, got string) *fault.Fault {
	f := &fault.Fault{Kind: fault.TypeError, Got: got}
	want := KindAny
	if r.List != "" {
		i = min(i, len(r.Params)-1)
	}
	if i < len(r.Params) {
		want = r.Params[i].Kinds
	}
	f.Expected = want.Phrase()
	f.Message = fmt.Sprintf("%s takes %s as its %s, not %s", r.Name, f.Expected, r.which(i), got)
	f.Hint = r.hint(want, got)
	return f
}

// which names operand i.
func (r *Row) which(i int) string {
	switch {
	case len(r.Params) < 2 || i >= len(ordinals):
		return "operand"
	case r.Shape == Keyed || r.Shape == KeyedOrArray:
		return strconv.Quote(r.Params[i].Name)
	}
	return ordinals[i] + " operand"
}

// hint returns an imperative sentence with a correct term.
func (r *Row) hint(want Kinds, got string) string {
	correct := r.Correct()
	// Of a value that isn't known yet there is only the kind.
	is := func(kind string) bool {
		return got == "a "+kind || got == "an "+kind || strings.HasPrefix(got, "the "+kind)
	}
	switch {
	case r.Shape == Unary && (got == "a list") && want&KindList == 0:
		return fmt.Sprintf("%s takes its operand without brackets: write %s.", r.Name, correct)
	case r.Name == "re_replace" && got == "a function":
		return "What is put in is a string, in which $1 or ${name} is a group. Correct: " + correct + "."
	case r.Name == "format" && is("string") && want == KindInt:
		return `The digits after the point are an integer, or a pattern that is written out: "+,.2f", "05d", ".1%" or "#,##0.00".`
	case r.Name == "push":
		return `push takes the list first, and then the item: {"push":[LIST,ITEM]}.`
	case r.Name == "isEmpty" && got == "a record":
		return `A record without keys is {"equal":[R,{"record":{}}]}.`
	case r.Name == "isEmpty" && is("string"):
		return `A string without characters is {"equal":[S,""]}.`
	case r.Name == "has" && want&KindRecord != 0 && (is("list") || is("empty list") || is("string")):
		return `Whether a list has an item, or a string a part, is {"contains":[LIST,ITEM]}.`
	case r.Name == "length" && got == "a record":
		return `How many keys a record has is {"length":{"keys":R}}.`
	case r.Name == "repeat" && is("string"):
		return "repeat gives a list, the number first: {\"repeat\":[3,\"a\"]}; a string over and over is {\"repeat_text\":[S,N]}."
	case r.Name == "get" && is("integer"):
		return "A key is a string: {\"get\":[R,{\"to_text\":K},DEFAULT]}; a list's item is {\"nth\":[LIST,INDEX]}."
	case got == "a function" && want&KindList != 0 && len(r.Params) > 0 && r.Params[0].Kinds == KindFunction:
		return fmt.Sprintf("The function is the first operand, the list the last: {\"map\":[F,LIST]}, {\"fold\":[F,INIT,LIST]}; a function given to fold takes one pair (accumulator, item). Correct: %s.", correct)
	case got == "a function":
		return fmt.Sprintf("Apply the function first, {\"app\":{\"func\":F,\"arg\":A}}; a function given to fold takes one pair (accumulator, item). Correct: %s.", correct)
	case is("string") && want&KindList != 0 && r.Name != "append":
		return fmt.Sprintf("A string's characters are the list {\"chars\":S}, its parts {\"split\":[S,\",\"]}. Correct: %s.", correct)
	case r.Name == "pow" && is("decimal"):
		return `The exponent is an integer, {"pow":[A,{"to_int":[N,"down"]}]}; ` + noPower + "."
	case got == "a record" && want&KindList != 0:
		return fmt.Sprintf("Make a list of the record: {\"entries\":R} gives pairs (key, value), {\"keys\":R} the keys, {\"values\":R} the values. Correct: %s.", correct)
	case r.Name == "append" && is("string"):
		return `A string's characters are the list {"chars":S}; an item is added by {"push":[LIST,ITEM]}.`
	case r.Name == "append":
		return "append joins two lists; an item is added by {\"push\":[LIST,ITEM]}."
	case r.Name == "concat" && got == "a list":
		return fmt.Sprintf("Join lists with {\"append\":[A,B]}, and the strings of one with {\"join\":[LIST,\",\"]}. Correct: %s.", correct)
	case r.Name == "concat" && got == "a record":
		return fmt.Sprintf("Make a string of the value: {\"to_text\":V}; a caught error has its text as {\"get\":[E,\"message\"]}. Correct: %s.", correct)
	case r.Name == "concat":
		return fmt.Sprintf("Make a string of the value: {\"to_text\":V}. Correct: %s.", correct)
	case r.Name == "add" && is("string"):
		return fmt.Sprintf("Join strings with {\"concat\":[A,B]}, and make a number of one with {\"parse_int\":S} or {\"to_dec\":S}. Correct: %s.", correct)
	case r.Name == "add" && got == "a list":
		return fmt.Sprintf("Join lists with {\"append\":[A,B]}. Correct: %s.", correct)
	case r.Name == "get" && (got == "a list" || is("string")):
		return fmt.Sprintf("Only records have fields: {\"length\":V} is how long a string or a list is, {\"nth\":[LIST,INDEX]} an item. Correct: %s.", correct)
	case got == "a pair" && want&KindPair == 0:
		return fmt.Sprintf("Take the pair apart with {\"fst\":P} or {\"snd\":P}. Correct: %s.", correct)
	case got == "quoted code" && want&KindQuoted == 0:
		return fmt.Sprintf("Evaluate quoted code with {\"eval\":Q} first. Correct: %s.", correct)
	case is("decimal") && r.Name == "mod":
		return `What is left of a division of decimals is {"sub":[A,{"mul":[B,{"div_dec":[A,B,0,"floor"]}]}]}.`
	case is("decimal") && want&KindInt != 0:
		return fmt.Sprintf("Make an integer of the decimal: {\"to_int\":[D,\"half_even\"]}. Correct: %s.", correct)
	case r.Group == "comparison" && want == KindNumber && is("string") && r.Name != "eq":
		return fmt.Sprintf("%[1]s compares numbers only: write {%[1]q:[{\"compare\":[A,B]},0]} for strings.", r.Name)
	case r.Group == "comparison" && want == KindNumber:
		return fmt.Sprintf("%s compares numbers only: use {\"equal\":[A,B]} or {\"compare\":[A,B]} for other values. Correct: %s.", r.Name, correct)
	case want&KindAny == KindString && (is("integer") || is("decimal") || is("number") || is("boolean")) && !strings.HasPrefix(r.Name, "parse_"):
		return fmt.Sprintf("Make a string of the value: {\"to_text\":V}. Correct: %s.", correct)
	}
	return fmt.Sprintf("Give %s %s. Correct: %s.", r.Name, want.Phrase(), correct)
}

// Correct returns a term that is right: the row's first example, or what is quoted
// in it where the operation is useful only in a tool.
func (r *Row) Correct() string {
	if len(r.Examples) == 0 {
		return r.Spelling()
	}
	x := r.Examples[0].Code
	if quoted, ok := strings.CutPrefix(x, `{"quote":`); ok && r.Name != "quote" {
		return strings.TrimSuffix(quoted, "}")
	}
	return x
}

// Spelling returns how the row is written, with its parameters' names as operands:
// {"add":[a,b]}.
func (r *Row) Spelling() string {
	name := strconv.Quote(r.Name)
	params := make([]string, len(r.Params))
	for i, p := range r.Params {
		params[i] = p.Name
	}
	switch r.Shape {
	case Flag:
		return "{" + name + ":true}"
	case Unary, Within:
		return "{" + name + ":" + params[0] + "}"
	case Named, NamedOrTerm:
		return "{" + name + `:"` + params[0] + `"}`
	case Array:
		if r.Min > 0 {
			params[r.Min] += "?"
		}
		if r.Many {
			params = append(params, "…")
		}
		return "{" + name + ":[" + strings.Join(params, ",") + "]}"
	case Keyed, KeyedOrArray:
		for i, p := range params {
			params[i] = strconv.Quote(p) + ":" + strings.ToUpper(p[:1])
		}
		s := "{" + name + ":{" + strings.Join(params, ",") + "}}"
		if r.List != "" {
			last := len(params) - 1
			params[last] = strconv.Quote(r.List) + ":[" + strings.ToUpper(r.Params[last].Name[:1]) + ",…]"
			s += " or {" + name + ":{" + strings.Join(params, ",") + "}}"
		}
		return s
	case UnaryOrArray:
		return "{" + name + ":[" + params[0] + "]}"
	case Recursive:
		return "{" + name + `:[["f",L],…],"in":T}`
	case Bindings:
		return "{" + name + `:[["x",T],…],"in":T}`
	case Branches:
		return "{" + name + `:[[C,T],…],"else":T}`
	case Patterns:
		return "{" + name + `:T,"with":[[P,T],…]}`
	case Lambda:
		return `{"lam":"x","body":T}`
	case Members:
		return "{" + name + `:{"key":T,…}}`
	case Dotted:
		return `{"kind.verb":ARG}`
	}
	return r.Correct()
}

// SortedParams returns the indexes of the parameters in the order of their names,
// which is the order of the keys in canonical JSON.
func (r *Row) SortedParams() []int {
	order := make([]int, len(r.Params))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(r.Params[a].Name, r.Params[b].Name) })
	return order
}

// Terms returns how many terms there are in t, with itself. It stops counting soon after limit.
func Terms(t term.Term, limit int) int {
	n := 1
	term.Children(t, func(child term.Term) bool {
		n += Terms(child, limit-n)
		return n <= limit
	})
	return n
}

// Nesting returns how deep brackets are nested in a term's canonical JSON, inside so
// many around it. It stops counting soon after limit.
func Nesting(t term.Term, around, limit int) int {
	switch t := t.(type) {
	case *term.LetRec:
		deep := 0
		for _, f := range t.Funcs {
			if deep = max(deep, Nesting(f.Lam, around+3, limit)); deep > limit {
				return deep
			}
		}
		return max(deep, Nesting(t.Body, around+1, limit))
	case *term.App, *term.If, *term.Record, *term.Continue:
		around += 2
	case *term.Prim:
		around++
		row := Get(t.ID)
		switch row.Shape {
		case Flag, Unary, NamedOrTerm, Within:
		default:
			around++
		}
		if row.Listed(len(t.Args)) {
			around++
		}
	case *term.Int, *term.Big, *term.Bool, *term.Str, *term.Unit:
	default:
		around++
	}
	deep := around
	if deep <= limit {
		term.Children(t, func(child term.Term) bool {
			deep = max(deep, Nesting(child, around, limit))
			return deep <= limit
		})
	}
	return deep
}

// Card returns the authoring card: what a model needs to make a tool, in about 600
// tokens. It is for the instructions of a server, for help and for prompts. It teaches
// the text form, which takes less than half the tokens of JSON: first how tools are
// made and programs are written, by an example for each subject, then the operations
// that are written as a name before their operands, from the table.
func Card() string {
	var b strings.Builder
	for _, line := range cardLines {
		b.WriteString(line.Code + line.say + "\n")
	}
	b.WriteString(operations())
	return b.String()
}

// CardExamples returns the programs that the card shows.
func CardExamples() (examples []Written) {
	for _, line := range cardLines {
		if line.Code != "" {
			examples = append(examples, line.Written)
		}
	}
	return examples
}

// cardLines is how programs are written: an example, a rule or both.
var cardLines = []struct {
	Written
	say string
}{
	{say: "evolve makes a function a tool. Input of one parameter: its value, of several: an object by name. help NAME explains an operation, sign, topic (errors) or word of another language."},
	{Written{
		Code:  `(order, rate) => { let net = sum(map(l => l.price * l.n, order.lines)); {id: order.id, net, tax: round_dec(net * rate, 2, "half_up")} }`,
		Input: `{"order":{"id":7,"lines":[{"price":2.5,"n":3}]},"rate":0.19}`, Want: `{"id":7,"net":7.5,"tax":1.43}`,
	}, ""},
	{Written{Code: `n => if n <= 1 then 1 else n * self(n - 1)`, Input: `5`, Want: `120`}, " (self is the tool; let go = (i, acc) => … go(i + 1, acc) …)"},
	{Written{Code: `v => match v { [] => "none"; (a, b) => a; [x, ...rest] => x; {k} if k > 0 => k; _ => null }`, Input: `{"k":1,"l":2}`, Want: `1`}, ""},
	{Written{Code: `s => match try(parse_int(s)) { {ok: n} => n; {error: e} => raise(e.message) }`, Input: `"x"`, Fault: fault.Raised}, ""},
	{Written{Code: `p => !fs.read({path: p}) |> split("\n") |> filter(l => contains(l, "ERROR"))`, Input: `"a.log"`, Gives: `"ERROR a\nok"`, Want: `["ERROR a"]`}, " (fs.list: [{path, kind: \"file\"|\"directory\"|…, size}], one level)"},
	{Written{Code: `key => !kv.put({key, value: !kv.get({key, default: 0}) + 1})`, Input: `"a"`, Gives: `1`, Want: `1`}, " (kv:notes/**; kv:notes is one key; kv.list: [{key, size, version}])"},
	{Written{
		Code:  `s => map((k, ws) => $"{k}: {length(ws)}", entries(group_by(w => w[0], split(s, " "))))`,
		Input: `"b ab a"`, Want: `["a: 2","b: 1"]`,
	}, " (f or n, then the list, or xs.map(f); entries, zip, enumerate (i, x) give pairs; keys sorted as text)"},
	{Written{
		Code:  `s => map(t => format_time(add_time(t, {days: 1}), "DD.MM.YYYY"), re_find_all(s, "\\d+(?:-\\d+)+"))`,
		Input: `"from 2026-01-31 on"`, Want: `["01.02.2026"]`,
	}, `; re_match(s, p) tests, re_find(s, p) gives the groups ("" for none), one alone as text, or null; !clock.now({}).rfc3339, diff_time(a, b, "days") is a - b, weekday(t) "Monday"; parse_time(t).hour is the text's, format_time(t, "HH", "UTC") UTC's`},
	{say: "+ - * / % (/ floors; mean(xs), ratio(a, b), round(a / b, 2) don't; 1.50 is exact; no sin, log) < <= > >= (texts too; compare(a, b): -1, 0, 1) == != and or not ++ xs[0] s[1:-1] r[k], (1, true) a pair, @tool(e), code '{e}"},
	{Written{Code: `xs => fold((acc, x) => acc + x, 0, xs)`, Input: `[1,2]`, Want: `3`}, " (push(xs, x) adds last, cons(x, xs) first, append joins lists; range(1, 3) is [1, 2])"},
}

// unlisted is the categories of which the card has only the name, and some of the
// operations: they are called what they are elsewhere.
var unlisted = []struct{ group, some string }{
	{"numbers", `round, sqrt, gcd, to_base, format(x, 2) "1,234.50"`}, {"texts", "pad_left, table"}, {"collections", "group_by, get_in"}, {"regex", ""}, {"dates", ""}, {"formats", "parse_csv, base64_encode, sha256"}, {"meta", ""}, {"code", ""},
}

// listed reports whether the card has the operations of a category.
func listed(group string) bool {
	return !slices.ContainsFunc(unlisted, func(u struct{ group, some string }) bool { return u.group == group })
}

// signs is how the rules write what they tell of, by the row's name: the rest is
// told by name.
var signs = map[string]string{
	"integer": "1", "boolean": "true", "text": `"none"`, "null": "null", "list": "[x", "dec": "1.50",
	"var": "x", "lam": "=>", "app": "self(n", "let": "let", "letrec": "let", "if": "if", "cond": "if", "match": "match", "no_match": "match",
	"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%",
	"eq": "==", "equal": "==", "at": "xs[0]", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=", "and": "and", "or": "or", "not": "not",
	"concat": "++", "pair": "(1, true)", "record": "{id:", "nil": "[]", "quote": "'{", "self": "self(", "effect": "!fs.read(", "call": "@tool(",
	// What an example shows with its operands.
	"mean": "mean(", "ratio": "ratio(", "compare": "compare(", "sum": "sum(", "length": "length(", "entries": "entries(", "try": "try(", "raise": "raise(",
	"parse_int": "parse_int(", "split": "split(", "contains": "contains(", "push": "push(xs", "cons": "cons(", "append": "append joins", "map": "map(", "filter": "filter(",
	"fold": "fold(", "round_dec": "round_dec(", "range": "range(",
}

// operations lists the operations that the rules have no sign for: by how many
// operands they take, and with their operands where those don't follow from that.
func operations() string {
	var byCount [4][]string
	var order []string
	names := map[string][]string{}
	for i := range Table {
		r := &Table[i]
		switch n := len(r.Params); {
		case signs[r.Name] != "" || !listed(r.Group):
		case r.told() || n == 0 || n >= len(byCount):
			params := "(" + strings.Join(r.paramNames(), ",") + ")"
			if !slices.Contains(order, params) {
				order = append(order, params)
			}
			names[params] = append(names[params], r.Name)
		default:
			byCount[n] = append(byCount[n], r.Name)
		}
	}
	for i, params := range order {
		order[i] = strings.Join(names[params], " ") + params
	}
	var more []string
	for _, u := range unlisted {
		more = append(more, u.group)
		if u.some != "" {
			more[len(more)-1] += " (" + u.some + ", …)"
		}
	}
	return fmt.Sprintf("Of one operand: %s\nof two, text, list or record first: %s\nof three: %s\n%s\nMore in help: %s.\n",
		strings.Join(byCount[1], " "), strings.Join(byCount[2], " "), strings.Join(byCount[3], " "), strings.Join(order, " "), strings.Join(more, ", "))
}

// told reports whether a row's operands can't be guessed from how many they are: one
// can be left out or repeated, has a choice of words, or a function or a number
// stands before what it is for.
func (r *Row) told() bool {
	return r.Many || r.Min > 0 ||
		len(r.Params) > 1 && (r.Params[0].Name == "n" || r.Params[0].Kinds == KindFunction && r.Params[1].Kinds != KindFunction) ||
		slices.ContainsFunc(r.Params, func(p Param) bool { return p.Name == "mode" })
}

// paramNames returns the parameters' names, those that may be left out with a ?.
func (r *Row) paramNames() []string {
	names := make([]string, len(r.Params))
	for i, p := range r.Params {
		names[i] = p.Name
		if p.Name == "test" {
			names[i] = "f"
		}
		if r.Min > 0 && i >= r.Min {
			names[i] += "?"
		}
	}
	if r.Many {
		names = append(names, "…")
	}
	return names
}
