package check_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// property is the schema of arguments with one of them.
func property(name, schema string) string {
	return fmt.Sprintf(`{"type":"object","properties":{%q:%s}}`, name, schema)
}

func TestDeclaredRefused(t *testing.T) {
	deep := `{"type":"integer"}`
	for range 14 {
		deep = `{"anyOf":[` + deep + `]}`
	}
	deeper := strings.Repeat(`{"items":`, 1500) + `{}` + strings.Repeat(`}`, 1500)
	for _, c := range []struct{ declared, refused string }{
		{property("input", `{"type":"integer","minimun":0}`), `"minimum"`},
		{property("input", `{"type":"integer","$ref":"#/$defs/a"}`), `"$ref"`},
		{property("input", `{"$ref":"http://127.0.0.1:1/x"}`), `"$ref"`},
		{property("input", `{"$dynamicRef":"#a"}`), `"$dynamicRef"`},
		{`{"type":"object","$defs":{},"properties":{}}`, `"$defs"`},
		{property("input", `{"allOf":[{"type":"integer"}]}`), `"allOf"`},
		{property("input", `{"not":{"type":"string"}}`), `"not"`},
		{property("input", `{"type":"object","patternProperties":{"^a":{"type":"string"}},"additionalProperties":false}`), `"patternProperties"`},
		{property("input", `{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`), `"prefixItems"`},
		{property("input", `{"type":"array","items":[{"type":"string"}]}`), `schema`},
		{property("input", `{"Type":"integer"}`), `"Type"`},
		{property("input", `{"type":"integer","type":"string"}`), `duplicate keyword "type"`},
		{property("input", `{"type":"int"}`), `one of JSON Schema's types`},
		{property("input", `{"type":[]}`), `one of JSON Schema's types`},
		{property("input", `{"type":null}`), `one of JSON Schema's types`},
		{property("input", `{"type":"integer","minimum":"0"}`), `a number`},
		{property("input", `{"type":"integer","multipleOf":0}`), `a number over 0`},
		{property("input", `{"type":"integer","multipleOf":1e-99999999999}`), `a number over 0`},
		{property("input", `{"type":"string","maxLength":-1}`), `a count`},
		{property("input", `{"type":"string","pattern":7}`), `regular expression`},
		{property("input", `{"type":"string","pattern":"(?=a)"}`), `every client`},
		{property("input", `{"type":"string","pattern":"(?i)a"}`), `every client`},
		{property("input", `{"type":"string","pattern":"\\Aa\\z"}`), `every client`},
		{property("input", `{"type":"string","pattern":"(a)\\1"}`), `linear`},
		{property("input", `{"type":"string","pattern":"[[:alpha:]]"}`), `every client`},
		{property("input", `{"type":"string","pattern":"a{1000}a{1000}a{1000}"}`), `repeat too much`},
		{property("input", `{"type":"string","pattern":"((a{1000}){1000}){1000}"}`), `linear`},
		{property("input", `{"type":"string","pattern":"`+strings.Repeat("a", 501)+`"}`), `at most 500 bytes`},
		{property("input", `{"type":"object","properties":{"__proto__":{}}}`), `__proto__`},
		{property("input", `{"type":"object","properties":{"a b":{}}}`), `some clients refuse`},
		{property("input", `{"type":"object","properties":{"a":{},"a":{}}}`), `duplicate`},
		{property("input", `{"enum":[]}`), `a list of one value or more, not []`},
		{property("input", `{"enum":[1],"const":2}`), `is enough`},
		{property("input", `{"anyOf":[]}`), `a list of schemas`},
		{property("input", `{"required":null}`), `a list of names`},
		{property("input", `false`), `a schema is an object`},
		{property("input", deep), "nested too deep"},
		{property("input", deeper), "nested too deep"},
		{property("__proto__", `{}`), "no such parameter"},
		{property("other", `{}`), "no such parameter"},
		{`{"type":"object","properties":{"input":{},"input":{"type":"integer"}}}`, "duplicate"},
		{`{"type":"object","properties":{},"properties":{}}`, "duplicate"},
		{`{"type":"object","required":["other"]}`, "no such parameter"},
		{`{"type":"object","required":null}`, "list of names"},
		{`{"type":"object","additionalProperties":true}`, "no arguments but its parameters"},
		{`{"type":"object","anyOf":[]}`, `"anyOf"`},
		{`{"properties":{}}`, `lacks "type":"object"`},
		{`{"type":["object"]}`, `lacks "type":"object"`},
		{`null`, "object"},
		{`{"type":"object"`, "object"},
		{property("input", `{"description":"`+strings.Repeat("x", check.MaxDeclared)+`"}`), "at most 16384"},
	} {
		_, f := check.Narrow(reportOf(t, `x => x`), json.RawMessage(c.declared))
		if f == nil || f.Kind != fault.InvalidRequest || !strings.Contains(f.Error(), c.refused) || len(f.Error()) > 1000 {
			t.Errorf("%.200s: %v, want %q", c.declared, f, c.refused)
		}
	}
	// Widening.
	for _, c := range []struct{ code, declared string }{
		{`n => n % 2`, property("input", `{"type":"number"}`)},
		{`n => n % 2`, property("input", `{"type":["integer","null"]}`)},
		{`n => n % 2`, property("input", `{"minimum":0}`)},
		{`n => n % 2`, property("input", `{"anyOf":[{"type":"integer"},{"type":"string"}]}`)},
		{`n => n % 2`, property("input", `{"oneOf":[{"type":"integer"},{}]}`)},
		{`r => r.a % 2`, property("input", `{"type":"object","properties":{"a":{"type":"integer"}}}`)},
		{`xs => map(x => x % 2, xs)`, property("input", `{"type":"array","items":{"type":"number"}}`)},
		{`r => r.a % 2`, property("input", `{"type":"object","additionalProperties":{"type":"integer"}}`)},
		{`n => n % 2`, property("input", `{"type":["integer","string"],"enum":[1,"a",null]}`)},
		{`s => s ++ ""`, property("input", `{"type":["integer","null","string"],"enum":["a",2.0]}`)},
		{`s => s ++ ""`, property("input", `{"enum":["a",2.0],"anyOf":[{"type":"integer"},{"type":"string"}]}`)},
		{`r => r.a % 2`, property("input", `{"type":["object","null"],"properties":{"a":{"type":"integer"}},"required":["a"],"anyOf":[{"type":"object"},{"type":"null"}]}`)},
	} {
		if _, f := check.Narrow(reportOf(t, c.code), json.RawMessage(c.declared)); f == nil || !strings.Contains(f.Message, "can't take") {
			t.Errorf("%s as %s: %v", c.code, c.declared, f)
		}
	}
}

