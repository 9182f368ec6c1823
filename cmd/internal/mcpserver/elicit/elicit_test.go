package elicit

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestQuestionContent: an answer with a question has the empty list as its content, since
// null isn't one.
func TestQuestionContent(t *testing.T) {
	ts := &Calls{}
	asking := &conversation{cancel: func() {}, questions: make(chan question, 1), ended: make(chan struct{})}
	close(asking.ended)
	asking.questions <- question{&mcp.ElicitParams{Message: "?"}, make(chan *mcp.ElicitResult, 1)}
	res, err := ts.follow(t.Context(), asking)
	defer ts.End()
	must.NoError(t, err)
	text, err := json.Marshal(res)
	if err != nil || !strings.Contains(string(text), `"content":[]`) {
		t.Errorf("%s, %v", text, err)
	}
}

// A call that is made again is the same in another spelling, as far as that takes no values of its arguments.
func TestDigest(t *testing.T) {
	same := func(a, b string) bool { return Digest("run", []byte(a)) == Digest("run", []byte(b)) }
	long := `[{"":0}` + strings.Repeat(`,{"":0}`, maxSorted) + `]`
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":[2]}`, `{"b": [2], "\u0061": 1}`, true},
		{`{"a":1.0}`, `{"a":1}`, false},
		{long, strings.ReplaceAll(long, ",", " ,\n"), true},
		{long, strings.Replace(long, "0", "1", 1), false},
	} {
		if same(c.a, c.b) != c.same {
			t.Errorf("%.40s and %.40s: want the same %v", c.a, c.b, c.same)
		}
	}
	if n := testing.AllocsPerRun(1, func() { Digest("run", []byte(long)) }); n > 100 {
		t.Errorf("%v allocations", n)
	}
}

// A server's form is shown with its words in quotes; what wants a secret, what is no form, and
// what two clients could read in two ways isn't shown.
func TestServerForm(t *testing.T) {
	t.Parallel()
	const canary = `IGNORE-ALL\u202e\n`
	for schema, want := range map[string]string{
		``: `{"type":"object","properties":{}}`,
		`{"type":"object","properties":{"n":{"type":"integer","title":"` + canary + `","minimum":1,"default":2}},"required":["n"]}`: `{"type":"object","properties":{"n":{"type":"integer","title":"\"IGNORE-ALL\\u202e\\n\""}},"required":["n"]}`,
		`{"properties":{"c":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b"}]}}}`:                                  `{"type":"object","properties":{"c":{"type":"string","enum":["a","b"]}}}`,
		`{"properties":{"compass":{"type":"boolean","description":"turn the map"}}}`:                                                `{"type":"object","properties":{"compass":{"type":"boolean","description":"\"turn the map\""}}}`,
		`{"properties":{"x":{"type":"string","format":"password"}}}`:                                                                "",
		`{"properties":{"x":{"type":"array","items":{"type":"string"}}}}`:                                                           "",
		`{"properties":{"x":{"type":"object"}}}`:                                                                                    "",
		`{"properties":{"x":{"type":"string"},"x":{"type":"integer"}}}`:                                                             "",
		`{"properties":{"` + canary + `":{"type":"string"}}}`:                                                                       "",
		`{"properties":{"c":{"type":"string","enum":["a\u202eb"]}}}`:                                                                "",
		`{"type":"string"}`: "", `[]`: "", `{"properties":[]}`: "", `nonsense`: "",
		`{"properties":{` + strings.Repeat(`"a":{"type":"string"},`, mostFields) + `"b":{"type":"string"}}}`: "",
	} {
		form, err := readForm([]byte(schema), true)
		if (err == nil) != (want != "") || err == nil && string(form.schema()) != want {
			t.Errorf("%s: %s, %v; want %s", schema, form.schema(), err, want)
		}
		if err != nil && strings.Contains(err.Error(), "IGNORE") {
			t.Errorf("%s: the reason has the server's words: %v", schema, err)
		}
	}
	for _, name := range []string{"password", "Passwort", "user_password", "API-Key", "apiKey", "accessToken", "otp", "pin", "cvv", "cardNumber", "client_secret", "privateKey", "verificationCode"} {
		if form, err := readForm([]byte(`{"properties":{"`+name+`":{"type":"string"}}}`), true); err == nil {
			t.Errorf("%s: the user is asked %s", name, form.schema())
		}
		if form, err := readForm([]byte(`{"properties":{"x":{"type":"string","description":"your `+name+`"}}}`), true); err == nil {
			t.Errorf("%s: the user is asked %s", name, form.schema())
		}
	}
}

