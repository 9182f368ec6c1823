package mcpserver

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// A madeType is a type with a program that gives back a value of it, and nothing else.
type madeType struct {
	kind  string
	parts []*madeType
	keys  []string
}

// A madeValue is a value in three spellings, made without the reader: as a client
// sends it, as a result has it, and as clients written in JavaScript send it.
type madeValue struct{ sent, result, script string }

// wayKeys is names of operations, of shapes and of nothing.
var wayKeys = []string{"add", "max", "if", "var", "quote", "record", "pair", "dec", "int", "call", "fs.read", "input", "a", "name"}

// wayStrings is strings that look like something else.
var wayStrings = []string{"01234", "12", "1.5", "[1,2]", `{"add":[1,2]}`, "true", "null", "", " 7", `"x"`, "n => n", "é☃"}

func makeType(r *rand.Rand, deep int) *madeType {
	kinds := []string{"int", "num", "string", "bool", "any"}
	if deep > 0 {
		kinds = append(kinds, "list", "pair", "record", "record")
	}
	t := &madeType{kind: kinds[r.IntN(len(kinds))]}
	switch t.kind {
	case "list":
		t.parts = []*madeType{makeType(r, deep-1)}
	case "pair":
		t.parts = []*madeType{makeType(r, deep-1), makeType(r, deep-1)}
	case "record":
		for _, i := range r.Perm(len(wayKeys))[:1+r.IntN(3)] {
			t.keys, t.parts = append(t.keys, wayKeys[i]), append(t.parts, makeType(r, deep-1))
		}
	}
	return t
}

// code applies the program of the type to x.
func (t *madeType) code(x string, deep int) string {
	switch t.kind {
	case "int":
		return x + " / 1"
	case "num":
		return x + " + 0"
	case "string":
		return x + ` ++ ""`
	case "bool":
		return "not (not " + x + ")"
	case "list":
		i := fmt.Sprintf("i%d", deep)
		return fmt.Sprintf("map(%s => %s, %s)", i, t.parts[0].code(i, deep+1), x)
	case "pair":
		return fmt.Sprintf("(%s, %s)", t.parts[0].code("fst("+x+")", deep+1), t.parts[1].code("snd("+x+")", deep+1))
	case "record":
		var fields []string
		for i, k := range t.keys {
			fields = append(fields, fmt.Sprintf("%q: %s", k, t.parts[i].code(fmt.Sprintf("get(%s, %q)", x, k), deep+1)))
		}
		return "{" + strings.Join(fields, ", ") + "}"
	}
	return x
}

// stringless reports whether JSON in a string can only be meant for JSON: the type has
// no string at its top, and is known there.
func (t *madeType) stringless() bool { return t.kind != "string" && t.kind != "any" }

func (t *madeType) value(r *rand.Rand) madeValue {
	same := func(s string) madeValue { return madeValue{s, s, s} }
	join := func(all []madeValue, keys []string, open, end string) (v madeValue) {
		var sent, result, script []string
		for i, p := range all {
			key := ""
			if keys != nil {
				key = quoteJSON(keys[i]) + ":"
			}
			sent, result, script = append(sent, key+p.sent), append(result, key+p.result), append(script, key+p.script)
		}
		wrap := func(s []string) string { return open + strings.Join(s, ",") + end }
		return madeValue{wrap(sent), wrap(result), wrap(script)}
	}
	switch t.kind {
	case "int":
		return same(fmt.Sprint(r.IntN(2000) - 1000))
	case "num":
		switch r.IntN(4) {
		case 0:
			return same(fmt.Sprint(r.IntN(1000)))
		case 1:
			n := r.IntN(100)
			return madeValue{fmt.Sprintf("%d.0", n), fmt.Sprintf("%d.0", n), fmt.Sprint(n)}
		case 2:
			s := fmt.Sprintf("%d.%d", r.IntN(100), 1+r.IntN(9))
			return madeValue{`{"dec":"` + s + `"}`, s, s}
		}
		return same(fmt.Sprintf("-0.%02d1", r.IntN(100)))
	case "string":
		return same(quoteJSON(wayStrings[r.IntN(len(wayStrings))]))
	case "bool":
		return same(fmt.Sprint(r.IntN(2) == 0))
	case "list":
		var all []madeValue
		for range r.IntN(4) {
			all = append(all, t.parts[0].value(r))
		}
		return join(all, nil, "[", "]")
	case "pair":
		return join([]madeValue{t.parts[0].value(r), t.parts[1].value(r)}, nil, `{"pair":[`, "]}")
	case "record":
		var all []madeValue
		for _, p := range t.parts {
			all = append(all, p.value(r))
		}
		v := join(all, t.keys, "{", "}")
		if len(t.keys) == 1 && (t.keys[0] == "record" || t.keys[0] == "pair" || t.keys[0] == "dec" || t.keys[0] == "int") {
			v.result = `{"record":` + v.result + "}"
		}
		return v
	}
	// Of any type, a record that no shape is, or a leaf.
	switch r.IntN(3) {
	case 0:
		return same(fmt.Sprintf(`{"add":[1,2.50],"x":%s}`, quoteJSON(wayStrings[r.IntN(len(wayStrings))])))
	case 1:
		return same(`[{"quote":{"var":"x"}},{"pair":[1,null]}]`)
	}
	return same("1.25")
}

