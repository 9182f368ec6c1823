package prim

import (
	"fmt"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// The library: what can be said in PIF is said in PIF. A row's Body is a
// function of its operands in the text form, and a use of the row means that
// function applied to them (see [Expand]): its steps are the body's, its
// faults have the place of the use. A function that calls itself is given to
// itself, since self is the tool's.

var (
	fAndList    = []Param{{"f", KindFunction}, {"list", KindList}}
	testAndList = []Param{{"test", KindFunction}, {"list", KindList}}
)

var library = []Row{
	{
		Name: "map", Group: "library", Shape: Array, Params: fAndList, Passes: PassesItem, Result: KindList,
		Doc:  "gives the list of what f makes of each item.",
		Also: []string{"foreach"},
		Examples: []Example{
			{Code: `{"map":[{"lam":"x","body":{"mul":[{"var":"x"},10]}},[1,2,3]]}`, Want: `[10,20,30]`},
			{Code: `{"map":[{"lam":"x","body":{"var":"x"}},5]}`, Fault: fault.TypeError},
		},
		Body: `(f, xs) => reverse(fold(p => cons(f(snd(p)), fst(p)), [], xs))`,
	},
	{
		Name: "filter", Group: "library", Shape: Array, Params: testAndList, Passes: PassesItem, Keeps: true, Result: KindList,
		Doc: "gives the list of the items for which test is true.",
		Examples: []Example{
			{Code: `{"filter":[{"lam":"x","body":{"gt":[{"var":"x"},1]}},[1,2,3]]}`, Want: `[2,3]`},
			{Code: `{"filter":[{"lam":"x","body":{"var":"x"}},[1]]}`, Fault: fault.TypeError},
		},
		Body: `(f, xs) => reverse(fold(p => if f(snd(p)) then cons(snd(p), fst(p)) else fst(p), [], xs))`,
	},
	{
		Name: "reverse", Group: "library", Shape: Unary, Params: oneList, Keeps: true, Result: KindList,
		Doc: "gives the items from the last to the first.",
		Examples: []Example{
			{Code: `{"reverse":{"range":[1,4]}}`, Want: `[3,2,1]`},
			{Code: `{"reverse":"abc"}`, Fault: fault.TypeError},
		},
		Body: `xs => fold(p => cons(snd(p), fst(p)), [], xs)`,
	},
	{
		Name: "append", Group: "library", Shape: Array, Params: []Param{{"first", KindList}, {"second", KindList}}, Result: KindList,
		Doc:  "gives the items of the first list and then those of the second.",
		Also: []string{"concat_lists", "list_concat"},
		Examples: []Example{
			{Code: `{"append":[[1,2],[3]]}`, Want: `[1,2,3]`},
			{Code: `{"append":[[1],2]}`, Fault: fault.TypeError},
		},
		Body: `(xs, ys) => fold(p => cons(snd(p), fst(p)), ys, reverse(xs))`,
	},
	{
		Name: "flatten", Group: "library", Shape: Unary, Params: oneList, Result: KindList,
		Doc: "gives the items of the lists in a list, one after the other.",
		Examples: []Example{
			{Code: `{"flatten":[[1],[],[2,3]]}`, Want: `[1,2,3]`},
			{Code: `{"flatten":[1]}`, Fault: fault.TypeError},
		},
		Body: `xss => reverse(fold(p => fold(q => cons(snd(q), fst(q)), fst(p), snd(p)), [], xss))`,
	},
	{
		Name: "flat_map", Group: "library", Shape: Array, Params: fAndList, Passes: PassesItem, Result: KindList,
		Doc:  "gives the items of the lists that f makes of each item.",
		Also: []string{"concat_map", "mapcat"},
		Examples: []Example{
			{Code: `{"flat_map":[{"lam":"x","body":[{"var":"x"},{"var":"x"}]},[1,2]]}`, Want: `[1,1,2,2]`},
			{Code: `{"flat_map":[{"lam":"x","body":{"var":"x"}},[1]]}`, Fault: fault.TypeError},
		},
		Body: `(f, xs) => reverse(fold(p => fold(q => cons(snd(q), fst(q)), fst(p), f(snd(p))), [], xs))`,
	},
	{
		Name: "take", Group: "library", Shape: Array, Params: []Param{{"n", KindInt}, {"list", KindList | KindString}}, Keeps: true, Result: KindList | KindString,
		Doc: "gives the first n items of a list, or characters of a string, or all there are.",
		Examples: []Example{
			{Code: `{"take":[2,[1,2,3]]}`, Want: `[1,2]`},
			{Code: `{"take":[-1,[1]]}`, Fault: fault.OutOfRange},
		},
		Body: `(n, xs) => slice(xs, 0, n)`,
	},
	{
		Name: "drop", Group: "library", Shape: Array, Params: []Param{{"n", KindInt}, {"list", KindList | KindString}}, Keeps: true, Result: KindList | KindString,
		Doc: "gives what take leaves.",
		Examples: []Example{
			{Code: `{"drop":[2,[1,2,3]]}`, Want: `[3]`},
			{Code: `{"drop":[9,"abc"]}`, Want: `""`},
			{Code: `{"drop":[-1,[1]]}`, Fault: fault.OutOfRange},
		},
		Body: `(n, xs) => let l = length(xs) in slice(xs, if n > l then l else n, l)`,
	},
	{
		Name: "zip", Group: "library", Shape: Array, Params: []Param{{"first", KindList}, {"second", KindList}}, Pairs: true, Result: KindList,
		Doc: "gives the pairs of the items that stand at the same places, as many as the shorter list has.",
		Examples: []Example{
			{Code: `{"zip":[[1,2,3],["a","b"]]}`, Want: `[{"pair":[1,"a"]},{"pair":[2,"b"]}]`},
			{Code: `{"zip":[1,[2]]}`, Fault: fault.TypeError},
		},
		Rounds: "first",
		Body: `(xs, ys) =>
  let go = (go, xs, ys, acc) =>
    if isEmpty(xs) or isEmpty(ys) then reverse(acc)
    else go(go, tail(xs), tail(ys), cons((head(xs), head(ys)), acc))
  in go(go, xs, ys, [])`,
	},
	{
		Name: "enumerate", Group: "library", Shape: Unary, Params: oneList, Pairs: true, Result: KindList,
		Doc: "gives pairs of each item's index, from 0, and the item.",
		Examples: []Example{
			{Code: `{"enumerate":["a","b"]}`, Want: `[{"pair":[0,"a"]},{"pair":[1,"b"]}]`},
			{Code: `{"enumerate":null}`, Fault: fault.TypeError},
		},
		Body: `xs => reverse(snd(fold(p => (fst(fst(p)) + 1, cons((fst(fst(p)), snd(p)), snd(fst(p)))), (0, []), xs)))`,
	},
	{
		Name: "mean", Group: "library", Shape: Unary, Params: oneList, Result: KindNumber,
		Doc:  "gives the sum of a list's numbers divided by how many there are, as ratio does.",
		Also: []string{"avg", "average"},
		Examples: []Example{
			{Code: `{"mean":[1,2,2]}`, Want: `1.6666666666666667`},
			{Code: `{"mean":[]}`, Fault: fault.EmptyList},
		},
		Body: `xs => if isEmpty(xs) then head(xs) else ratio(sum(xs), length(xs))`,
	},
	{
		Name: "median", Group: "library", Shape: Unary, Params: oneList, Result: KindNumber,
		Doc: "gives the number in the middle of a list's numbers in order, or the mean of the two there.",
		Examples: []Example{
			{Code: `{"median":[5,1,2,10]}`, Want: `3.5`},
			{Code: `{"median":[]}`, Fault: fault.EmptyList},
		},
		Body: `xs => let s = sort(xs), n = length(s) in if n == 0 then head(xs) else ratio(nth(s, n / 2) + nth(s, (n - 1) / 2), 2)`,
	},
	{
		Name: "sum", Group: "library", Shape: Unary, Params: oneList, Result: KindNumber,
		Doc: "adds the numbers of a list; 0 for none.",
		Examples: []Example{
			{Code: `{"sum":[1,2,3]}`, Want: `6`},
			{Code: `{"sum":[1,"2"]}`, Fault: fault.TypeError},
		},
		Body: `xs => fold(p => fst(p) + snd(p), 0, xs)`,
	},
	{
		Name: "product", Group: "library", Shape: Unary, Params: oneList, Result: KindNumber,
		Doc: "multiplies the numbers of a list; 1 for none.",
		Examples: []Example{
			{Code: `{"product":{"range":[1,6]}}`, Want: `120`},
			{Code: `{"product":[null]}`, Fault: fault.TypeError},
		},
		Body: `xs => fold(p => fst(p) * snd(p), 1, xs)`,
	},
	{
		Name: "min", Group: "library", Shape: Unary, Params: oneList, Beside: true, Result: KindAny,
		Doc:  "gives the first of the smallest items, by compare; min(a, b) in the text form is min([a, b]).",
		Also: []string{"minimum"},
		Examples: []Example{
			{Code: `{"min":[3,1,2]}`, Want: `1`},
			{Code: `{"min":[]}`, Fault: fault.EmptyList},
		},
		Body: `xs => fold(p => if compare(snd(p), fst(p)) < 0 then snd(p) else fst(p), head(xs), xs)`,
	},
	{
		Name: "max", Group: "library", Shape: Unary, Params: oneList, Beside: true, Result: KindAny,
		Doc:  "gives the first of the largest items, by compare; max(a, b) in the text form is max([a, b]).",
		Also: []string{"maximum"},
		Examples: []Example{
			{Code: `{"max":["b","c","a"]}`, Want: `"c"`},
			{Code: `{"max":[1,"a"]}`, Fault: fault.TypeError},
		},
		Body: `xs => fold(p => if compare(snd(p), fst(p)) > 0 then snd(p) else fst(p), head(xs), xs)`,
	},
	{
		Name: "any", Group: "library", Shape: Array, Params: testAndList, Passes: PassesItem, Result: KindBool,
		Doc:  "is true if test is for an item; it asks no further then.",
		Also: []string{"some"},
		Examples: []Example{
			{Code: `{"any":[{"lam":"x","body":{"gt":[{"var":"x"},2]}},[1,3,"a"]]}`, Want: `true`},
			{Code: `{"any":[{"lam":"x","body":{"gt":[{"var":"x"},2]}},["a"]]}`, Fault: fault.TypeError},
		},
		Rounds: "list",
		Body: `(f, xs) =>
  let go = (go, xs) => if isEmpty(xs) then false else if f(head(xs)) then true else go(go, tail(xs))
  in go(go, xs)`,
	},
	{
		Name: "all", Group: "library", Shape: Array, Params: testAndList, Passes: PassesItem, Result: KindBool,
		Doc:  "is true if test is for every item; it asks no further where it isn't.",
		Also: []string{"every"},
		Examples: []Example{
			{Code: `{"all":[{"lam":"x","body":{"gt":[{"var":"x"},2]}},[1,"a"]]}`, Want: `false`},
			{Code: `{"all":[1,[2]]}`, Fault: fault.TypeError},
		},
		Rounds: "list",
		Body: `(f, xs) =>
  let go = (go, xs) => if isEmpty(xs) then true else if f(head(xs)) then go(go, tail(xs)) else false
  in go(go, xs)`,
	},
	{
		Name: "find", Group: "library", Shape: Array, Params: []Param{{"test", KindFunction}, {"list", KindList}, {"default", KindAny}}, Passes: PassesItem, Result: KindAny,
		Doc: "gives the first item for which test is true, or default.",
		Examples: []Example{
			{Code: `{"find":[{"lam":"x","body":{"gt":[{"var":"x"},1]}},[1,2,3],null]}`, Want: `2`},
			{Code: `{"find":[{"lam":"x","body":1},[1],null]}`, Fault: fault.TypeError},
		},
		Rounds: "list",
		Body: `(f, xs, default) =>
  let go = (go, xs) => if isEmpty(xs) then default else if f(head(xs)) then head(xs) else go(go, tail(xs))
  in go(go, xs)`,
	},
	{
		Name: "count", Group: "library", Shape: Array, Params: testAndList, Passes: PassesItem, Result: KindInt,
		Doc: "counts the items for which test is true.",
		Examples: []Example{
			{Code: `{"count":[{"lam":"x","body":{"gt":[{"var":"x"},1]}},[1,2,3]]}`, Want: `2`},
			{Code: `{"count":[{"lam":"x","body":1},[1]]}`, Fault: fault.TypeError},
		},
		Body: `(f, xs) => fold(p => if f(snd(p)) then fst(p) + 1 else fst(p), 0, xs)`,
	},
	{
		Name: "partition", Group: "library", Shape: Array, Params: testAndList, Passes: PassesItem, Result: KindPair,
		Doc: "gives the pair of the items for which test is true and those for which it isn't.",
		Examples: []Example{
			{Code: `{"partition":[{"lam":"x","body":{"gt":[{"var":"x"},1]}},[3,1,2]]}`, Want: `{"pair":[[3,2],[1]]}`},
			{Code: `{"partition":[{"lam":"x","body":1},[1]]}`, Fault: fault.TypeError},
		},
		Body: `(f, xs) => fold(p => if f(snd(p)) then (cons(snd(p), fst(fst(p))), snd(fst(p))) else (fst(fst(p)), cons(snd(p), snd(fst(p)))), ([], []), reverse(xs))`,
	},
	{
		Name: "group", Group: "library", Shape: Array, Params: fAndList, Passes: PassesItem, Result: KindRecord,
		Doc: "gives a record of the lists of items for which f gives the same string, under that string.",
		Examples: []Example{
			{Code: `{"group":[{"lam":"x","body":{"if":{"cond":{"gt":[{"var":"x"},1]},"then":"more","else":"one"}}},[1,2,3]]}`, Want: `{"more":[2,3],"one":[1]}`},
			{Code: `{"group":[{"lam":"x","body":{"var":"x"}},[1]]}`, Fault: fault.TypeError},
		},
		Body: `(f, xs) => fold(p => let k = f(snd(p)) in put(fst(p), k, cons(snd(p), get(fst(p), k, []))), {}, reverse(xs))`,
	},
	{
		// Equal items are written alike, so each is held against those only that
		// are written as it is. Decimals are found by what is before their point;
		// lists, pairs and records with a point in them, that may be one of a
		// decimal, are held against all, and all against them.
		Name: "unique", Group: "library", Shape: Unary, Params: oneList, Keeps: true, Result: KindList,
		Doc:  "gives the items without those that an equal one stands before, in their order.",
		Also: []string{"distinct", "uniq"},
		Examples: []Example{
			{Code: `{"unique":[1,2,1,"1",2]}`, Want: `[1,2,"1"]`},
			{Code: `{"unique":[{"pair":[1,{"dec":"2.0"}]},{"pair":[1,2]}]}`, Want: `[{"pair":[1,2.0]}]`},
			{Code: `{"unique":5}`, Fault: fault.TypeError},
		},
		Body: `xs => reverse(snd(fold(p =>
    let x = snd(p), seen = fst(fst(fst(p))), others = snd(fst(fst(p))), kept = snd(fst(p)),
      k = if equal(type_of(x), "dec") then to_text(to_int(x, "floor")) else if equal(type_of(x), "string") then to_json(x) else to_text(x)
    in if contains(k, ".") and not starts_with(k, "\"")
      then if contains(kept, x) then fst(p) else ((seen, cons(x, others)), cons(x, kept))
      else if contains(get(seen, k, []), x) or contains(others, x) then fst(p)
      else ((put(seen, k, cons(x, get(seen, k, []))), others), cons(x, kept)),
  (({}, []), []), xs)))`,
	},
	{
		Name: "sort", Group: "library", Shape: Unary, Params: oneList, Keeps: true, Result: KindList,
		Doc:  "gives the items in order, by compare; equal ones stay in theirs.",
		Also: []string{"sorted"},
		Examples: []Example{
			{Code: `{"sort":[3,1,2]}`, Want: `[1,2,3]`},
			{Code: `{"sort":["b","a",""]}`, Want: `["","a","b"]`},
			{Code: `{"sort":[1,"a"]}`, Fault: fault.TypeError},
		},
		Body: `xs => sort_by(x => x, xs)`,
	},
	{
		// Merge sort, from the first items: sorting n of a list gives them and
		// the rest, so that nothing is split before it is sorted.
		Name: "sort_by", Group: "library", Shape: Array, Params: fAndList, Passes: PassesItem, Keeps: true, Result: KindList,
		Doc: "gives the items in the order of what f makes of them, by compare; those with equals stay in theirs; x => (-x.n, x.name) sorts by n downwards, then by name.",
		Examples: []Example{
			{Code: `{"sort_by":[{"lam":"x","body":{"sub":[0,{"var":"x"}]}},[3,1,2]]}`, Want: `[3,2,1]`},
			{Code: `{"sort_by":[{"lam":"x","body":{"lam":"y","body":1}},[3,1]]}`, Fault: fault.TypeError},
		},
		Rounds: "list",
		Body: `(f, xs) =>
  let merge = (merge, a, b, acc) =>
    if isEmpty(a) then fold(p => cons(snd(p), fst(p)), b, acc)
    else if isEmpty(b) then fold(p => cons(snd(p), fst(p)), a, acc)
    else if compare(f(head(b)), f(head(a))) < 0 then merge(merge, a, tail(b), cons(head(b), acc))
    else merge(merge, tail(a), b, cons(head(a), acc)),
  some = (some, n, xs) =>
    if eq(n, 1) then ([head(xs)], tail(xs))
    else let a = some(some, n / 2, xs), b = some(some, n - n / 2, snd(a)) in (merge(merge, fst(a), fst(b), []), snd(b))
  in if isEmpty(xs) then [] else fst(some(some, length(xs), xs))`,
	},
	{
		Name: "last", Group: "library", Shape: Unary, Params: oneList, Result: KindAny,
		Doc: "gives the last item of a list.",
		Examples: []Example{
			{Code: `{"last":[1,2,3]}`, Want: `3`},
			{Code: `{"last":[]}`, Fault: fault.EmptyList},
		},
		Body: `xs => if isEmpty(xs) then head(xs) else nth(xs, length(xs) - 1)`,
	},
	{
		Name: "repeat", Group: "library", Shape: Array, Params: []Param{{"n", KindInt}, {"item", KindAny}}, Result: KindList,
		Doc: "gives a list of n times the item; none where n isn't positive.",
		Examples: []Example{
			{Code: `{"repeat":[3,"a"]}`, Want: `["a","a","a"]`},
			{Code: `{"repeat":["a",3]}`, Fault: fault.TypeError},
		},
		Rounds: "n",
		Body:   `(n, x) => let go = (go, n, acc) => if n <= 0 then acc else go(go, n - 1, cons(x, acc)) in go(go, n, [])`,
	},
	{
		Name: "compose", Group: "library", Shape: Array, Params: []Param{{"f", KindFunction}, {"g", KindFunction}}, Result: KindFunction,
		Doc: "gives the function that applies g and then f.",
		Examples: []Example{
			{Code: `{"app":[{"compose":[{"lam":"x","body":{"add":[{"var":"x"},1]}},{"lam":"x","body":{"mul":[{"var":"x"},10]}}]},5]}`, Want: `51`},
			{Code: `{"app":[{"compose":[1,{"lam":"x","body":{"var":"x"}}]},5]}`, Fault: fault.TypeError},
		},
		Body: `(f, g) => x => f(g(x))`,
	},
	{
		Name: "pipeline", Group: "library", Shape: Array, Params: []Param{{"functions", KindList}, {"value", KindAny}}, Result: KindAny,
		Doc: "applies each function of a list to what the one before it gave, the first to value.",
		Examples: []Example{
			{Code: `{"pipeline":[[{"lam":"x","body":{"add":[{"var":"x"},1]}},{"lam":"x","body":{"mul":[{"var":"x"},10]}}],5]}`, Want: `60`},
			{Code: `{"pipeline":[[1],5]}`, Fault: fault.TypeError},
		},
		Body: `(fs, x) => fold(p => (snd(p))(fst(p)), x, fs)`,
	},
	{
		Name: "abs", Group: "library", Shape: Unary, Params: []Param{{"number", KindNumber}}, Result: KindNumber,
		Doc: "gives the number without its sign.",
		Examples: []Example{
			{Code: `{"abs":-5}`, Want: `5`},
			{Code: `{"abs":"5"}`, Fault: fault.TypeError},
		},
		Body: `n => if n < 0 then 0 - n else n`,
	},
	{
		Name: "pow", Group: "library", Shape: Array, Params: []Param{{"base", KindNumber}, {"exponent", KindInt}}, Result: KindNumber,
		Doc:  "multiplies the base with itself, exponent times; the exponent isn't negative.",
		Also: []string{"power"},
		Examples: []Example{
			{Code: `{"pow":[2,100]}`, Want: `1267650600228229401496703205376`},
			{Code: `{"pow":[2,-1]}`, Fault: fault.Raised},
		},
		Rounds: "exponent",
		Body: `(b, n) =>
  let go = (go, b, n, acc) =>
    if eq(n, 0) then acc
    else go(go, if eq(n, 1) then b else b * b, n / 2, if eq(n % 2, 1) then acc * b else acc)
  in if n < 0 then raise("` + negativeExponent + `") else go(go, b, n, 1)`,
	},
}

// ParseBody reads the text form; package text sets it, which this package
// can't import.
var ParseBody func(src string) (term.Term, error)

// bodies holds the terms of the rows with a body, read at their first use.
var bodies sync.Map // string → term.Term

// Body returns the function of n operands that a row of the prelude is; nil for other
// rows. It panics if the row's body is no closed function: a test reads them all.
func Body(id term.ID, n int) term.Term {
	row := &Table[id]
	body := row.Body
	if row.Short != "" && n < len(row.Params) {
		body = row.Short
	}
	if body == "" {
		return nil
	}
	if t, ok := bodies.Load(body); ok {
		return t.(term.Term)
	}
	t, err := ParseBody(body)
	if err != nil {
		panic(fmt.Sprintf("prim: the body of %s: %v", row.Name, err))
	}
	bodies.Store(body, t)
	return t
}

// LibraryText returns the record, in the text form, of what the rows of the library are, as
// quoted functions by their names; what a row is with fewer operands is by name/operands.
func LibraryText() string {
	var b strings.Builder
	for i := range Table {
		row := &Table[i]
		if row.Body != "" {
			fmt.Fprintf(&b, ", %q: '{%s}", row.Name, row.Body)
		}
		if row.Short != "" {
			fmt.Fprintf(&b, ", %q: '{%s}", fmt.Sprintf("%s/%d", row.Name, len(row.Params)-1), row.Short)
		}
	}
	return "{" + strings.TrimPrefix(b.String(), ", ") + "}"
}

// Expand returns what the use of a row of the prelude means: its body applied
// to the operands. Every node of the body has the place of the use, so that a
// fault in it is a fault of the use. It returns nil for other rows.
func Expand(p *term.Prim) term.Term {
	body := Body(p.ID, len(p.Args))
	if body == nil {
		return nil
	}
	return apply(term.Relocate(body, func(term.At) term.At { return p.At }), p.Args, p.At)
}

func apply(t term.Term, args []term.Term, at term.At) term.Term {
	for _, a := range args {
		t = &term.App{At: at, Func: t, Arg: a}
	}
	return t
}

const negativeExponent = "pow takes an exponent that isn't negative"