// TestDeclaredTogether: a value is of the type beside enum, anyOf and oneOf, too.
func TestDeclaredTogether(t *testing.T) {
	for _, c := range []struct{ code, declared string }{
		{`n => n % 2`, `{"type":"integer","anyOf":[{"minimum":5},{"maximum":-5}]}`},
		{`n => n % 2`, `{"type":"integer","oneOf":[{"type":"number","minimum":5},{}]}`},
		{`n => n % 2`, `{"type":"integer","enum":[1,2,"a",null]}`},
		{`n => n % 2`, `{"type":["integer","null"],"enum":[1,2.0,"a"],"anyOf":[{"type":["string","integer"]}]}`},
		{`s => s ++ ""`, `{"type":"string","anyOf":[{"pattern":"^a"},{"maxLength":2},{"type":"object"}]}`},
		{`r => r.a % 2`, `{"type":"object","properties":{"a":{"type":"integer"},"b":{}},"required":["a"],"anyOf":[{"required":["b"]},{"type":"object","maxProperties":1}]}`},
		{`xs => map(x => x % 2, xs)`, `{"type":["array","null"],"items":{"type":"integer"},"anyOf":[{"type":"array","minItems":2},{"type":"array","maxItems":0}]}`},
	} {
		if _, f := check.Narrow(reportOf(t, c.code), json.RawMessage(property("input", c.declared))); f != nil {
			t.Errorf("%s as %s: %v", c.code, c.declared, f)
		}
	}
}

// held decodes arguments and holds them against a schema.
func held(t *testing.T, d *check.Declared, r *check.Report, arguments string) *fault.Fault {
	t.Helper()
	in, f := check.ReadArguments(json.RawMessage(arguments), r, nil)
	if f != nil {
		return f
	}
	return d.Check(in.Values, arguments != "{}")
}