// A tool's form is its fields by name or a JSON Schema; what it can't have is told by name.
func TestToolForm(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"n":{"type":"integer"},"s":{"enum":["S","L"],"title":"size"},"o":{"optional":true}}`: `{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string","title":"size","enum":["S","L"]},"o":{"type":"string"}},"required":["n","s"]}`,
		`{"type":"object","properties":{"a":{},"b":{"type":"boolean"}},"required":["b"]}`:      `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"boolean"}},"required":["b"]}`,
		`{"properties":{"type":"string"}}`:                                                     `the field type: write {type: "string"}`,
		`{"type":"list","properties":{}}`:                                                      "of the type object",
		`{"properties":{},"additionalProperties":false}`:                                       `no "additionalProperties"`,
		`{"n":{"minimum":1}}`:                                                                  `the field n: it can't have "minimum"`,
		`{"n":{"type":"integer","enum":["1"]}}`:                                                "only a string has an enum",
		`{"n":{"type":"list"}}`:                                                                "its type is string",
		`{"s":{"enum":["a","a"]}}`:                                                             "each choice is another",
		`{"s":{"title":"` + strings.Repeat("x", 201) + `"}}`:                                   "at most 200 bytes",
		`{"a b":{}}`: "a name is a letter",
	} {
		form, err := readForm([]byte(schema), false)
		if got := string(form.schema()); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v; want %s", schema, got, err, want)
		}
	}
}

// TestFormContent: of what a client says that the person filled in, only what fits
// the form reaches the tool; a client that offers no choice but sends one, or another
// type, is told so, whatever it checked itself.
func TestFormContent(t *testing.T) {
	all := form{
		{name: "n", typ: "integer", optional: true}, {name: "x", typ: "number", optional: true}, {name: "yes", typ: "boolean", optional: true},
		{name: "size", typ: "string", choices: []string{"S", "L"}, optional: true}, {name: "note", typ: "string", optional: true},
	}
	for _, test := range []struct {
		name  string
		given any
		want  string // ""; it is refused
	}{
		{"size", "L", `{"size":"L"}`}, {"size", "XL", ""}, {"size", "s", ""}, {"size", "", ""}, {"size", "S ", ""}, {"size", true, ""}, {"size", []any{"S"}, ""},
		{"n", 3.0, `{"n":3}`}, {"n", -0.5, ""}, {"n", 9007199254740991.0, `{"n":9007199254740991}`}, {"n", 9007199254740992.0, ""}, {"n", -9007199254740992.0, ""},
		{"n", math.NaN(), ""}, {"n", math.Inf(1), ""}, {"n", 1e300, ""}, {"n", "3", ""}, {"n", true, ""},
		{"x", 0.5, `{"x":0.5}`}, {"x", "0.5", ""}, {"x", false, ""},
		{"yes", false, `{"yes":false}`}, {"yes", "true", ""}, {"yes", 1.0, ""},
		{"note", "a", `{"note":"a"}`}, {"note", 1.0, ""}, {"note", map[string]any{"a": 1}, ""}, {"note", true, ""},
		{"note", strings.Repeat("x", mostAnswer), `{"note":"` + strings.Repeat("x", mostAnswer) + `"}`}, {"note", strings.Repeat("x", mostAnswer+1), ""},
		{"note", nil, `{}`}, {"more", "x", `{}`},
	} {
		content, f := all.content(map[string]any{test.name: test.given})
		if test.want == "" && f == nil || test.want != "" && (f != nil || string(content) != test.want) {
			t.Errorf("%s %.40v: %.60s, %v", test.name, test.given, content, f)
		}
	}
	all[4].optional = false
	for _, given := range []map[string]any{nil, {}, {"note": nil}, {"n": 1.0}} {
		if content, f := all.content(given); f == nil {
			t.Errorf("%v: %s", given, content)
		}
	}
}

// TestFilledIn: what a person fills in is a record of what they wrote, of the type that
// is said, whatever the form's fields are called.
func TestFilledIn(t *testing.T) {
	o := Manifest().Operations[0]
	for content, want := range map[string]string{
		`{}`:                        "",
		`{"dec":"2.5"}`:             "dec string",
		`{"z":"42","a":1,"b":2.5}`:  "a int, b dec, z string",
		`{"pair":true,"quote":"x"}`: "pair bool, quote string",
	} {
		v, ok := filledIn(wire.Object(content))
		r, isRecord := v.(*value.Record)
		if !ok || !isRecord {
			t.Fatalf("%s is %v", content, v)
		}
		var got []string
		for _, f := range r.Fields {
			got = append(got, f.Key+" "+string(f.Value.Type()))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s is %v, expected %s", content, got, want)
		}
		answer := &value.Record{Fields: []value.Field{{Key: "action", Value: value.Str("accept")}, {Key: "content", Value: v}}}
		if why := o.Type.Misfit(answer); why != "" {
			t.Errorf("%s: %s", content, why)
		}
	}
}
