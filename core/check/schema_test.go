package check_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// validates holds JSON against a schema with a library of its own.
func validates(t testing.TB, raw json.RawMessage, data []byte) error {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	if strings.Contains(string(raw), "$ref") {
		t.Fatalf("the schema isn't flat: %s", raw)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		if json.Valid(data) {
			return nil // a number that is beyond what the library reads
		}
		t.Fatalf("%v\n%s", err, data)
	}
	return r.Validate(v)
}

func shown(t testing.TB, v value.Value) []byte {
	t.Helper()
	e, f := text.Encode(v, 16<<20, 16<<20)
	must.NoFault(t, f)
	return e.JSON
}

// TestSchemasGenerated: schemas hold what is given to programs and what they
// give, decoded arguments are what was meant.
func TestSchemasGenerated(t *testing.T) {
	w := newWorld(t)
	n, inputs, results := must.Drawn(600, 50_000), 0, 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 41))
		tr := w.generated(t, r.IntN)
		if !tr.report.Sound() {
			continue
		}
		typ, input := tr.report.Type, ""
		if !typ.IsFunction() && strings.Contains(typ.String(), "->") {
			continue
		}
		if typ.IsFunction() {
			if strings.Contains(typ.Param.String(), "->") || strings.Contains(typ.Param.String(), "code") {
				continue // no data
			}
			s := sampler{draw: r.IntN, deep: 3}
			var ok bool
			if input, ok = s.term(typ.Param); !ok || strings.Contains(input, "lam") || strings.Contains(input, "quote") {
				continue
			}
			in, f := parse.Input([]byte(input), parse.Term)
			must.NoFault(t, f)
			v, _, f := naive.Run(naive.Config{Term: in.Term, Source: in.Source})
			must.NoFault(t, f)
			if len(tr.report.Params) == 1 {
				arguments := append([]byte(`{"input":`), append(shown(t, v), '}')...)
				if err := validates(t, check.InputSchema(tr.report), arguments); err != nil {
					t.Fatalf("seed %d: %v\n%s\n%s\n%s", seed, err, arguments, check.InputSchema(tr.report), tr)
				}
				sameInput(t, tr, arguments, v)
				inputs++
			}
			typ = typ.Result
		}
		v, f := tr.run(t, input)
		if f != nil {
			continue
		}
		results++
		if err := validates(t, check.SchemaOf(typ), shown(t, v)); err != nil {
			t.Fatalf("seed %d: %v\n%s\n%s\n%s", seed, err, shown(t, v), check.SchemaOf(typ), tr)
		}
	}
	t.Logf("%d inputs and %d results", inputs, results)
	if inputs < n/8 || results < n/5 {
		t.Error("too few: the test shows little")
	}
}

// sameInput: the arguments of a direct call are decoded to the value itself.
func sameInput(t *testing.T, tr *trial, arguments []byte, want value.Value) {
	t.Helper()
	d, f := check.ReadArguments(arguments, tr.report, nil)
	if f != nil {
		t.Fatalf("%v\n%s\n%s", f, arguments, tr)
	}
	in, f := parse.Input(d.Values[0], parse.Data)
	if f != nil {
		t.Fatalf("%v\n%s\n%s", f, d.Values[0], tr)
	}
	got, _, f := naive.Run(naive.Config{Term: in.Term, Source: in.Source})
	if f != nil || string(shown(t, got)) != string(shown(t, want)) {
		t.Fatalf("%s are decoded to %s, want %s (%v)\n%s", arguments, d.Values[0], shown(t, want), f, tr)
	}
}