// TestDeclaredChecked: what the schema doesn't let through is refused with its
// place, and a JSON Schema library says the same of what the client sent.
// TestDeclaredFields: the fields of the record that is the only parameter may be
// declared in its place.
func TestDeclaredFields(t *testing.T) {
	report := reportOf(t, `a => [a.path ++ "", get(a, "from", 0) + 1]`)
	const declared = `{"type":"object","properties":{"path":{"type":"string","description":"the file"},"from":{"type":"integer","minimum":0}},"required":["path"]}`
	d, f := check.Narrow(report, json.RawMessage(declared))
	must.NoFault(t, f)
	if want := `{"additionalProperties":false,` + declared[1:]; string(d.Schema) != want {
		t.Errorf("%s, expected %s", d.Schema, want)
	}
	for arguments, wrong := range map[string]string{
		`{"path":"a"}`: "", `{"path":"a","from":2}`: "", `{"input":{"path":"a"}}`: "",
		`{"path":"a","from":-1}`: "-1", `{"from":1}`: "path is missing", `{"path":"a","form":1}`: `"form"`, `{"path":1}`: "string",
	} {
		r, f := check.ReadArguments(json.RawMessage(arguments), report, d)
		if f == nil {
			f = d.Check(r.Values, true)
		}
		if (f == nil) != (wrong == "") || f != nil && !strings.Contains(f.Error(), wrong) {
			t.Errorf("%s: %v, expected %q", arguments, f, wrong)
		}
	}
	for declared, wrong := range map[string]string{
		`{"type":"object","properties":{"path":{"type":"integer"}},"required":["path"]}`: "can't take",
		`{"type":"object","properties":{"path":{"type":"string"}}}`:                      "can't take",
		`{"type":"object","required":["other"]}`:                                         "no such parameter",
		`{"type":"object","anyOf":[]}`:                                                   `"anyOf"`,
	} {
		if _, f := check.Narrow(report, json.RawMessage(declared)); f == nil || !strings.Contains(f.Error(), wrong) {
			t.Errorf("%s: %v, expected %q", declared, f, wrong)
		}
	}
	all := reportOf(t, `a => [get(a, "x", 1) + 1, get(a, "y", 2) + 1]`)
	for _, byName := range []func(json.RawMessage, *check.Report, *check.Declared) (*check.Reading, *fault.Fault){check.Read, check.ReadArguments} {
		if r, f := byName(nil, all, nil); f != nil || string(r.Values[0]) != "{}" {
			t.Errorf("nothing given: %v, %v", r, f)
		}
	}
}

