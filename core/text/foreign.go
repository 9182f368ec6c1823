package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// around looks at the tokens of a source where something was refused.
type around struct{ *reader }

// foreign returns a hint for code that fails where a word of another language stands, at
// most reach tokens before: the same with the names that it has there, in this language.
func (of *reader) foreign() string {
	r := around{of}
	const reach = 12
	for k := r.i; k >= max(0, r.i-reach); k-- {
		if r.toks[k].kind != tokName && r.toks[k].kind != tokElse || k < r.i-1 && r.scope[r.word(k)] > 0 {
			continue
		}
		hint := foreignInfix[r.word(k)]
		if k < r.i && r.begins(k+1) {
			hint = foreignPrefix[r.word(k)]
		}
		if hint != nil {
			if h := hint(r, k); h != "" {
				return h
			}
		}
	}
	return ""
}

// word returns a token as it stands in the source.
func (r around) word(k int) string {
	t := r.toks[max(0, min(k, len(r.toks)-1))]
	return r.src[t.off:t.end]
}

// begins reports whether what another language has after a word can begin at token k.
func (r around) begins(k int) bool {
	switch r.toks[k].kind {
	case tokName, tokString, tokInt, tokDec, tokOpen, tokOpenList, tokOpenBrace, tokLet, tokSelf, tokNot, tokEffect, tokTool, tokColon, tokIf, tokNull, tokTimes:
		return true
	}
	return false
}

// end returns the first token from k on that has one of the spellings outside of brackets
// that open after k, or that closes one from before, or the last token.
func (r around) end(k int, spellings ...string) int {
	for deep := 0; k < len(r.toks)-1; k++ {
		switch kind := r.toks[k].kind; {
		case kind == tokBad, deep == 0 && slices.Contains(spellings, r.word(k)):
			return k
		case kind.opens():
			deep++
		case kind.closes():
			if deep--; deep < 0 {
				return k
			}
		}
	}
	return k
}

// said returns the source from token a up to, not including, b, without parentheses
// around all of it; … where there is none or it is long.
func (r around) said(a, b int) string {
	if a < b && r.toks[a].kind == tokOpen && r.end(a+1) == b-1 && r.end(a+1, ",") == b-1 {
		a, b = a+1, b-1
	}
	if a >= b {
		return "…"
	}
	s := strings.Join(strings.Fields(r.src[r.toks[a].off:r.toks[b-1].end]), " ")
	if len(s) > 60 {
		return "…"
	}
	return s
}

// body returns what a function, branch or loop of another language does, from the : or
// { at token k on.
func (r around) body(k int) string {
	if kind := r.toks[k].kind; kind == tokColon || kind == tokOpenBrace {
		k++
	}
	if r.word(k) == "return" {
		k++
	}
	return r.said(k, r.end(k, ";", "except"))
}

// foreignInfix is the words that stand after an operand.
var foreignInfix = map[string]func(r around, k int) string{
	"for": around.loop,
	"is": func(r around, k int) string {
		left, not := r.said(max(0, k-1), k), r.toks[k+1].kind == tokNot
		if not {
			k++
		}
		right := r.said(k+1, k+2)
		if right == "None" {
			right = "null"
		}
		if not {
			return fmt.Sprintf("Write not equal(%s, %s).", left, right)
		}
		return fmt.Sprintf("Write equal(%s, %s).", left, right)
	},
	"like": around.alike, "LIKE": around.alike, "ilike": around.alike, "ILIKE": around.alike, "between": around.among, "BETWEEN": around.among,
	"when": func(r around, k int) string {
		if k > 0 && strings.EqualFold(r.word(k-1), "case") {
			return r.cases(k)
		}
		return fmt.Sprintf("Write a branch with a condition as %s if %s => ….", r.said(max(0, k-1), k), r.said(k+1, r.end(k+1, "=>", "->")))
	},
	"as":         func(around, int) string { return castHint },
	"instanceof": func(r around, k int) string { return typeHint(r.said(max(0, k-1), k)) },
	"of":         around.loop,
}

const castHint = `Write to_text(x), parse_int(s), to_dec(s) or to_int(x, "floor"): nothing is cast.`

func typeHint(of string) string { return fmt.Sprintf("Write equal(type_of(%s), \"list\").", of) }

