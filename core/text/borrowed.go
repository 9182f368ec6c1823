package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// methods is what other languages call the operations that x.f(y) of theirs is exactly.
var methods = map[string]string{
	"includes": "contains", "indexOf": "index_of", "lastIndexOf": "last_index_of", "findIndex": "find_index",
	"startsWith": "starts_with", "startswith": "starts_with", "endsWith": "ends_with", "endswith": "ends_with",
	"toUpperCase": "upper", "toLowerCase": "lower", "strip": "trim", "replaceAll": "replace", "toString": "to_text",
	"padStart": "pad_left", "rjust": "pad_left", "padEnd": "pad_right", "ljust": "pad_right",
	"append": "push", "reduce": "fold", "flat": "flatten", "flatMap": "flat_map", "some": "any", "every": "all",
	"items": "entries", "hasOwnProperty": "has", "size": "length", "set": "put", "localeCompare": "compare",
	"toFixed": "round", "takeWhile": "find_index", "dropWhile": "find_index", "zfill": "pad_left", "capitalize": "title", "with": "put",
	"toSorted": "sort", "toReversed": "reverse", "charAt": "at", "substring": "slice",
	"rev": "reverse", "windows": "window", "chunks": "chunk", "len": "length", "is_empty": "isEmpty", "to_string": "to_text", "to_uppercase": "upper", "to_lowercase": "lower",
	"split_whitespace": "words", "splitlines": "lines", "max_by_key": "max_by", "min_by_key": "min_by", "sort_by_key": "sort_by", "contains_key": "has",
	"sortBy": "sort_by", "groupBy": "group_by", "countBy": "count_by", "minBy": "min_by", "maxBy": "max_by", "mapValues": "map_values", "keyBy": "index_by",
}

// whole is what other languages call of a list that gives the same list.
var whole = map[string]bool{"iter": true, "into_iter": true, "collect": true, "to_vec": true, "cloned": true, "copied": true, "clone": true, "toList": true, "to_list": true, "toArray": true, "stream": true}

// functions is what other languages call operations before their operands.
var functions = map[string]string{
	"len": "length", "list": "chars", "Object.groupBy": "group_by", "str": "to_text", "String": "to_text", "sorted": "sort", "reversed": "reverse",
	"Math.floor": "floor", "Math.round": "round", "Math.ceil": "ceil", "Math.abs": "abs", "Math.max": "max", "Math.min": "min", "Math.pow": "pow",
	"Math.sqrt": "sqrt", "Math.trunc": "to_int", "trunc": "to_int", "int": "to_int", "to_fixed": "round", "toFixed": "round",
	"takeWhile": "find_index", "take_while": "find_index", "dropWhile": "find_index", "drop_while": "find_index",
	"pick": "filter_entries", "omit": "filter_entries", "capitalize": "title", "first": "head",
	"Array.isArray": "type_of", "is_list": "type_of", "isList": "type_of", "is_string": "type_of", "isString": "type_of",
	"is_record": "type_of", "isRecord": "type_of", "is_number": "type_of", "isNumber": "type_of",
	"year": "parse_time", "month": "parse_time", "day": "parse_time", "hour": "parse_time", "minute": "parse_time",
	"ord": "codepoints", "chr": "from_codepoints", "String.fromCharCode": "from_codepoints", "String.fromCodePoint": "from_codepoints",
	"re_test": "re_match", "parse_dec": "to_dec", "parse_float": "to_dec", "parseFloat": "to_dec", "float": "to_dec", "parseInt": "parse_int",
	"format_number": "format", "reduce": "fold", "localeCompare": "compare", "is_empty": "isEmpty", "has_key": "has", "flat": "flatten", "average": "mean", "avg": "mean",
	"sortBy": "sort_by", "groupBy": "group_by", "countBy": "count_by", "minBy": "min_by", "maxBy": "max_by", "mapValues": "map_values", "keyBy": "index_by", "flatMap": "flat_map",
	"concatMap": "flat_map", "zipWith": "zip_with", "dict": "from_entries", "set": "unique", "parseCsv": "parse_csv", "toCsv": "to_csv", "indexOf": "index_of",
	"to_lower": "lower", "to_upper": "upper", "distinct": "unique", "uniq": "unique", "toString": "to_text", "to_string": "to_text",
	"JSON.parse": "parse_json", "JSON.stringify": "to_json", "json.loads": "parse_json", "json.dumps": "to_json",
	"Object.keys": "keys", "Object.values": "values", "Object.entries": "entries", "Object.fromEntries": "from_entries",
}