func TestDeclaredChecked(t *testing.T) {
	for _, c := range []struct{ code, declared, arguments, refused string }{
		{`n => n % 2`, property("input", `{"type":"integer","minimum":0}`), `{"input":0}`, ""},
		{`n => n % 2`, property("input", `{"type":"integer","minimum":0}`), `{"input":-1}`, "input: -1 is not at least 0"},
		{`n => n % 2`, property("input", `{"type":"integer","exclusiveMaximum":10}`), `{"input":10}`, "not less than 10"},
		{`n => n % 2`, property("input", `{"type":"integer","maximum":10}`), `{"input":123456789012345678901234567890}`, "not at most 10"},
		{`n => n % 2`, property("input", `{"type":"integer","multipleOf":3}`), `{"input":9}`, ""},
		{`n => n % 2`, property("input", `{"type":"integer","multipleOf":3}`), `{"input":10}`, "multiple of 3"},
		{`n => n + 1`, property("input", `{"type":"number","multipleOf":0.5}`), `{"input":1.5}`, ""},
		{`n => n + 1`, property("input", `{"type":"number","exclusiveMinimum":1.5}`), `{"input":1.50}`, "more than 1.5"},
		{`n => n + 1`, property("input", `{"type":"integer"}`), `{"input":3.0}`, ""},
		{`n => n + 1`, property("input", `{"type":"integer"}`), `{"input":3.5}`, "not of the type integer"},
		{`x => x`, property("input", `{"enum":["a",1.5,[1.5,{"b":null}]]}`), `{"input":1.50}`, ""},
		{`x => x`, property("input", `{"enum":["a",1.5,[1.5,{"b":null}]]}`), `{"input":[1.50,{"b":null}]}`, ""},
		{`x => x`, property("input", `{"enum":["a",1.5,[1.5,{"b":null}]]}`), `{"input":[1.50,{"b":0}]}`, "one of"},
		{`x => x`, property("input", `{"const":"a"}`), `{"input":"b"}`, `"b" is not "a"`},
		{`s => s ++ ""`, property("input", `{"type":"string","pattern":"^[a-z]+$","maxLength":3}`), `{"input":"abc"}`, ""},
		{`s => s ++ ""`, property("input", `{"type":"string","pattern":"^[a-z]+$","maxLength":3}`), `{"input":"abcd"}`, "at most 3"},
		{`s => s ++ ""`, property("input", `{"type":"string","pattern":"^[a-z]+$","maxLength":3}`), `{"input":"A"}`, "pattern"},
		{`s => s ++ ""`, property("input", `{"type":"string","minLength":2}`), `{"input":"☃"}`, "at least 2"},
		{`xs => sum(xs)`, property("input", `{"type":"array","items":{"type":"integer"},"maxItems":2}`), `{"input":[1,2]}`, ""},
		{`xs => sum(xs)`, property("input", `{"type":"array","items":{"type":"integer"},"maxItems":2}`), `{"input":[1,2,3]}`, "at most 2"},
		{`xs => sum(xs)`, property("input", `{"type":"array","items":{"type":"number","minimum":0}}`), `{"input":[1,2.5,-0.5]}`, "input/2: -0.5 is not at least 0"},
		{`r => r.a % 2`, property("input", `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}`), `{"input":{"a":1}}`, `"b" is missing`},
		{`r => r.a % 2`, property("input", `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`), `{"input":{"a":1,"c":2}}`, `"c" isn't one`},
		{`r => r.pair % 2`, property("input", `{"type":"object","properties":{"pair":{"type":"integer","minimum":1}},"required":["pair"]}`), `{"input":{"pair":8}}`, ""},
		{`r => r.pair % 2`, property("input", `{"type":"object","properties":{"pair":{"type":"integer","minimum":1}},"required":["pair"]}`), `{"input":{"pair":0}}`, "input/pair"},
		{`(a, b) => a / b`, property("b", `{"type":"integer","minimum":1}`), `{"a":5,"b":1}`, ""},
		{`(a, b) => a / b`, property("b", `{"type":"integer","minimum":1}`), `{"a":5,"b":0}`, "b: 0 is not at least 1"},
		{`(a, b) => a / b`, property("b", `{"type":"integer","minimum":1}`), `{"input":5}`, `b is missing`},
		{`x => x`, `{"type":"object","required":["input"]}`, `{}`, `missing: "input"`},
		{`x => x`, `{"type":"object","required":["input"]}`, `{"input":null}`, ""},
		{`x => x`, property("input", `{"type":"integer"}`), `{}`, `missing: "input"`},
		{`x => x`, property("input", `{"type":["integer","null"]}`), `{}`, ""},
		{`x => x`, property("input", `{"oneOf":[{"type":"integer"},{"minimum":3}]}`), `{"input":5}`, "only one"},
		{`x => x`, property("input", `{"anyOf":[{"type":"integer"},{"type":"string"}]}`), `{"input":null}`, "none of the 2"},
		{`x => x`, property("input", `{"type":"object","minProperties":1,"additionalProperties":{"type":"boolean"}}`), `{"input":{"y":true}}`, ""},
		{`x => x`, property("input", `{"type":"object","minProperties":1,"additionalProperties":{"type":"boolean"}}`), `{"input":{}}`, "at least 1"},
	} {
		r := reportOf(t, c.code)
		d, f := check.Narrow(r, json.RawMessage(c.declared))
		if f != nil {
			t.Errorf("%s as %s: %v", c.code, c.declared, f)
			continue
		}
		f = held(t, d, r, c.arguments)
		if (f == nil) != (c.refused == "") || f != nil && (f.Kind != fault.InvalidRequest || !strings.Contains(f.Message, c.refused)) {
			t.Errorf("%s as %s of %s: %v, want %q", c.code, c.declared, c.arguments, f, c.refused)
		}
		if err := validates(t, d.Schema, []byte(c.arguments)); (err == nil) != (c.refused == "") {
			t.Errorf("%s: the library says of %s: %v", d.Schema, c.arguments, err)
		}
	}
}