func TestSchemas(t *testing.T) {
	for _, c := range []struct{ code, input, output string }{
		{`42`, `{"additionalProperties":false,"properties":{},"type":"object"}`, `{"type":"integer"}`},
		{`n => n % 2`, `{"additionalProperties":false,"properties":{"input":{"type":"integer"}},"required":["input"],"type":"object"}`, `{"type":"integer"}`},
		{`s => s ++ "!"`, `{"additionalProperties":false,"properties":{"input":{"type":"string"}},"required":["input"],"type":"object"}`, `{"type":"string"}`},
		{`(a, s) => if a then s ++ "!" else null`, `{"additionalProperties":false,"properties":{"a":{"type":"boolean"},"s":{"type":"string"}},"required":["a","s"],"type":"object"}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`},
		{`(x, x) => x % 2`, `{"additionalProperties":false,"properties":{"x":{},"x_2":{"type":"integer"}},"required":["x","x_2"],"type":"object"}`, `{"type":"integer"}`},
		{`r => {n: length(r.name), p: (r.ok and true, "x")}`, `{"additionalProperties":false,"properties":{"input":{"properties":{"name":{"anyOf":[{"type":"string"},{"type":"array","items":{}}]},"ok":{"type":"boolean"}},"required":["name","ok"],"type":"object"}},"required":["input"],"type":"object"}`, `{"additionalProperties":false,"properties":{"n":{"type":"integer"},"p":{"additionalProperties":false,"properties":{"pair":{"items":{"anyOf":[{"type":"boolean"},{"type":"string"}]},"maxItems":2,"minItems":2,"type":"array"}},"required":["pair"],"type":"object"}},"required":["n","p"],"type":"object"}`},
		{`n => if n == 0 then null else (n, self(n - 1))`, `{"additionalProperties":false,"properties":{"input":{"type":"number"}},"required":["input"],"type":"object"}`, `{"description":"type rec a. unit | pair[num, a]"}`},
		{"(`é a`, ``, `é b`) => `é a` % `é b`", `{"additionalProperties":false,"properties":{"__a":{"type":"integer"},"_":{},"__b":{"type":"integer"}},"required":["__a","_","__b"],"type":"object"}`, `{"type":"integer"}`},
		{"(`__proto__`, x) => `__proto__` % x", `{"additionalProperties":false,"properties":{"_proto_":{"type":"integer"},"x":{"type":"integer"}},"required":["_proto_","x"],"type":"object"}`, `{"type":"integer"}`},
		{`x => {"__proto__": x % 2, b: 1}`, `{"additionalProperties":false,"properties":{"input":{"type":"integer"}},"required":["input"],"type":"object"}`, `{"description":"type {__proto__: int, b: int}"}`},
		{"r => get(r, \"a b\") % r.c", `{"additionalProperties":false,"properties":{"input":{"properties":{"c":{"type":"integer"}},"required":["c"],"type":"object"}},"required":["input"],"type":"object"}`, `{"type":"integer"}`},
		{`x => parse_json(x)`, `{"additionalProperties":false,"properties":{"input":{"type":"string"}},"required":["input"],"type":"object"}`, `{"description":"type ?"}`},
		{`r => update(r, "qty", n => n % 2)`, `{"additionalProperties":false,"properties":{"input":{"properties":{"qty":{"type":"integer"}},"required":["qty"],"type":"object"}},"required":["input"],"type":"object"}`, `{"properties":{"qty":{"type":"integer"}},"required":["qty"],"type":"object"}`},
		{`r => {qty: 1, ...r}.qty % 2`, `{"additionalProperties":false,"properties":{"input":{"properties":{"qty":{"type":"integer"}},"type":"object"}},"required":["input"],"type":"object"}`, `{"type":"integer"}`},
		{`r => r.pair`, `{"additionalProperties":false,"properties":{"input":{"description":"type {pair: a, *: any}"}},"required":["input"],"type":"object"}`, `{"description":"type a"}`},
		{`xs => map(x => x % 2, xs)`, `{"additionalProperties":false,"properties":{"input":{"items":{"type":"integer"},"type":"array"}},"required":["input"],"type":"object"}`, `{"items":{"type":"integer"},"type":"array"}`},
		{`x => f => f(x)`, `{"additionalProperties":false,"properties":{"f":{"description":"type (a) -> b"},"x":{"description":"type a"}},"required":["x","f"],"type":"object"}`, `{"description":"type b"}`},
	} {
		r := reportOf(t, c.code)
		if got := check.InputSchema(r); !sameJSON(t, got, c.input) {
			t.Errorf("%s takes\n%s, want\n%s", c.code, got, c.input)
		}
		if got := check.OutputSchema(r); !sameJSON(t, got, c.output) {
			t.Errorf("%s gives\n%s, want\n%s", c.code, got, c.output)
		}
	}
}

func reportOf(t testing.TB, code string) *check.Report {
	t.Helper()
	p, f := text.Parse([]byte(code), text.Options{Tool: "t"})
	if f != nil {
		t.Fatalf("%v\n%s", f, code)
	}
	return check.Infer(p.Term, p.Source, check.Env{Tool: "t"}, check.Budget{})
}