// borrows reports whether a name that nothing binds may be read as an operation, by
// itself or with a word after a point.
func borrows(name string) bool {
	switch name {
	case "Math", "JSON", "json", "Object", "String", "Array":
		return true
	}
	return functions[name] != ""
}

// borrowed reads a name of [functions] before its operands as the operation.
func (r *reader) borrowed(c *callee) bool {
	if r.older || r.scope[c.name] > 0 {
		return false
	}
	i := r.i
	if r.toks[i+1].kind == tokDot && r.toks[i+2].kind.word() {
		i += 2
		c.name += "." + r.src[r.toks[i].off:r.toks[i].end]
	} else if k := r.toks[i+1].kind; k != tokOpen && (k != tokComma && k != tokClose || c.name == "list") {
		return false
	}
	name, ok := functions[c.name]
	if ok {
		c.id, c.row, _ = prim.Lookup(name)
		c.tok, c.name, r.i = r.toks[i], name, i
	}
	return ok
}

// part returns what a name stands for that isn't the operation alone which it is read as, or
// operands that the operation hasn't; nil where c is written otherwise.
func (r *reader) part(c callee, args []term.Term) term.Term {
	if r.older || c.row == nil || len(args) == 0 {
		return nil
	}
	at, n := term.At(c.tok.off), len(args)
	str := func(s string) term.Term { return &term.Str{At: at, Value: s} }
	num := func(n int64) term.Term { return &term.Int{At: at, Value: n} }
	last, literal := args[n-1].(*term.Int)
	switch name := r.src[c.tok.off:c.tok.end]; name {
	case "year", "month", "day", "hour", "minute":
		return operationOf(at, "get", operationOf(at+1, "parse_time", args[0]), str(name))
	case "list":
		return r.ofList(c, args[0])
	case "ord":
		return &term.Prim{At: at, ID: prim.At, Args: []term.Term{operationOf(at+1, "codepoints", args[0]), num(0)}}
	case "reduce": // the list may stand before what it begins with
		if (c.tok.off == 0 || r.src[c.tok.off-1] != '.') && n == 3 && literally(args[2]) && !literally(args[1]) {
			args[1], args[2] = args[2], args[1]
		}
	case "chr", "fromCharCode", "fromCodePoint":
		return operationOf(at, "from_codepoints", &term.List{At: at, Items: args})
	case "to_fixed", "toFixed":
		if n == 2 {
			c.tok.end = c.tok.off
			t, _ := r.apply(c, args)
			return operationOf(at, "to_text", t)
		}
	case "zfill":
		if r.before(15) {
			return operationOf(at, "pad_left", append(args, str("0"))...)
		}
		width := args[n-1]
		return bound(at, prim.Fresh("text", width), args[0], func(s term.Term) term.Term { // the zeros stand after a sign
			rest := &term.Prim{At: at, ID: prim.At, Args: []term.Term{again(s), num(1), &term.Unit{At: at}}}
			first := &term.Prim{At: at, ID: prim.At, Args: []term.Term{again(s), &term.Unit{At: at}, num(1)}}
			less := operationOf(at, "max", &term.List{At: at, Items: []term.Term{&term.Prim{At: at, ID: prim.Sub, Args: []term.Term{again(width), num(1)}}, num(0)}})
			signed := operationOf(at, "re_match", s, str("^[+-]"))
			return &term.If{At: at, Cond: signed, Then: operationOf(at, "concat", first, operationOf(at, "pad_left", rest, less, str("0"))), Else: operationOf(at, "pad_left", again(s), width, str("0"))}
		})
	case "capitalize":
		return bound(at, "text", args[0], func(s term.Term) term.Term {
			part := func(f string, from, to term.Term) term.Term {
				return operationOf(at, f, &term.Prim{At: at, ID: prim.At, Args: []term.Term{again(s), from, to}})
			}
			null := &term.Unit{At: at}
			return operationOf(at, "concat", part("upper", null, num(1)), part("lower", num(1), null))
		})
	case "parse_int", "parseInt", "int":
		switch {
		case n == 2 && literal && last.Value == 10, name == "int" && !literal && r.kinds.always(args[0], prim.KindString):
			return operationOf(at, "parse_int", args[0])
		case n == 2 && (literal || name != "int"):
			return operationOf(at, "from_base", args...)
		case name == "int" && !isNumber(args[0]) && !r.kinds.always(args[0], prim.KindNumber):
			x := r.own(args[0], "x")
			r.fail(c.tok, &fault.Fault{Message: "int is of a text or of a number", Expected: "parse_int or to_int", Hint: fmt.Sprintf("Write parse_int(%[1]s) for the integer that a text spells, to_int(%[1]s) for a number without its fraction.", x)})
			return args[0]
		}
	case "split":
		if n == 1 {
			return operationOf(at, "words", args[0])
		}
	case "div_dec":
		if n == 3 {
			return operationOf(at, name, append(args, str("half_up"))...)
		}
	case "range":
		if n == 3 && literal && last.Value != 0 {
			return steps(at, args[0], args[1], last.Value)
		}
	case "enumerate":
		if n == 2 && literal {
			i, x := &term.Var{At: at, Name: "i"}, &term.Var{At: at, Name: "x"}
			place := &term.Prim{At: at, ID: prim.Add, Args: []term.Term{i, last}}
			item := func(name string) prim.Pattern { return prim.Pattern{At: at, Name: name, Bind: true} }
			both := prim.Pattern{At: at, IsPair: true, Items: []prim.Pattern{item(i.Name), item(x.Name)}}
			f := prim.FunctionOf([]prim.Parameter{{At: at, Pattern: both}}, &term.Prim{At: at, ID: prim.Pair, Args: []term.Term{place, x}})
			return operationOf(at, "map", f, operationOf(at+1, name, args[0]))
		}
	case "takeWhile", "take_while", "dropWhile", "drop_while":
		if n == 2 && isLam(args[1]) {
			args[0], args[1] = args[1], args[0]
		}
		return while(at, args[0], args[1], name[0] == 't')
	case "pick", "omit":
		rec, keys := args[0], args[1]
		if isList(rec) {
			rec, keys = keys, rec
		}
		return bound(at, prim.Fresh("keys", rec), keys, func(keys term.Term) term.Term {
			key := prim.Fresh("key", keys)
			test := operationOf(at, "contains", keys, &term.Var{At: at, Name: key})
			if name == "omit" {
				test = &term.Prim{At: at, ID: prim.Not, Args: []term.Term{test}}
			}
			f := &term.Lam{At: at, Param: key, Body: &term.Lam{At: at, Param: prim.Fresh("value", test), Body: test}}
			return operationOf(at, "filter_entries", f, rec)
		})
	case "isArray", "is_list", "isList", "is_string", "isString", "is_record", "isRecord", "is_number", "isNumber":
		kind := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(name, "is"), "_"))
		of := operationOf(at+1, "type_of", args[0])
		if kind == "number" {
			return operationOf(at, "contains", &term.List{At: at, Items: []term.Term{str("int"), str("dec")}}, of)
		}
		return operationOf(at, "equal", of, str(strings.Replace(kind, "array", "list", 1)))
	}
	return nil
}