// TestDeclaredGenerated: a library agrees about any schema and any arguments, and
// samples are let through by both.
func TestDeclaredGenerated(t *testing.T) {
	report := reportOf(t, `x => x`)
	good, bad, samples := 0, 0, 0
	for seed := range must.Full(600, 40_000) / 4 {
		r := rand.New(rand.NewPCG(uint64(seed), 77))
		declared := property("input", anySchema(r, 2))
		d, f := check.Narrow(report, json.RawMessage(declared))
		if f != nil {
			t.Fatalf("%s: %v", declared, f)
		}
		for range 5 {
			arguments := `{"input":` + anyJSON(r, 2) + `}`
			f, err := held(t, d, report, arguments), validates(t, d.Schema, []byte(arguments))
			if (f == nil) != (err == nil) {
				t.Fatalf("%s of %s: %v, the library says %v", declared, arguments, f, err)
			}
			if f == nil {
				good++
			} else {
				bad++
			}
		}
		if v, ok := d.Sample("input"); ok {
			samples++
			arguments := `{"input":` + string(v) + `}`
			if f, err := held(t, d, report, arguments), validates(t, d.Schema, []byte(arguments)); f != nil || err != nil {
				t.Fatalf("%s: its sample %s: %v, %v", declared, v, f, err)
			}
		}
	}
	t.Logf("%d let through, %d not, %d samples", good, bad, samples)
	if good < 100 || bad < 100 || samples < 80 {
		t.Error("too few: the test shows little")
	}
}

func pick(r *rand.Rand, list ...string) string { return list[r.IntN(len(list))] }