// foreignPrefix is the words that stand before an operand.
var foreignPrefix = map[string]func(r around, k int) string{
	"for": around.loop, "foreach": around.loop,
	"while": around.while, "until": around.while, "loop": around.while, "do": around.while,
	"import": noImport, "require": noImport, "include": noImport, "using": noImport,
	"from": func(r around, k int) string {
		if r.word(r.end(k+1, "import")) != "import" {
			return ""
		}
		return noImport(r, k)
	},
	"return": func(r around, k int) string {
		if k > 0 && r.i > k+1 && (r.toks[k-1].kind == tokClose || r.toks[k-1].kind == tokThen) && r.toks[r.i].kind != tokElse {
			return fmt.Sprintf("Say what there is otherwise: if a then %s else b.", r.said(k+1, r.i))
		}
		return fmt.Sprintf("Write %s alone: a function's body is its result; return is read in a block only.", r.said(k+1, r.end(k+1, ";")))
	},
	"delete": func(r around, k int) string {
		if r.toks[k+1].kind != tokName || r.toks[min(k+2, len(r.toks)-1)].kind != tokDot {
			return ""
		}
		return fmt.Sprintf("Write del(%[1]s, %[2]q), which is %[1]s without it: values never change.", r.word(k+1), r.word(k+3))
	},
	"yield": func(around, int) string {
		return "Give all that is wanted as a list: map(x => x * 2, list)."
	},
	"function": around.foreignFunction, "def": around.foreignFunction, "fn": around.foreignFunction, "fun": around.foreignFunction, "func": around.foreignFunction,
	"lambda": func(r around, k int) string {
		colon := r.end(k+1, ":")
		if r.toks[k+1].kind == tokTimes {
			return fmt.Sprintf("Write %s => %s, of one list.", r.params(k+2, colon), r.said(colon+1, r.end(colon+1, ",")))
		}
		return fmt.Sprintf("Write %s => %s.", r.params(k+1, colon), r.said(colon+1, r.end(colon+1, ",")))
	},
	"class": noClass, "struct": noClass, "interface": noClass, "enum": noClass,
	"new": func(r around, k int) string {
		switch r.word(k + 1) {
		case "Set":
			return "Write unique(xs), which has each value once."
		case "Map":
			return "Write a record, {}, and put(r, k, v) or {...r, [k]: v}."
		case "Array":
			return "Write repeat(n, 0) for n copies, range(0, n) for the numbers below n."
		case "Date":
			return "Write dates as text: parse_time(t).year, add_time(t, {days: 1}), diff_time(a, b, \"days\"), weekday(t)."
		}
		return "Write a record, {name: \"a\"}, or a value of its own: there are no classes and no new."
	},
	"switch": switchHint, "when": switchHint,
	"SELECT": noQuery, "select": noQuery,
	"case": func(r around, k int) string {
		if strings.EqualFold(r.word(k+1), "when") {
			return r.cases(k + 1)
		}
		return "Write match v { 0 => a; _ => b }: no word stands before a pattern."
	},
	"try": func(r around, k int) string {
		failed := "{error: e} => null"
		if c := r.end(k+1, "catch", "except"); r.word(c) == "catch" || r.word(c) == "except" {
			open, name := r.end(c, "{", ":"), "_"
			switch {
			case r.word(open-2) == "as":
				name = fmt.Sprintf("{error: %s}", r.word(open-1))
			case r.word(c+1) == "(" && r.end(c+2, ":") > c+2:
				name = fmt.Sprintf("{error: %s}", r.word(r.end(c+2, ":")-1))
			}
			failed = name + " => " + r.body(open)
		}
		return fmt.Sprintf("Write match try(%s) { {ok: v} => v; %s }.", r.body(k+1), failed)
	},
	"throw": raiseHint, "raise": raiseHint,
	"assert": func(r around, k int) string {
		return fmt.Sprintf("Write if %s then x else raise(\"not as expected\"), or give evolve examples.", r.said(k+1, r.end(k+1, ",", ";")))
	},
	"async": noAwait, "await": noAwait,
	"print": noPrint, "echo": noPrint, "println": noPrint,
	"with":  func(around, int) string { return "Write !fs.read({path: p}), which gives the content of a file." },
	"const": around.binds, "var": around.binds, "val": around.binds, "mut": around.binds,
	"else": func(r around, k int) string {
		if r.toks[k+1].kind == tokIf || r.toks[k+1].kind == tokOpenBrace || r.toks[k+1].kind == tokColon {
			return elseHint(r, k)
		}
		return ""
	},
	"typeof": func(r around, k int) string {
		end := r.end(k+1, "==", "===", "!=", "!==", ";", ",")
		of := fmt.Sprintf("type_of(%s)", r.said(k+1, end))
		is, not := "==", ""
		if strings.HasPrefix(r.word(end), "!") {
			is, not = "!=", "not "
		}
		switch name := strings.Trim(r.word(min(end+1, len(r.toks)-1)), `"'`); {
		case name == "" || !strings.HasSuffix(r.word(end), "=="):
			return fmt.Sprintf("Write %s.", of)
		case name == "number":
			return fmt.Sprintf(`Write %scontains(["int", "dec"], %s).`, not, of)
		case name == "undefined":
			return fmt.Sprintf("Write %s %s null.", r.said(k+1, end), is)
		default:
			return fmt.Sprintf("Write %s %s %q.", of, is, cmp.Or(typeNames[name], name))
		}
	},
}

