package prim

import "github.com/mcp-pif/mcp-pif/core/fault"

// The rows of lists and records that are said in PIF, as those of the library are.

var (
	listAndSize  = []Param{{"list", KindList}, {"size", KindInt}}
	listAndItem  = []Param{{"list", KindList}, {"item", KindAny}}
	twoLists     = []Param{{"first", KindList}, {"second", KindList}}
	pathInto     = []Param{{"value", KindRecord | KindList}, {"path", KindList}, {"default", KindAny}}
	fAndRecord   = []Param{{"f", KindFunction}, {"record", KindRecord}}
	testOfRecord = []Param{{"test", KindFunction}, {"record", KindRecord}}
)

// inSecond begins the body of a row of two lists, xs and ys: own is the items of xs,
// each once, and in_second whether an item is one of ys. Like unique it holds an item against those only that are written
// as it is, and what may hold a decimal against all. That both are lists is tested
// before there is much to do.
const inSecond = `
  let none_x = isEmpty(xs), none_y = isEmpty(ys), own = unique(xs),
  key = x => if equal(type_of(x), "dec") then to_text(to_int(x, "floor")) else if equal(type_of(x), "string") then to_json(x) else to_text(x),
  pointed = k => contains(k, ".") and not starts_with(k, "\""),
  seen = fold(p => let k = key(snd(p)), at = if pointed(k) then "" else k in put(fst(p), at, cons(snd(p), get(fst(p), at, []))), {}, ys),
  in_second = x => let k = key(x) in if pointed(k) then contains(ys, x) else contains(get(seen, k, []), x) or contains(get(seen, "", []), x)
  in `