func anySchema(r *rand.Rand, deep int) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if r.IntN(3) > 0 {
		add(`"type":%s`, pick(r, `"integer"`, `"number"`, `"string"`, `"boolean"`, `"null"`, `"array"`, `"object"`, `["integer","string"]`, `["object","array"]`))
	}
	if r.IntN(4) == 0 {
		add(`"enum":[%s,%s]`, anyJSON(r, 1), anyJSON(r, 1))
	}
	for _, k := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
		if r.IntN(8) == 0 {
			add(`%q:%s`, k, pick(r, "0", "1", "-1", "2.5", "10", "1e1"))
		}
	}
	if r.IntN(8) == 0 {
		add(`"multipleOf":%s`, pick(r, "1", "2", "0.5"))
	}
	for _, k := range []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"} {
		if r.IntN(8) == 0 {
			add(`%q:%d`, k, r.IntN(3))
		}
	}
	if r.IntN(8) == 0 {
		add(`"pattern":%s`, pick(r, `"a"`, `"^[ab]*$"`, `"^\\d+$"`))
	}
	if deep > 0 {
		if r.IntN(3) == 0 {
			add(`"items":%s`, anySchema(r, deep-1))
		}
		if r.IntN(3) == 0 {
			add(`"properties":{"a":%s}`, anySchema(r, deep-1))
		}
		if r.IntN(3) == 0 {
			add(`"additionalProperties":%s`, pick(r, "false", "true", anySchema(r, deep-1)))
		}
		if r.IntN(5) == 0 {
			add(`%s:[%s,%s]`, pick(r, `"anyOf"`, `"oneOf"`), anySchema(r, deep-1), anySchema(r, deep-1))
		}
	}
	if r.IntN(5) == 0 {
		add(`"required":["%s"]`, pick(r, "a", "b"))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func anyJSON(r *rand.Rand, deep int) string {
	if deep > 0 && r.IntN(3) == 0 {
		return pick(r, `[]`, `{}`, `[`+anyJSON(r, deep-1)+`]`, `[`+anyJSON(r, deep-1)+`,`+anyJSON(r, deep-1)+`]`,
			`{"a":`+anyJSON(r, deep-1)+`}`, `{"b":`+anyJSON(r, deep-1)+`,"a":`+anyJSON(r, deep-1)+`}`)
	}
	return pick(r, `0`, `1`, `-1`, `2.5`, `10`, `1e1`, `10.0`, `-0.5`, `3`, `"a"`, `"ab"`, `""`, `"12"`, `"☃☃"`, `true`, `false`, `null`)
}

// TestDeclaredWork: no schema and no arguments make holding one against the other
// much work, and numbers are exact however large.
func TestDeclaredWork(t *testing.T) {
	r := reportOf(t, `x => x`)
	long := strings.Repeat("a", 1<<20)
	digits, sevens := "1"+strings.Repeat("0", 1<<20), strings.Repeat("7", 900)
	alternatives := `{"type":"string","pattern":"^(a|a)*b$"}`
	var many []string
	for i := range 900 {
		many = append(many, fmt.Sprintf(`{"const":%d}`, i))
	}
	wrapped := "1"
	for range 2000 {
		wrapped = `{"record":` + wrapped + `}`
	}
	nested := `{"type":"integer"}`
	for range 10 {
		nested = `{"properties":{"record":` + nested + `}}`
	}
	for _, c := range []struct{ schema, input, refused string }{
		{alternatives, `"` + long + `"`, "pattern"},
		{`{"type":"string","pattern":"^(a?){450}b$"}`, `"` + long + `"`, "too large"},
		{`{"type":"string","pattern":"^(a?){450}b$"}`, `"aaa"`, "pattern"},
		{`{"anyOf":[` + strings.Join(many, ",") + `]}`, `"` + long + `"`, "too large"},
		{`{"items":{"anyOf":[` + strings.Join(many, ",") + `]}}`, `[` + strings.Repeat("899,", 100_000) + `1]`, "too large"},
		{nested, wrapped, "integer"},
		{`{"maximum":1e400}`, digits, "at most 1e400"},
		{`{"multipleOf":7}`, digits, "multiple"},
		{`{"items":{"multipleOf":` + sevens + `}}`, `[` + strings.Repeat(sevens+",", 3000) + `0]`, "too large"},
		{`{"items":{"multipleOf":1e-900}}`, `[` + strings.Repeat("1e900,", 6000) + `0]`, "too large"},
		{`{"items":{"multipleOf":0.01}}`, `[` + strings.Repeat("1234.56,", 50_000) + `0]`, ""},
		{`{"minimum":-1e999999999999999999999}`, `-1e999999999999999999998`, ""},
		{`{"exclusiveMaximum":0}`, `-1e-999999999999999999999`, ""},
		{`{"enum":[100000000000000000000000000000000000001]}`, `100000000000000000000000000000000000002`, "is not"},
		{`{"enum":[0]}`, `-0.000e5`, ""},
		{`{"type":"string"}`, `"\ud800`, "JSON"},
		{`{"type":"object","additionalProperties":false}`, `{"` + long + `":1}`, "isn't one"},
		{`{"type":"array"}`, strings.Repeat("[", 9000) + strings.Repeat("]", 9000), ""},
	} {
		d, f := check.Narrow(r, json.RawMessage(property("input", c.schema)))
		if f != nil {
			t.Fatalf("%.100s: %v", c.schema, f)
		}
		f = d.Check([]json.RawMessage{json.RawMessage(c.input)}, true)
		if (f == nil) != (c.refused == "") || f != nil && (!strings.Contains(f.Message, c.refused) || len(f.Error()) > 1000) {
			t.Errorf("%.100s of %.50s: %v, want %q", c.schema, c.input, f, c.refused)
		}
	}
	// A fault that another alternative takes back copies no long key.
	d, f := check.Narrow(r, json.RawMessage(property("input", `{"additionalProperties":{"items":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`)))
	must.NoFault(t, f)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	must.NoFault(t, d.Check([]json.RawMessage{json.RawMessage(`{"` + strings.Repeat("k", 1<<20) + `":[` + strings.Repeat("1,", 1000) + `1]}`)}, true))
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 100<<20 {
		t.Errorf("%d MiB for a key of one", (after.TotalAlloc-before.TotalAlloc)>>20)
	}
	// Comparing is what exact arithmetic says.
	rng := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		return pick(rng, "", "-") + pick(rng, "0", "1", "10", "12", "100") + pick(rng, "", ".0", ".5", ".05", ".50", ".12") + pick(rng, "", "e1", "E-1", "e+2", "e0")
	}
	for range 2000 {
		a, b := text(), text()
		d, f := check.Narrow(r, json.RawMessage(property("input", `{"minimum":`+a+`}`)))
		must.NoFault(t, f)
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		if got, want := d.Check([]json.RawMessage{json.RawMessage(b)}, true) == nil, y.Cmp(x) >= 0; got != want {
			t.Errorf("%s is at least %s: %v", b, a, got)
		}
	}
}