// own returns a term in the text form where it is short, and other elsewhere.
func (r *reader) own(t term.Term, other string) string {
	const each, all = 1000, 50_000 // terms that are looked at
	n := 0
	var count func(term.Term) bool
	count = func(t term.Term) bool {
		n++
		return n < each && term.Children(t, count)
	}
	count(t)
	if r.owned += n; n >= each || r.owned > all {
		return other
	}
	if s := string(Print(t)); len(s) <= 60 && !strings.Contains(s, "\n") {
		return s
	}
	return other
}

// steps returns the integers from one on, before another, in steps.
func steps(at term.At, from, to term.Term, step int64) term.Term {
	op := func(id term.ID, a, b term.Term) term.Term { return &term.Prim{At: at, ID: id, Args: []term.Term{a, b}} }
	return bound(at, prim.Fresh("from", to), from, func(from term.Term) term.Term {
		far, by := op(prim.Sub, to, again(from)), step
		if step < 0 {
			far, by = op(prim.Sub, again(from), to), -step
		}
		i := &term.Var{At: at, Name: prim.Fresh("i", from)}
		f := &term.Lam{At: at, Param: i.Name, Body: op(prim.Add, again(from), op(prim.Mul, i, &term.Int{At: at, Value: step}))}
		count := op(prim.Div, op(prim.Add, far, &term.Int{At: at, Value: by - 1}), &term.Int{At: at, Value: by})
		return operationOf(at, "map", f, operationOf(at, "range", &term.Int{At: at}, count))
	})
}