var collections = []Row{
	{
		Name: "find_index", Group: "collections", Shape: Array, Params: testAndList, Passes: PassesItem, Result: KindInt,
		Doc:  "gives how many items stand before the first for which test is true, -1 if there is none.",
		Also: []string{"findindex", "position", "index_where"},
		Examples: []Example{
			{Code: `{"find_index":[{"lam":"x","body":{"gt":[{"var":"x"},10]}},[4,8,15,16]]}`, Want: `2`},
			{Code: `{"find_index":[{"lam":"x","body":{"var":"x"}},[1]]}`, Fault: fault.TypeError},
		},
		Rounds: "list",
		Body: `(f, xs) =>
  let go = (go, xs, i) => if isEmpty(xs) then -1 else if f(head(xs)) then i else go(go, tail(xs), i + 1)
  in go(go, xs, 0)`,
	},
	{
		Name: "chunk", Group: "collections", Shape: Array, Params: listAndSize, Result: KindList,
		Doc:  "gives the list in lists of size items, the last of what is left.",
		Also: []string{"chunks", "chunked", "chunk_every", "batch", "batches", "batched", "each_slice"},
		Examples: []Example{
			{Code: `{"chunk":[[1,2,3,4,5],2]}`, Want: `[[1,2],[3,4],[5]]`},
			{Code: `{"chunk":[[1],0]}`, Fault: fault.Raised},
		},
		Body: `(xs, n) =>
  if n < 1 then raise("chunk takes a size of at least 1")
  else let r = fold(p => let made = fst(fst(p)), now = snd(fst(p)) in
    if length(now) < n then (made, push(now, snd(p))) else (push(made, now), [snd(p)]), ([], []), xs)
  in if isEmpty(xs) then [] else push(fst(r), snd(r))`,
	},
	{
		Name: "window", Group: "collections", Shape: Array, Params: listAndSize, Result: KindList,
		Doc:  "gives the lists of each size items that stand side by side; none where there are fewer.",
		Also: []string{"windows", "windowed", "sliding", "sliding_window", "each_cons"},
		Examples: []Example{
			{Code: `{"window":[[1,2,3,4],3]}`, Want: `[[1,2,3],[2,3,4]]`},
			{Code: `{"window":[[1,2],5]}`, Want: `[]`},
			{Code: `{"window":[[1],0]}`, Fault: fault.Raised},
		},
		Body: `(xs, n) =>
  if n < 1 then raise("window takes a size of at least 1")
  else fst(fold(p => let now = push(snd(fst(p)), snd(p)) in
    if length(now) < n then (fst(fst(p)), now) else (push(fst(fst(p)), now), slice(now, 1, n)), ([], []), xs))`,
	},
	{
		Name: "scan", Group: "collections", Shape: Array, Passes: PassesPair, Result: KindList,
		Params: []Param{{"f", KindFunction}, {"init", KindAny}, {"list", KindList}},
		Doc:    "gives what fold has after each item: running totals for a sum.",
		Also:   []string{"accumulate", "running", "running_total", "cumsum", "cumulative", "reductions", "prefix_sums"},
		Examples: []Example{
			{Code: `{"scan":[{"lam":"p","body":{"add":[{"fst":{"var":"p"}},{"snd":{"var":"p"}}]}},0,[10,20,5]]}`, Want: `[10,30,35]`},
			{Code: `{"scan":[1,0,[1]]}`, Fault: fault.TypeError},
		},
		Body: `(f, init, xs) => reverse(snd(fold(p => let a = f((fst(fst(p)), snd(p))) in (a, cons(a, snd(fst(p)))), (init, []), xs)))`,
	},
	{
		Name: "min_by", Group: "collections", Shape: Array, Params: fAndList, Passes: PassesItem, Result: KindAny,
		Doc:  "gives the first item of which f makes the smallest, by compare.",
		Also: []string{"minby", "argmin", "smallest_by"},
		Examples: []Example{
			{Code: `{"min_by":[{"lam":"s","body":{"length":{"var":"s"}}},["pear","fig","plum"]]}`, Want: `"fig"`},
			{Code: `{"min_by":[{"lam":"x","body":{"var":"x"}},[]]}`, Fault: fault.EmptyList},
		},
		Body: `(f, xs) => let x = head(xs) in
  snd(fold(p => let k = f(snd(p)) in if compare(k, fst(fst(p))) < 0 then (k, snd(p)) else fst(p), (f(x), x), tail(xs)))`,
	},
	{
		Name: "max_by", Group: "collections", Shape: Array, Params: fAndList, Passes: PassesItem, Result: KindAny,
		Doc:  "gives the first item of which f makes the largest, by compare.",
		Also: []string{"maxby", "argmax", "largest_by"},
		Examples: []Example{
			{Code: `{"max_by":[{"lam":"r","body":{"get":[{"var":"r"},"age"]}},[{"record":{"age":36,"name":"Ada"}},{"record":{"age":41,"name":"Alan"}}]]}`, Want: `{"age":41,"name":"Alan"}`},
			{Code: `{"max_by":[{"lam":"x","body":{"var":"x"}},[]]}`, Fault: fault.EmptyList},
		},
		Body: `(f, xs) => let x = head(xs) in
  snd(fold(p => let k = f(snd(p)) in if compare(k, fst(fst(p))) > 0 then (k, snd(p)) else fst(p), (f(x), x), tail(xs)))`,
	},
	{
		Name: "zip_with", Group: "collections", Shape: Array, Result: KindList,
		Params: []Param{{"f", KindFunction}, {"first", KindList}, {"second", KindList}},
		Doc:    "gives what f, a function of two parameters, makes of the items that stand at the same places, as many as the shorter list has.",
		Also:   []string{"zipwith", "map2"},
		Examples: []Example{
			{Code: `{"zip_with":[{"lam":"price","body":{"lam":"n","body":{"mul":[{"var":"price"},{"var":"n"}]}}},[5,7],[2,3]]}`, Want: `[10,21]`},
			{Code: `{"zip_with":[{"lam":"x","body":{"var":"x"}},[1],2]}`, Fault: fault.TypeError},
		},
		Body: `(f, xs, ys) => map(p => f(fst(p), snd(p)), zip(xs, ys))`,
	},
	{
		Name: "transpose", Group: "collections", Shape: Unary, Params: []Param{{"rows", KindList}}, Result: KindList,
		Doc:  "gives the columns of a list of rows, as many as the shortest row has.",
		Also: []string{"columns", "zip_all"},
		Examples: []Example{
			{Code: `{"transpose":[[1,2,3],[4,5,6]]}`, Want: `[[1,4],[2,5],[3,6]]`},
			{Code: `{"transpose":[1,2]}`, Fault: fault.TypeError},
		},
		Body: `xss => if isEmpty(xss) then [] else fold(p => map(q => push(fst(q), snd(q)), zip(fst(p), snd(p))), map(x => [], head(xss)), xss)`,
	},
	{
		Name: "intersperse", Group: "collections", Shape: Array, Params: listAndItem, Result: KindList,
		Doc:  "gives the list with item between each two of its items.",
		Also: []string{"interpose"},
		Examples: []Example{
			{Code: `{"intersperse":[["a","b","c"],"-"]}`, Want: `["a","-","b","-","c"]`},
			{Code: `{"intersperse":["abc","-"]}`, Fault: fault.TypeError},
		},
		Body: `(xs, x) => if isEmpty(xs) then [] else tail(reverse(fold(p => cons(snd(p), cons(x, fst(p))), [], xs)))`,
	},
	{
		Name: "update", Group: "collections", Shape: Array, Result: KindRecord,
		Params: []Param{{"record", KindRecord}, {"key", KindString}, {"f", KindFunction}},
		Doc:    "gives the record with what f makes of the value of key in its place.",
		Also:   []string{"modify", "update_key", "adjust", "over"},
		Examples: []Example{
			{Code: `{"update":[{"record":{"item":"tea","qty":3}},"qty",{"lam":"n","body":{"add":[{"var":"n"},1]}}]}`, Want: `{"item":"tea","qty":4}`},
			{Code: `{"update":[{"record":{}},"qty",{"lam":"n","body":{"var":"n"}}]}`, Fault: fault.MissingKey},
		},
		Body: `(r, k, f) => put(r, k, f(get(r, k)))`,
	},
	{
		Name: "get_in", Group: "collections", Shape: Array, Min: 2, Params: pathInto, Result: KindAny,
		Doc:  "gives what is reached by a path of keys and indices, or default where something on the way isn't there.",
		Also: []string{"getin", "dig", "get_path"},
		Examples: []Example{
			{Code: `{"get_in":[{"record":{"user":{"record":{"tags":["a","b"]}}}},["user","tags",1]]}`, Want: `"b"`},
			{Code: `{"get_in":[{"record":{"user":{"record":{"tags":["a","b"]}}}},["user","email"],"none"]}`, Want: `"none"`},
			{Code: `{"get_in":[{"record":{}},["user","email"]]}`, Fault: fault.MissingKey},
		},
		Rounds: "path",
		Short:  `(v, path) => fold(p => if equal(type_of(snd(p)), "int") then nth(fst(p), snd(p)) else get(fst(p), snd(p)), v, path)`,
		Body: `(v, path, default) =>
  let go = (go, v, path) => if isEmpty(path) then v else let k = head(path) in
    if equal(type_of(v), "record") and equal(type_of(k), "string")
    then if has(v, k) then go(go, get(v, k), tail(path)) else default
    else if equal(type_of(v), "list") and equal(type_of(k), "int")
    then if k >= 0 and k < length(v) then go(go, nth(v, k), tail(path)) else default
    else default
  in go(go, v, path)`,
	},
	{
		Name: "put_in", Group: "collections", Shape: Array, Result: KindAny,
		Params: []Param{{"value", KindRecord | KindList}, {"path", KindList}, {"item", KindAny}},
		Doc:    "gives value with item at the end of a path of keys and indices; a key that is missing on the way gets a record.",
		Also:   []string{"putin", "assoc_in", "set_in", "setin", "set_path", "update_in", "updatein"},
		Examples: []Example{
			{Code: `{"put_in":[{"record":{"user":{"record":{"name":"Ada"}}}},["user","address","city"],"London"]}`, Want: `{"user":{"address":{"city":"London"},"name":"Ada"}}`},
			{Code: `{"put_in":[{"record":{"tags":["a","b"]}},["tags",5],"c"]}`, Fault: fault.OutOfRange},
		},
		Rounds: "path",
		Body: `(v, path, x) =>
  let go = (go, v, path) => if isEmpty(path) then x else let k = head(path) in
    if equal(type_of(k), "int") then set_nth(v, k, go(go, nth(v, k), tail(path)))
    else put(v, k, go(go, get(v, k, {}), tail(path)))
  in go(go, v, path)`,
	},
	{
		Name: "map_values", Group: "collections", Shape: Array, Params: fAndRecord, Result: KindRecord,
		Doc:  "gives the record with what f makes of each value.",
		Also: []string{"mapvalues", "map_record", "transform_values"},
		Examples: []Example{
			{Code: `{"map_values":[{"lam":"n","body":{"mul":[{"var":"n"},2]}},{"record":{"apples":3,"pears":4}}]}`, Want: `{"apples":6,"pears":8}`},
			{Code: `{"map_values":[{"lam":"n","body":{"var":"n"}},[1]]}`, Fault: fault.TypeError},
		},
		Body: `(f, r) => from_entries(map(e => (fst(e), f(snd(e))), entries(r)))`,
	},
	{
		Name: "filter_entries", Group: "collections", Shape: Array, Params: testOfRecord, Result: KindRecord,
		Doc:  "gives the record of the keys for which test, a function of two parameters, key and value, is true.",
		Also: []string{"filter_record", "filter_keys", "filter_values", "pick_by", "pickby", "omit_by"},
		Examples: []Example{
			{Code: `{"filter_entries":[{"lam":"k","body":{"lam":"n","body":{"gt":[{"var":"n"},0]}}},{"record":{"apples":3,"pears":0}}]}`, Want: `{"apples":3}`},
			{Code: `{"filter_entries":[{"lam":"k","body":{"lam":"n","body":{"var":"n"}}},{"record":{"a":1}}]}`, Fault: fault.TypeError},
		},
		Body: `(f, r) => from_entries(filter(e => f(fst(e), snd(e)), entries(r)))`,
	},
	{
		Name: "group_by", Group: "collections", Shape: Array, Params: fAndList, Passes: PassesItem, Result: KindRecord,
		Doc:  "gives a record of the lists of items under what f makes of them, as text.",
		Also: []string{"groupby", "group_items", "bucket"},
		Examples: []Example{
			{Code: `{"group_by":[{"lam":"r","body":{"get":[{"var":"r"},"year"]}},[{"record":{"id":1,"year":2024}},{"record":{"id":2,"year":2025}},{"record":{"id":3,"year":2024}}]]}`, Want: `{"2024":[{"id":1,"year":2024},{"id":3,"year":2024}],"2025":[{"id":2,"year":2025}]}`},
			{Code: `{"group_by":[1,[2]]}`, Fault: fault.TypeError},
		},
		Body: `(f, xs) => fold(p => let k = to_text(f(snd(p))) in put(fst(p), k, push(get(fst(p), k, []), snd(p))), {}, xs)`,
	},
	{
		Name: "count_by", Group: "collections", Shape: Array, Params: fAndList, Passes: PassesItem, Result: KindRecord,
		Doc:  "gives a record of how many items there are under what f makes of them, as text.",
		Also: []string{"countby", "tally", "frequencies", "counter", "histogram", "value_counts"},
		Examples: []Example{
			{Code: `{"count_by":[{"lam":"w","body":{"lower":{"var":"w"}}},["The","cat","the"]]}`, Want: `{"cat":1,"the":2}`},
			{Code: `{"count_by":[1,[2]]}`, Fault: fault.TypeError},
		},
		Body: `(f, xs) => fold(p => let k = to_text(f(snd(p))) in put(fst(p), k, get(fst(p), k, 0) + 1), {}, xs)`,
	},
	{
		Name: "index_by", Group: "collections", Shape: Array, Params: fAndList, Passes: PassesItem, Result: KindRecord,
		Doc:  "gives a record of the items under what f makes of each, as text; of two with one key the later counts.",
		Also: []string{"indexby", "key_by", "keyby", "associate_by"},
		Examples: []Example{
			{Code: `{"index_by":[{"lam":"r","body":{"get":[{"var":"r"},"id"]}},[{"record":{"id":7,"name":"Ada"}},{"record":{"id":9,"name":"Alan"}}]]}`, Want: `{"7":{"id":7,"name":"Ada"},"9":{"id":9,"name":"Alan"}}`},
			{Code: `{"index_by":[{"lam":"r","body":{"get":[{"var":"r"},"id"]}},[1]]}`, Fault: fault.TypeError},
		},
		Body: `(f, xs) => fold(p => put(fst(p), to_text(f(snd(p))), snd(p)), {}, xs)`,
	},
	{
		Name: "union", Group: "collections", Shape: Array, Params: twoLists, Result: KindList,
		Doc:  "gives the items of the first list and then those of the second, each once.",
		Also: []string{"set_union"},
		Examples: []Example{
			{Code: `{"union":[["a","b"],["b","c"]]}`, Want: `["a","b","c"]`},
			{Code: `{"union":[[1],2]}`, Fault: fault.TypeError},
		},
		Body: `(xs, ys) => unique(append(xs, ys))`,
	},
	{
		Name: "intersect", Group: "collections", Shape: Array, Params: twoLists, Result: KindList, Keeps: true,
		Doc:  "gives the items of the first list that are in the second, too, each once.",
		Also: []string{"intersection", "set_intersection", "common"},
		Examples: []Example{
			{Code: `{"intersect":[["a","b","c"],["c","b","x"]]}`, Want: `["b","c"]`},
			{Code: `{"intersect":[[{"pair":[1,{"dec":"2.0"}]},1],[{"pair":[1,2]}]]}`, Want: `[{"pair":[1,2.0]}]`},
			{Code: `{"intersect":[[1],2]}`, Fault: fault.TypeError},
		},
		Body: `(xs, ys) =>` + inSecond + `filter(in_second, own)`,
	},
	{
		Name: "difference", Group: "collections", Shape: Array, Params: twoLists, Result: KindList, Keeps: true,
		Doc:  "gives the items of the first list that aren't in the second, each once.",
		Also: []string{"set_difference", "setdiff", "except", "without", "subtract_lists"},
		Examples: []Example{
			{Code: `{"difference":[["a","b","c"],["b","x"]]}`, Want: `["a","c"]`},
			{Code: `{"difference":[[{"dec":"1.0"},2],[1]]}`, Want: `[2]`},
			{Code: `{"difference":[[1],2]}`, Fault: fault.TypeError},
		},
		Body: `(xs, ys) =>` + inSecond + `filter(x => not in_second(x), own)`,
	},
}