// typeNames is what type_of gives of what typeof gives another name.
var typeNames = map[string]string{"boolean": "bool", "object": "record", "bigint": "int"}

func noImport(around, int) string {
	return "Take it away: all operations are there without an import, and another tool is called with @name(x)."
}

func noClass(around, int) string {
	return `Write data as records, {kind: "square", a: 2}, and what works on them as functions: there are no classes.`
}

func noAwait(r around, k int) string {
	return fmt.Sprintf("Take %s away: an effect such as !fs.read({path: p}) gives its answer where it stands.", r.word(k))
}

func noPrint(r around, k int) string {
	return fmt.Sprintf("Take %s away: what is to be seen is the program's result.", r.word(k))
}

func elseHint(around, int) string { return "Write if a then 1 else if b then 2 else 3." }

// raiseHint has the condition under which it is raised, and what else there is, if those stand around.
func raiseHint(r around, k int) string {
	raises, end := r.raises(k)
	open, cond := k-1, k-2
	for deep := 0; cond > 0 && (deep > 0 || r.toks[cond].kind != tokIf); cond-- {
		if kind := r.toks[cond].kind; kind.closes() {
			deep++
		} else if kind.opens() {
			if deep--; deep < 0 {
				break
			}
		}
	}
	if open < 2 || r.toks[cond].kind != tokIf || r.toks[open].kind != tokThen && r.toks[open].kind != tokOpenBrace {
		return fmt.Sprintf("Write %s.", raises)
	}
	for end < len(r.toks)-1 && (r.toks[end].kind == tokCloseBrace && r.toks[open].kind == tokOpenBrace || r.toks[end].kind == tokSemi || r.toks[end].kind == tokElse) {
		end++
	}
	return fmt.Sprintf("Write if %s then %s else %s.", r.said(cond+1, open), raises, r.body(end))
}

// raises returns what throw, the token k, is here, and the token after it.
func (r around) raises(k int) (string, int) {
	at := k + 1
	if r.word(at) == "new" {
		at++
	}
	if r.toks[at].kind == tokName && r.toks[at+1].kind == tokOpen { // Error("x")
		at++
	}
	end := r.end(at, ";", "else")
	return fmt.Sprintf("raise(%s)", r.said(at, end)), end
}

func switchHint(r around, k int) string {
	open := r.end(k+1, "{", ":")
	first := "0"
	if r.word(open+1) == "case" {
		first = r.said(open+2, r.end(open+2, ":"))
	}
	return fmt.Sprintf("Write match %s { %s => a; _ => b }.", r.said(k+1, open), first)
}

// colon returns a hint for if a: b else: c, and for a name with a type, x: int = 1.
func (r around) colon() string {
	for k := r.i - 1; k >= 0; k-- {
		switch r.toks[k].kind {
		case tokLet:
			if end := r.end(r.i, "=", ","); k == r.i-2 && r.word(end) == "=" {
				return fmt.Sprintf("Write no type: let %s = %s.", r.word(k+1), r.said(end+1, r.end(end+1, ";", "in")))
			}
		case tokIf:
			no := r.end(r.i, "else")
			other := min(no+1, len(r.toks)-1)
			if r.toks[other].kind == tokColon {
				other++
			}
			return fmt.Sprintf("Write if %s then %s else %s.", r.said(k+1, r.i), r.said(r.i+1, no), r.said(other, r.end(other)))
		case tokThen:
			return ""
		}
	}
	return ""
}