// TestWays: every way in reads an input as what it is, and a result that is given back
// is equal to itself.
func TestWays(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	s := New(Options{})
	gives := func(what, tool, arguments, want string) {
		t.Helper()
		a := do(t, s, tool, arguments)
		if same, err := equalData([]byte(a.Text), []byte(want), false); a.Fault != nil || err != nil || !same {
			t.Errorf("%s: %s %s\n gives %s\n want %s", what, tool, arguments, a.Text, want)
		}
	}
	for i := range 200 {
		var names, bodies, sent, results, script, strung []string
		stringed := false
		for _, name := range []string{"b", "a", "rest"}[:1+r.IntN(3)] {
			typ := makeType(r, 2)
			v := typ.value(r)
			names, bodies = append(names, name), append(bodies, typ.code(name, 0))
			key := quoteJSON(name) + ":"
			sent, results, script = append(sent, key+v.sent), append(results, v.result), append(script, key+v.script)
			if typ.stringless() {
				strung, stringed = append(strung, key+quoteJSON(v.sent)), true
			} else {
				strung = append(strung, key+v.sent)
			}
		}
		code := "(" + strings.Join(names, ", ") + ") => [" + strings.Join(bodies, ", ") + "]"
		want := "[" + strings.Join(results, ",") + "]"
		object := func(parts []string) string {
			if len(names) == 1 {
				return strings.TrimPrefix(parts[0], `"b":`)
			}
			return "{" + strings.Join(parts, ",") + "}"
		}
		input := object(sent)
		name := fmt.Sprintf("t%d", i)
		must(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s,"examples":[{"input":%s,"expect":%s}]}`, name, quoteJSON(code), input, want))
		must(t, s, "evolve", fmt.Sprintf(`{"name":"c%d","code":%s,"capabilities":["call:%s"]}`, i, quoteJSON("x => @"+name+"(x)"), name))

		gives("run", "run", fmt.Sprintf(`{"tool":%q,"input":%s}`, name, input), want)
		gives("inline", "run", fmt.Sprintf(`{"code":%s,"input":%s}`, quoteJSON(code), input), want)
		byName := input
		if len(names) == 1 {
			byName = `{"input":` + input + "}"
		}
		gives("by name", name, byName, want)
		gives("script", "run", fmt.Sprintf(`{"tool":%q,"input":%s}`, name, object(script)), want)
		if stringed {
			gives("strings", "run", fmt.Sprintf(`{"tool":%q,"input":%s}`, name, object(strung)), want)
		}
		gives("back", "run", fmt.Sprintf(`{"code":"x => x","input":%s}`, want), want)
		if len(names) > 1 {
			gives("@tool", fmt.Sprintf("c%d", i), `{"input":`+input+"}", want)
			a := do(t, s, name, object(sent[1:])+"")
			if len(names) == 2 {
				a = do(t, s, name, "{"+sent[1]+"}")
			}
			if a.Fault == nil || a.Fault.Kind != "invalid_request" || !strings.Contains(a.Text, "b is missing") {
				t.Errorf("%s without b: %s", code, a.Text)
			}
		}
	}
}

// TestFirstContent: the first content item is the result alone, a string as it is where
// the tool gives text; what is told besides has items of its own.
func TestFirstContent(t *testing.T) {
	s := New(Options{})
	must(t, s, "evolve", `{"name":"hail","code":"s => \"line\\n\" ++ s"}`)
	must(t, s, "evolve", `{"name":"same","code":"x => x"}`)
	cs := session(t, s, nil)
	for _, c := range []struct{ tool, arguments, text string }{
		{"hail", `{"input":"a \"b\""}`, "line\na \"b\""},
		{"run", `{"tool":"hail","input":"x"}`, "line\nx"},
		{"run", `{"code":"\"x\" ++ \"y\""}`, `"xy"`},
		{"same", `{"input":"x"}`, `"x"`},
		{"run", `{"code":"n => n / 2","input":"8"}`, `4`},
	} {
		_, res := ask(t, cs, c.tool, c.arguments)
		b, err := json.Marshal(res.Content[0])
		var item struct{ Text string }
		if err != nil || json.Unmarshal(b, &item) != nil || item.Text != c.text {
			t.Errorf("%s %s: %s, want %q", c.tool, c.arguments, b, c.text)
		}
	}
}