func sameJSON(t *testing.T, got []byte, want string) bool {
	t.Helper()
	var a, b any
	must.NoError(t, json.Unmarshal(got, &a))
	must.NoError(t, json.Unmarshal([]byte(want), &b))
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// TestDecode: arguments of direct calls are what the types say was meant.
func TestReadArguments(t *testing.T) {
	for _, c := range []struct{ code, arguments, want string }{
		{`s => s ++ "!"`, `{"input":"42"}`, `"42"`},
		{`n => n % 2`, `{"input":"42"}`, `42`},
		{`n => n % 2`, `{"input":42.0}`, `42`},
		{`n => n % 2`, `{"input":2.5}`, `2.5`}, // exact; the program fails on it
		{`n => n % 2`, `{"input":1e3}`, `1000`},
		{`n => n % 2`, `{"input":-0.0}`, `0`},
		{`n => n + 1`, `{"input":1e21}`, `1e21`},
		{`n => n + 1`, `{"input":1e-2}`, `1e-2`},
		{`n => n + 1`, `{"input":3.0}`, `3.0`},
		{`x => x`, `{"input":[1.5,"2.5",{"a":-1.50},{"pair":[1,0.5]}, 1e2]}`, `[1.5,"2.5",{"a":-1.50},{"pair":[1,0.5]}, 1e2]`},
		{`x => x`, `{"input":1e999999999}`, `1e999999999`},
		{`x => parse_json(x)`, `{"input":"[1]"}`, `"[1]"`},
		{`xs => sum(xs)`, `{"input":[ ]}`, `[]`},
		{`r => r.pair % 2`, `{"input":{"record":{"pair":"8"}}}`, `{"record":{"pair":8}}`},
		{`p => fst(p) % 2`, `{"input":{"pair":[1,2,3]}}`, `{"pair":[1,2,3]}`},
		{`r => r.a.b % 2`, `{"input":{"\u0061":{"b":"{}"}}}`, `{"\u0061":{"b":"{}"}}`},
		{`r => r.a.b % 2`, `{"input":"{\"a\":{\"b\":6}}"}`, `{"a":{"b":6}}`},
		{`42`, `{"input":5}`, `5`},
		{`n => n % 2`, `{"input":"abc"}`, `"abc"`},
		{`n => n + 1`, `{"input":2.50}`, `2.50`},
		{`n => n + 1`, `{"input":{"dec":"2.50"}}`, `{"dec":"2.50"}`},
		{`n => n + 1`, `{"input":123456789012345678901234567890}`, `123456789012345678901234567890`},
		{`b => not b`, `{"input":"true"}`, `true`},
		{`xs => sum(xs)`, `{"input":"[1, 2.5]"}`, `[1,2.5]`},
		{`xs => join(xs, ",")`, `{"input":["1",2]}`, `["1",2]`},
		{`x => x`, `{"input":"42"}`, `"42"`},
		{`x => x`, `{"input":1.5}`, `1.5`},
		{`x => 1`, `{}`, `null`},
		{`p => fst(p) % 2`, `{"input":{"pair":["7","7"]}}`, `{"pair":[7,"7"]}`},
		{`r => r.pair % 2`, `{"input":{"pair":"8"}}`, `{"pair":8}`},
		{`r => r.a ++ r.b`, `{"a":"1","b":"2"}`, `{"a":"1","b":"2"}`},
		{`r => r.a / get(r, "b", 1)`, `{"input":"{\"a\":4}"}`, `{"a":4}`},
		{`(a, b) => a / length(b)`, `{"b":"12","a":"12"}`, `12 "12"`},
		{`(a, b) => a % b`, `{"input":{"a":4,"b":2}}`, `4 2`},
		{`(a, b) => a % b`, `[4,2.0]`, `4 2`},
		{`(v, n) => if type_of(v) == "list" then take(n, v) else v`, `{"n":"1","v":[1]}`, `[1] 1`},
		{`(a, b) => a % b`, `{"pair":["4",2]}`, `4 2`},
		{`(a, b) => length(a) / b`, `{"b":2,"a":[1]}`, `[1] 2`},
		{`(a, b) => a % b`, `"{\"a\":4,\"b\":2.0}"`, `4 2`},
		{`(a, b) => a % b`, `{"input":"[4,2]"}`, `4 2`},
		{`(a, b) => a % b`, `{"record":{"a":4,"b":2}}`, `4 2`},
		{`(xs, ys) => append(xs, ys)`, `{"pair":[[1],[2]]}`, `[1] [2]`},
		{`(f, x) => f(f(x)) / 1`, `["n => n * 2",3]`, `{"body":{"mul":[{"var":"n"},2]},"lam":"n"} 3`},
		{`r => keys(r)`, `{"a":1,"b":2}`, `{"a":1,"b":2}`},
		{`r => keys(r)`, `{}`, `{}`},
		{`r => r.max % 2`, `{"record":{"max":4}}`, `{"record":{"max":4}}`},
		{`n => n % 2`, `[1]`, `[1]`},
		{`n => n % 2`, `5`, `5`},
		{`n => n % 2`, `{"n":5}`, `5`},
		{`r => r.dec ++ "!"`, `{"dec":"1.5"}`, `{"record":{"dec":"1.5"}}`},
		{`r => r.record.a % 2`, `{"record":{"a":4.0}}`, `{"record":{"record":{"a":4}}}`},
		{`r => r.input % 2`, `{"input":4}`, `{"input":4}`},
		{`c => to_data(c)`, `{"input":{"add":[1,{"dec":"0.5"}]}}`, `{"quote":{"add":[1,{"dec":"0.5"}]}}`},
		{`c => to_data(c)`, `{"input":{"quote":{"add":[1,0.5]}}}`, `{"quote":{"add":[1,{"dec":"0.5"}]}}`},
		{`(f, xs) => map(f, xs)`, `{"f":"x => x","xs":["1",2.0]}`, `{"body":{"var":"x"},"lam":"x"} ["1",{"dec":"2.0"}]`},
		{`(f, xs) => if f == null then xs else map(f, xs)`, `{"f":"x => x","xs":["1",2.0]}`, `{"body":{"var":"x"},"lam":"x"} ["1",{"dec":"2.0"}]`},
		{`(f, xs) => if f == null then xs else map(f, xs)`, `{"f":null,"xs":[1]}`, `null [1]`},
		{`c => if c == null then 0 else eval(c)`, `{"input":{"add":[1,2]}}`, `{"quote":{"add":[1,2]}}`},
		{`42`, `{}`, `null`},
		{`42`, ``, `null`},
		{`([x, y], k) => {x, y: y * k}`, `[[1,2],3]`, `[1,2] 3`},
		{`p => {x: p[0], y: p[1] * 2}`, `{"input":["1","2"]}`, `[1,2]`},
		{`rows => map(([name, n]) => {name, n: n * 2}, rows)`, `{"input":[["a","2"]]}`, `[["a",2]]`},
		{`r => {qty: 1, ...r}.qty * 2`, `{"input":{"qty":"2","zip":"01067"}}`, `{"qty":2,"zip":"01067"}`},
		{`r => {qty: 1, ...r}.qty * 2`, `{"input":{"qty":"2","zip":"7"}}`, `{"qty":2,"zip":7}`},
		{`r => update(r, "qty", n => n + 1)`, `{"input":{"qty":"2","zip":"7"}}`, `{"qty":2,"zip":7}`},
	} {
		d, f := check.ReadArguments(json.RawMessage(c.arguments), reportOf(t, c.code), nil)
		if f != nil {
			t.Errorf("%s of %s: %v", c.code, c.arguments, f)
			continue
		}
		var got []string
		for _, in := range d.Values {
			got = append(got, string(in))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s of %s: %s, want %s", c.code, c.arguments, s, c.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct{ code, arguments, message, near string }{
		{`n => n % 2`, `{"inptu":1}`, `no parameter inptu; did you mean input?`, "input"},
		{`n => n % 2`, `{"input":1,"n":2}`, `no parameter n`, ""},
		{`(first, second) => first / second`, `{"first":1}`, `second is missing`, ""},
		{`(first, second) => first / second`, `{}`, `first and second are missing`, ""},
		{`n => n % 2`, `{"input":1,"inp\u0075t":2}`, `the argument "input" is given twice`, ""},
		{`(a, b) => a % b`, `{"a":1,"b":2,"a":3}`, `the argument "a" is given twice`, ""},
		{`(a, b) => a % b`, `{"a":1,"b":2,"__proto__":3}`, `no parameter "__proto__"`, ""},
		{`(a, b) => a % b`, `{"input":1,"b":2}`, `no parameter input; did you mean a?`, ""},
		{`(a, b) => a % b`, `{"input":5}`, `b is missing`, ""},
		{`(a, b) => {a: a, b: b}`, `[1,2]`, `b is missing`, ""},
		{`(a, b) => a % b`, `"{\"a\":\"4\",\"c\":2}"`, `b is missing`, ""},
		{`(a, b) => a % b`, `[1,2,3]`, `b is missing`, ""},
		{`(a, b) => a % b`, `[1,"x"]`, `b is missing`, ""},
		{`r => r.a / r.b`, `{"a":1}`, `b is missing`, ""},
		{`42`, `{"x":1}`, `no parameter x`, ""},
		{`(first, second) => first / second`, `{"first":1,"secnd":2}`, `no parameter secnd; did you mean second?`, "second"},
	} {
		_, f := check.ReadArguments(json.RawMessage(c.arguments), reportOf(t, c.code), nil)
		if f == nil || f.Kind != fault.InvalidRequest || f.Message != c.message || c.near != "" && f.Near != c.near || f.Hint == "" {
			t.Errorf("%s of %s: %+v", c.code, c.arguments, f)
		}
	}
}

// TestNarrow: a declared schema stands where all that it lets through is of the
// inferred type.
func TestNarrow(t *testing.T) {
	for _, c := range []struct{ code, declared, refused string }{
		{`n => n + 1`, `{"type":"object","properties":{"input":{"type":"integer","minimum":0}}}`, ""},
		{`n => n + 1`, `{"type":"object","properties":{"input":{"type":"string"}}}`, "a string is not num"},
		{`n => n + 1`, `{"type":"object","properties":{"input":{}}}`, "anything is more than num"},
		{`n => n + 1`, `{"type":"object","properties":{"input":{"enum":[1,2.5]}}}`, ""},
		{`n => n + 1`, `{"type":"object","properties":{"input":{"enum":[1,"a"]}}}`, "a string is not num"},
		{`n => n + 1`, `{"type":"object","properties":{"n":{"type":"integer"}}}`, "no such parameter"},
		{`n => n + 1`, `{"type":"object","properties":{"input":{"$ref":"#/x"}}}`, "$ref"},
		{`n => n + 1`, `[]`, "of an object"},
		{`r => r.a % 2`, `{"type":"object","properties":{"input":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}`, ""},
		{`r => r.a % 2`, `{"type":"object","properties":{"input":{"type":"object","properties":{"a":{"type":"integer"}}}}}`, `"a" may be missing`},
		{`xs => sum(xs)`, `{"type":"object","properties":{"input":{"type":"array","items":{"type":"integer"},"maxItems":5}}}`, ""},
		{`xs => sum(xs)`, `{"type":"object","properties":{"input":{"type":"array"}}}`, "items: anything is more than num"},
		{`p => fst(p) % 2`, `{"type":"object","properties":{"input":{"type":"object","properties":{"pair":{"type":"array","items":{"type":"integer"}}},"required":["pair"],"additionalProperties":false}}}`, ""},
		{`xs => reverse(xs)`, `{"type":"object","properties":{"input":{"type":"array","items":{"type":"integer"}}}}`, ""},
		{`xs => reverse(xs)`, `{"type":"object","properties":{"input":{"type":"integer"}}}`, "an integer is not list[any]"},
		{`x => x`, `{"type":"object","properties":{"input":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, ""},
		{`(a, b) => a % b`, `{"type":"object","properties":{"b":{"type":"integer","minimum":1}}}`, ""},
	} {
		got, f := check.Narrow(reportOf(t, c.code), json.RawMessage(c.declared))
		switch {
		case c.refused == "" && f != nil:
			t.Errorf("%s as %s: %v", c.code, c.declared, f)
		case c.refused != "" && (f == nil || !strings.Contains(f.Message, c.refused)):
			t.Errorf("%s as %s: got %v (%v), want %q", c.code, c.declared, got, f, c.refused)
		case f == nil:
			var whole, declared struct {
				Properties map[string]json.RawMessage `json:"properties"`
			}
			if json.Unmarshal(got.Schema, &whole) != nil || json.Unmarshal([]byte(c.declared), &declared) != nil {
				t.Fatal(string(got.Schema))
			}
			for name, want := range declared.Properties {
				if !sameJSON(t, whole.Properties[name], string(want)) {
					t.Errorf("%s: %s is not kept in %s", c.code, want, got.Schema)
				}
			}
		}
	}
}

// TestShape: a shape lets through what a JSON Schema library does.
func TestShape(t *testing.T) {
	schemas := []string{
		`{}`, `{"description":"type any"}`, `{"type":"integer"}`, `{"type":"string"}`, `{"type":"boolean"}`, `{"type":"null"}`, `{"type":"number"}`,
		`{"type":"array"}`, `{"type":"array","items":{"type":"integer"}}`, `{"type":"object"}`,
		`{"anyOf":[{"type":"integer"},{"type":"object","properties":{"dec":{"type":"string"}},"required":["dec"],"additionalProperties":false}]}`,
		`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"string"}}`,
		`{"type":"object","additionalProperties":{"type":"array","items":{"anyOf":[{"type":"null"},{"type":"boolean"}]}}}`,
		`{"type":"object","properties":{"pair":{"type":"array","items":{},"minItems":2,"maxItems":2}},"required":["pair"],"additionalProperties":false}`,
	}
	results := []string{
		`5`, `-5`, `0`, `"5"`, `""`, `true`, `false`, `null`, `[]`, `[1,2]`, `[1,"a"]`, `[1,2,3]`, `{}`, `{"dec":"1.5"}`, `{"dec":5}`, `{"dec":"1.5","a":1}`,
		`{"a":1}`, `{"a":"1"}`, `{"a":1,"b":"x"}`, `{"a":1,"b":2}`, `{"a":1,"c":"x"}`, `{"a":1,"c":[]}`, `{"b":"x"}`, `{"c":[null,true]}`, `{"c":[1]}`,
		`{"pair":[1,2]}`, `{"pair":[1]}`, `{"pair":[1,2,3]}`, `{"pair":1}`, ` [ 1 , 2 ] `, ` { "a" : 1 } `, `{"\u0061":1}`,
	}
	for _, src := range schemas {
		var library jsonschema.Schema
		must.NoError(t, json.Unmarshal([]byte(src), &library))
		resolved, err := library.Resolve(nil)
		must.NoError(t, err)
		shape, err := check.ParseShape([]byte(src))
		must.NoError(t, err)
		for _, result := range results {
			var v any
			must.NoError(t, json.Unmarshal([]byte(result), &v))
			if want := resolved.Validate(v) == nil; shape.Holds([]byte(result)) != want {
				t.Errorf("%s holds %s: %t, the library says %t", src, result, !want, want)
			}
		}
	}
}

// What an operation answers is told in a word, and as nothing else where other
// values come with it.
func TestDataInAWord(t *testing.T) {
	for src, want := range map[string]string{
		"x => !fs.read(x)":                               "(any) ->{fs.read} data",
		"x => {a: !fs.read(x), b: 1}":                    "(any) ->{fs.read} {a: data, b: int}",
		"x => [!fs.read(x), x]":                          "(a) ->{fs.read} list[data | a]",
		"x => if x > 1 then !fs.read(x) else 1":          "(num) ->{fs.read} data",
		"x => if x > 1 then !fs.read(x) else [1]":        "(num) ->{fs.read} num | bool | string | unit | list[int | ?] | pair[?, ?] | {*: ?} | code",
		"x => if x > 1 then !fs.read(x) else [y => y]":   "(num) ->{fs.read} num | bool | string | unit | list[((a) -> a) | ?] | pair[?, ?] | {*: ?} | code",
		"x => if x > 1 then !fs.read(x) else (y => y)":   "(num) ->{fs.read} num | bool | string | unit | list[?] | pair[?, ?] | {*: ?} | ((a) -> a) | code",
		"x => let r = !fs.read(x) in (r, length(r) + 1)": "(any) ->{fs.read} pair[data, int]",
	} {
		p, f := text.Parse([]byte(src), text.Options{Tool: "tool"})
		must.NoFault(t, f)
		r := check.Infer(p.Term, p.Source, check.Env{Tool: "tool", Result: func(string) (*check.Type, bool) { return check.Data, true }}, check.Budget{})
		if got := r.Type.String(); got != want {
			t.Errorf("%s\nis  %s\nnot %s", src, got, want)
		}
	}
}

// TestWiden: a run that succeeded widens the parts of a type that it doesn't fit, and
// nothing else.
func TestWiden(t *testing.T) {
	for _, c := range []struct{ code, input, want string }{
		{`n => n * 2`, `3`, `(num) -> num`},
		{`n => n * 2`, `"3"`, `(num) -> num`}, // it is read as 3
		{`n => n * 2`, `{"input":3}`, `(num) -> num`},
		{`n => n * 2`, `"x"`, `(any) -> num`},
		{`n => n * 2`, `[3]`, `(any) -> num`},
		{`xs => sum(xs)`, `[1,"x"]`, `(list[any]) -> num`},
		{`r => r.a + r.b`, `{"a":1,"b":"x"}`, `({a: num, b: any, *: any}) -> num`},
		{`r => r.a + r.b`, `{"a":1}`, `({a: num, b?: num, *: any}) -> num`},
		{`(k, n) => n + k`, `{"k":"A","n":1}`, `(any) -> (num) -> num`},
		{`(k, n) => n + k`, `[1,2]`, `(num) -> (num) -> num`},
		{`(k, n) => n + k`, `{"k":1}`, `(num) -> (num) -> num`}, // it can't be read
		{`x => y => x + y`, `7`, `(num) -> (num) -> num`},
		{`1 + 1`, `null`, `int`},
	} {
		p, err := core.CompileText("t", []byte(c.code))
		must.NoError(t, err)
		r := check.Infer(p.Term(), nil, check.Env{}, check.Budget{})
		before := r.Type.String()
		w := r.Widen(json.RawMessage(c.input))
		if got := w.Type.String(); got != c.want {
			t.Errorf("%s with %s has the type %s, not %s", c.code, c.input, got, c.want)
		}
		if wide := c.want != before; w.Sound() == wide || r.Type.String() != before {
			t.Errorf("%s with %s is sound: %v", c.code, c.input, w.Sound())
		}
		if again := w.Widen(json.RawMessage(c.input)); again != w {
			t.Errorf("%s with %s is %s when it is widened again", c.code, c.input, again.Type)
		}
	}
}

// TestRows: of the examples of every row, those that succeed have no
// diagnostic at their root, which is evaluated, those that fail by their types
// aren't sound, and nothing is known by its kind alone.
func TestRows(t *testing.T) {
	told, failing := 0, 0
	for i := range prim.Table {
		row := &prim.Table[i]
		for _, x := range row.Examples {
			p, f := parse.Code([]byte(x.Code), parse.Options{})
			if f != nil {
				continue // how it fails
			}
			r := check.Infer(p.Term, p.Source, check.Env{}, check.Budget{})
			for _, d := range r.Dynamic {
				if d.Reason == check.ReasonRow {
					t.Errorf("%s: %s", x.Code, d.Message)
				}
			}
			switch {
			case x.Want != "" && slices.ContainsFunc(r.Diagnostics, func(d check.Diagnostic) bool { return d.At == "" }):
				t.Errorf("%s succeeds, and is to fail: %v", x.Code, r.Diagnostics)
			case x.Fault == fault.TypeError && x.Input == "" || x.Fault == fault.Unbound:
				failing++
				if len(r.Diagnostics) > 0 {
					told++
				}
				if r.Sound() {
					t.Errorf("%s fails with %s, and is to be sound: %s", x.Code, x.Fault, r.Type)
				}
			}
		}
	}
	t.Logf("of %d examples that fail by their types %d have a diagnostic", failing, told)
	if told*10 < failing*7 {
		t.Error("too few are told of")
	}
}

// TestSignature: the type of a tool of several parameters is told as it is called.
func TestSignature(t *testing.T) {
	for src, want := range map[string]string{
		`(a, b) => [a + 1, length(b)]`:       "(a: num, b: string | list[any]) -> list[num]",
		`a => b => !fs.read({path: a ++ b})`: "(a: string, b: string) ->{fs.read} ",
		`xs => xs`:                           "(a) -> a",
		`(v, n) => if type_of(v) == "list" then take(n, v) else v`: "(v: any, n: int) -> any",
		`3`: "int",
	} {
		if got := reportOf(t, src).Signature(); !strings.HasPrefix(got, want) {
			t.Errorf("%s is of the type %s, not %s", src, got, want)
		}
	}
}