// keyword returns a hint for an operand that is given by its name, sorted(xs, reverse=True).
func (r around) keyword() string {
	open := r.i - 2
	for deep := 0; open > 0 && (deep > 0 || r.toks[open].kind != tokOpen); open-- {
		if kind := r.toks[open].kind; kind.closes() {
			deep++
		} else if kind.opens() {
			deep--
		}
	}
	if open < 1 || r.toks[open-1].kind != tokName {
		return ""
	}
	list := r.said(open+1, r.end(open+1, ","))
	if open+1 == r.i-1 && open > 2 { // xs.sort(key=f)
		list = r.word(open - 3)
	}
	by := map[string]string{"sorted": "sort_by", "sort": "sort_by", "max": "max_by", "min": "min_by"}[r.word(open-1)]
	f := r.said(r.i+1, r.end(r.i+1, ","))
	if k := r.i + 1; r.word(k) == "lambda" {
		colon := r.end(k+1, ":")
		f = fmt.Sprintf("%s => %s", r.params(k+1, colon), r.said(colon+1, r.end(colon+1, ",")))
	}
	switch key := r.word(r.i - 1); {
	case key == "default" && (r.word(open-1) == "max" || r.word(open-1) == "min"):
		return fmt.Sprintf("Write if isEmpty(%[1]s) then %[2]s else %[3]s(%[1]s).", list, r.said(r.i+1, r.end(r.i+1, ",")), r.word(open-1))
	case key == "key" && by != "" && r.word(r.end(r.i+1, ",")+1) == "reverse":
		return fmt.Sprintf("Write reverse(%s(%s, %s)).", by, f, list)
	case key == "key" && by != "":
		return fmt.Sprintf("Write %s(%s, %s).", by, f, list)
	case key == "reverse" && by == "sort_by":
		return fmt.Sprintf("Write reverse(sort(%s)), or sort(%[1]s) for the smallest first.", list)
	}
	return "Operands have no names: write them in their order, f(a, b). To compare write a == b."
}

// operandBefore returns the first token of the operand, with fields and arguments, that ends before
// token k, and operandAfter the token after the one that begins at k.
func (r around) operandBefore(k int) int {
	for k > 0 {
		k--
		switch kind := r.toks[k].kind; {
		case kind.closes():
			for deep := 1; deep > 0 && k > 0; {
				k--
				if kind := r.toks[k].kind; kind.closes() {
					deep++
				} else if kind.opens() {
					deep--
				}
			}
			if k > 0 && r.toks[k-1].kind.ends() && r.toks[k-1].end == r.toks[k].off {
				continue
			}
		}
		if k > 1 && r.toks[k-1].kind == tokDot {
			k--
			continue
		}
		return k
	}
	return k
}

func (r around) operandAfter(k int) int {
	for k < len(r.toks)-1 {
		kind := r.toks[k].kind
		if k++; kind.opens() {
			k = min(r.end(k)+1, len(r.toks)-1)
		}
		if next := r.toks[k].kind; next != tokDot && kind != tokDot && (next != tokOpen || r.toks[k].off != r.toks[k-1].end) {
			return k
		}
	}
	return k
}

// unequal returns a hint for a /= b, where the token here is the =.
func (r around) unequal() string {
	from := r.operandBefore(r.i - 1)
	for from > 1 && r.toks[from-1].kind >= tokPlus && r.toks[from-1].kind <= tokMod {
		from = r.operandBefore(from - 1)
	}
	left, right := r.said(from, r.i-1), r.said(r.i+1, r.operandAfter(r.i+1))
	if from == r.i-2 && r.toks[from].kind == tokName && (from == 0 || r.toks[from-1].kind == tokSemi || r.toks[from-1].kind == tokOpenBrace || r.reader.begins(from)) {
		return fmt.Sprintf("Values never change: write let y = %s / … for another value, and %[1]s != %[2]s for whether they differ.", left, right)
	}
	return fmt.Sprintf("Write %s != %s.", left, right)
}