// while returns the items of a list up to the first of which f isn't true, or those from
// it on.
func while(at term.At, f, list term.Term, take bool) term.Term {
	x := prim.Fresh("x", f)
	var test term.Term = &term.App{At: at + 1, Func: f, Arg: &term.Var{At: at, Name: x}}
	if l, ok := f.(*term.Lam); ok {
		x, test = l.Param, l.Body
	}
	ends := &term.Lam{At: at, Param: x, Body: &term.Prim{At: at + 1, ID: prim.Not, Args: []term.Term{test}}}
	return bound(at, prim.Fresh("list", f), list, func(list term.Term) term.Term {
		return bound(at, prim.Fresh("end", list), operationOf(at, "find_index", ends, list), func(i term.Term) term.Term {
			all, name := again(list), "take"
			if !take {
				all, name = &term.List{At: at}, "drop"
			}
			none := &term.Prim{At: at, ID: prim.Lt, Args: []term.Term{i, &term.Int{At: at}}}
			return &term.If{At: at, Cond: none, Then: all, Else: operationOf(at, name, again(i), again(list))}
		})
	})
}

// numberLayout is how other languages say how a number is written: +,.2f, 05d, .1% or #,##0.00.
var numberLayout = lazyregexp.New(`^(?:\{:)?(\+?)(?:(0?)([1-9]\d?))?(#,##|,|)(?:0(?:\.(0{1,9}))?(%?)|(?:\.(\d))?([fd%]))\}?$`)

// laid returns the parts of a layout that is written out; nil where t is none.
func laid(t term.Term) []string {
	s, ok := t.(*term.Str)
	if !ok {
		return nil
	}
	layout := s.Value
	if len(layout) > 1 && strings.Trim(layout, "0") == "" { // 00 is 02d
		layout = fmt.Sprintf("0%dd", len(layout))
	}
	european := strings.HasPrefix(layout, "#.##0") // 1.234,50
	if european {
		layout = strings.NewReplacer(".", ",", ",", ".").Replace(layout)
	}
	m := numberLayout.FindStringSubmatch(layout)
	if m == nil || m[7] == "" && (m[8] == "f" || m[8] == "%") || m[7] != "" && m[8] == "d" || m[2] != "" && m[4] != "" {
		return nil
	}
	if european {
		m[4] = "."
	}
	return m
}

// formatted returns format(x, "+,.2f") and the like, by the parts of the layout, as format
// with so many digits. Without a comma in it nothing stands between thousands.
func (r *reader) formatted(c callee, x term.Term, m []string) term.Term {
	at := term.At(c.tok.off)
	num := func(n int) term.Term { return &term.Int{At: at, Value: int64(n)} }
	str := func(s string) term.Term { return &term.Str{At: at, Value: s} }
	digits, percent := len(m[5]), ""
	if m[7] != "" {
		digits = int(m[7][0] - '0')
	}
	if m[6]+m[8] == "%" || m[8] == "%" {
		percent = "%"
		x = &term.Prim{At: at, ID: prim.Mul, Args: []term.Term{r.exact(x, num(digits+2), str("half_up")), num(100)}}
	} else if digits > 0 || m[8] == "f" {
		x = r.exact(x, num(digits), str("half_up"))
	}
	written := func(x term.Term) term.Term {
		args := []term.Term{x, num(digits)}
		if m[4] == "" || m[4] == "." {
			args = append(args, str(m[4]))
		}
		t := operationOf(at, "format", args...)
		if percent != "" {
			t = operationOf(at, "concat", t, str(percent))
		}
		return t
	}
	width, _ := strconv.Atoi(m[3])
	fill := func(t term.Term, less int, with string) term.Term {
		if width <= less {
			return t
		}
		return operationOf(at, "pad_left", t, num(width-less), str(with))
	}
	joined := func(sign string, t term.Term) term.Term {
		if sign == "" {
			return t
		}
		return operationOf(at, "concat", str(sign), t)
	}
	if m[1] == "" && m[2] == "" {
		return fill(written(x), 0, " ")
	}
	return bound(at, "number", x, func(x term.Term) term.Term {
		less := &term.If{At: at, Cond: &term.Prim{At: at, ID: prim.Lt, Args: []term.Term{x, num(0)}}}
		if m[2] == "" {
			less.Then, less.Else = written(again(x)), joined("+", written(again(x)))
			return fill(less, 0, " ")
		}
		opposite := &term.Prim{At: at, ID: prim.Sub, Args: []term.Term{num(0), again(x)}}
		less.Then, less.Else = joined("-", fill(written(opposite), 1, "0")), joined(m[1], fill(written(again(x)), len(m[1]), "0"))
		return less
	})
}

