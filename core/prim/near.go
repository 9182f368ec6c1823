package prim

import "strings"

// also is what people and models write where they mean a row.
var also = map[string]string{
	"plus": "add", "+": "add", "minus": "sub", "subtract": "sub", "-": "sub",
	"times": "mul", "multiply": "mul", "*": "mul", "divide": "div", "/": "div", "quotient": "div",
	"modulo": "mod", "rem": "mod", "remainder": "mod", "%": "mod",
	"equals": "equal", "same": "equal", "deep_equal": "equal", "cmp": "compare", "typeof": "type_of", "type": "type_of", "==": "eq", "=": "eq", "<": "lt", "less": "lt", "<=": "lte", "le": "lte", "leq": "lte",
	">": "gt", "greater": "gt", ">=": "gte", "ge": "gte", "geq": "gte",
	"&&": "and", "||": "or", "!": "not", "~": "not",
	"lambda": "lam", "fn": "lam", "fun": "lam", "function": "lam", "\\": "lam", "λ": "lam",
	"apply": "app", "call": "app", "variable": "var", "ref": "var", "name": "var", "ite": "if", "ternary": "if",
	"empty": "nil", "list": "cons", "prepend": "cons", "append_one": "push",
	"car": "head", "first": "head", "cdr": "tail", "rest": "tail", "is_empty": "isEmpty", "null?": "isEmpty", "isnil": "isEmpty",
	"len": "length", "size": "length", "reduce": "fold", "foldl": "fold", "foldr": "fold",
	"tuple": "pair", "left": "fst", "second": "snd", "right": "snd",
	"strcat": "concat", "string_concat": "concat", "++": "concat",
	"recurse": "self", "rec": "self", "this": "self", "recur": "self", "loop": "continue", "next": "continue",
	"code": "code_of", "codeof": "code_of", "object": "record", "dict": "record", "map_get": "get", "lookup": "get", "field": "get", "set": "put", "insert": "put", "update": "put", "delete": "del", "remove": "del", "contains_key": "has", "member": "contains", "includes": "contains", "items": "entries",
	"str": "to_text", "to_string": "to_text", "tostring": "to_text", "show": "to_text", "stringify": "to_json", "json": "parse_json", "int": "parse_int", "decimal": "dec", "float": "dec", "uppercase": "upper", "lowercase": "lower", "strip": "trim", "substring": "slice", "substr": "slice", "index": "nth", "at": "nth", "get_nth": "nth",
	"throw": "raise", "error": "raise", "fail": "raise", "catch": "try", "switch": "match", "case": "match", "where": "let", "let*": "let", "exec": "eval", "unquote": "eval",
	"round": "round_dec", "tofixed": "round_dec", "floor": "to_int", "ceil": "to_int", "ceiling": "to_int", "trunc": "to_int", "truncate": "to_int",
	"power": "pow", "number": "to_dec", "parsefloat": "to_dec", "parseint": "parse_int", "parse": "parse_json", "some": "any", "every": "all", "foreach": "map",
	"touppercase": "upper", "tolowercase": "lower", "charat": "slice", "indexof": "index_of", "replaceall": "replace", "sorted": "sort",
	"distinct": "unique", "uniq": "unique", "group_by": "group", "groupby": "group", "assign": "merge", "fromentries": "from_entries",
	"maximum": "max", "minimum": "min", "concatenate": "concat",
}

// absent is what other languages have and this one hasn't, so that nothing that is
// merely spelled like it is meant.
var absent = map[string]bool{
	"sqrt": true, "cbrt": true, "log": true, "log10": true, "exp": true, "sin": true, "cos": true, "tan": true, "random": true, "print": true,
	"regex": true, "regex_match": true, "test": true, "padstart": true, "padend": true, "ljust": true, "rjust": true, "zfill": true, "date": true, "now": true,
}

// Meant is the operation that a word of other languages means, whatever it is
// spelled like; known is set, too, where it means none.
func Meant(word string) (name string, known bool) {
	word = strings.ToLower(word)
	if r, ok := also[word]; ok {
		return r, true
	}
	return "", absent[word]
}

// instead is what to write for forms that other languages have and this one
// spells with its own.
var instead = map[string]string{
	"letrec": `Use {"self":true} in a tool for recursion, or a function that takes itself.`,
}

// Instead is an imperative sentence on how to write what an unknown operation
// of that name usually means; empty if there is nothing to say.
func Instead(name string) string { return instead[strings.ToLower(name)] }

// Nearest is the operation that an unknown name most likely means: its spelling
// in another case, a word for the same thing, or the name with the fewest
// differing letters; empty if none is near.
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
	return Closest(name, names)
}

// Closest is the name of the list with the fewest letters to change, add, take
// away or swap with a neighbour to make word; empty if more than a third
// (at least one) of the letters differ. Of names as near, one that begins as word
// does comes first.
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
	return best
}

// distance is the optimal string alignment distance (Levenshtein with swaps).
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