// params returns the parameters of another language's function as a function here has
// them.
func (r around) params(a, b int) string {
	s := r.said(a, b)
	switch {
	case s == "…":
		return "_"
	case strings.HasPrefix(s, "(") && r.end(a+1) == b-1:
		return s
	case strings.Contains(s, ","):
		return "(" + s + ")"
	}
	return s
}

// foreignFunction returns a hint for def f(a, b): …, and function (a) { … }.
func (r around) foreignFunction(k int) string {
	name := ""
	if k++; r.toks[k].kind == tokName {
		name = r.word(k)
		k++
	}
	if r.toks[k].kind != tokOpen {
		return "Write a function as x => x + 1 or (x, y) => x + y."
	}
	params, body := r.foreignHead(k)
	f := fmt.Sprintf("%s => %s", params, r.one(params, r.body(body)))
	if name == "" {
		return fmt.Sprintf("Write %s.", f)
	}
	return fmt.Sprintf("Write %s, and name it with let where it is used: let %s = %s in %s(1).", f, name, f, name)
}

// binds returns a hint for const x where nothing is bound.
func (r around) binds(k int) string {
	if k > 1 && r.word(k-2) == "for" { // for (const x of xs)
		return r.loop(k - 2)
	}
	return "Write let x = 1 in x + 1."
}

// over returns what a loop goes through, from its for on: the name of an item, the
// list, and where that ends; ok is false of a loop that counts.
func (r around) over(k int) (item, list string, end int, ok bool) {
	if k++; r.toks[k].kind == tokOpen {
		k++
	}
	if r.toks[k].kind == tokLet || r.word(k) == "const" || r.word(k) == "var" {
		k++
	}
	in := r.end(k, "in", "of", ";", "{")
	if w := r.word(in); w != "in" && w != "of" {
		return "", "", 0, false
	}
	end = r.end(in+1, ":", "{", "if", "for")
	return r.params(k, in), r.said(in+1, end), end, true
}

// loop returns a hint for a loop that stands where a statement would.
func (r around) loop(k int) string {
	for k > 0 && r.word(k) == "of" || k > 0 && r.toks[k].kind != tokName || k > 0 && r.word(k) != "for" && r.word(k) != "foreach" {
		k--
	}
	item, list, _, ok := r.over(k)
	switch {
	case r.word(k) != "for" && r.word(k) != "foreach":
		return ""
	case ok:
		inner := item
		if strings.HasPrefix(item, "([") || strings.HasPrefix(item, "({") {
			inner = item[1 : len(item)-1]
		}
		return fmt.Sprintf("Write map(%s => …, %s) for what comes of each item, or fold for one value of all: fold((acc, %s) => …, init, %s).", item, list, inner, list)
	}
	if semi := r.end(k+2, ";"); r.toks[k+1].kind == tokOpen && r.toks[semi].kind == tokSemi {
		if less := r.end(semi+1, "<", "<=", ";"); r.word(less) == "<" {
			name := r.said(semi+1, less)
			return fmt.Sprintf("Write map(%s => …, range(0, %s)) for what comes of each number, or fold for one value of all.", name, r.said(less+1, r.end(less+1, ";")))
		}
	}
	return "Write map(x => x * 2, list) for what comes of each item, or fold((acc, x) => acc + x, 0, list) for one value of all."
}

// while returns a hint for a loop that goes on as long as something holds.
func (r around) while(k int) string {
	end := r.end(k+1, ":", "{", "do")
	condition, names := r.said(k+1, end), []string{}
	for i := k + 1; i < end; i++ {
		if r.toks[i].kind == tokName && r.toks[i-1].kind != tokDot && r.toks[i+1].kind != tokOpen && !slices.Contains(names, r.word(i)) {
			names = append(names, r.word(i))
		}
	}
	params := strings.Join(names, ", ")
	if len(names) > 1 {
		params = "(" + params + ")"
	}
	if condition == "…" || len(names) == 0 {
		return "Write what goes on as long as something holds as a function that calls itself: let go = n => if n > 1 then go(n / 2) else n; go(start)."
	}
	return fmt.Sprintf("Write what goes on as long as something holds as a function that calls itself, of what changes: let go = %[1]s => if %[2]s then go(…) else the result; go(…).", params, condition)
}