// method returns the operation that x.name(…) is; ok is false where it is none.
func method(name string) (c callee, ok bool) {
	if of, is := methods[name]; is {
		name = of
	}
	c.name = name
	c.id, c.row, ok = prim.Lookup(name)
	return c, ok && isMethod(c.id)
}

// sliced reads x.slice(from), and x.slice(from, to) that counts from the end, as x[from:to].
func sliced(c callee, x term.Term, args []term.Term) (term.Term, bool) {
	negative := func(t term.Term) bool {
		n, ok := t.(*term.Int)
		return ok && n.Value < 0
	}
	if c.row.Name != "slice" || len(args) != 1 && (len(args) != 2 || !slices.ContainsFunc(args, negative)) {
		return nil, false
	}
	at := term.At(c.tok.off)
	if len(args) == 1 {
		args = append(args, &term.Unit{At: at})
	}
	return &term.Prim{At: at, ID: prim.At, Args: append([]term.Term{x}, args...)}, true
}

// length reads x.length: the field of a record, and otherwise how long x is.
func (r *reader) length(at term.At, x, field term.Term) term.Term {
	const counted = prim.KindString | prim.KindList
	kinds := r.kinds.of(x) & prim.KindAny
	if r.kinds.always(x, counted) {
		return operationOf(at, "length", x)
	}
	if v, ok := x.(*term.Var); r.older || kinds != 0 && kinds&counted == 0 || ok && r.hasFields()[v.Name] {
		return field
	}
	return bound(at, "whole", x, func(v term.Term) term.Term {
		return lengthOf(at, v, operationOf(at, "get", v, &term.Str{At: at, Value: "length"}))
	})
}

func lengthOf(at term.At, v, field term.Term) term.Term {
	record := operationOf(at, "equal", operationOf(at, "type_of", v), &term.Str{At: at, Value: "record"})
	return &term.If{At: at, Cond: record, Then: field, Else: operationOf(at, "length", v)}
}

// lengthIn returns what t is the length of, where it is read from x.length.
func lengthIn(t term.Term) (x term.Term, ok bool) {
	app, applied := t.(*term.App)
	if applied {
		l, ok := app.Func.(*term.Lam)
		if !ok {
			return nil, false
		}
		t = l.Body
	}
	c, ok := t.(*term.If)
	if !ok {
		return nil, false
	}
	long, ok := c.Else.(*term.Prim)
	if !ok || long.ID != prim.Length || c.Pos() != long.Pos() || c.Pos() != c.Cond.Pos() {
		return nil, false
	}
	if applied {
		return app.Arg, true
	}
	return long.Args[0], true
}

// hasFields gives the names that stand before a point and a word that is no method, and
// so are records.
func (r *reader) hasFields() map[string]bool {
	if r.fielded == nil {
		r.fielded = map[string]bool{}
		for i := 0; i+2 < len(r.toks); i++ {
			if t, key := r.toks[i], r.toks[i+2]; t.kind == tokName && r.toks[i+1].kind == tokDot && key.kind.word() && r.src[key.off:key.end] != "length" && (i+3 == len(r.toks) || r.toks[i+3].kind != tokOpen) {
				r.fielded[r.src[t.off:t.end]] = true
			}
		}
	}
	return r.fielded
}

// asPair returns a parameter that is written as a list of two where it is passed a pair.
func asPair(p prim.Parameter) prim.Parameter {
	if len(p.Items) == 2 && p.Rest == nil {
		p.IsList, p.IsPair = false, true
	}
	return p
}
