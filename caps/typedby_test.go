package caps_test

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	corejson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestMisfitAnswer: an answer is held to the type that the arguments say, whoever gave it, and
// what is wrong is told without a byte of it.
func TestMisfitAnswer(t *testing.T) {
	t.Parallel()
	const bill, size = `{total: num, due: string | unit}`, `{"enum":["S","L"]}`
	o := &caps.Operation{Name: "model.extract", TypeBy: "as"}
	for _, test := range []struct {
		as, answer string
		need       bool
		why        string
	}{
		{bill, `{"found":true,"value":{"due":null,"total":1.5}}`, false, ""},
		{bill, `{"found":false}`, false, ""},
		{bill, `{"due":"May","total":2}`, true, ""},
		{size, `{"found":true,"value":"S"}`, false, ""},
		{"list[int]", `[1,2]`, true, ""},
		{size, `{"found":true,"value":"CANARY"}`, false, "the JSON Schema refuses it"},
		{bill, `{"found":true}`, false, "found without a value"},
		{bill, `{"found":false,"value":{"due":null,"total":1}}`, false, "a value without found"},
		{bill, `{"found":true,"value":{"due":null,"total":"CANARY"}}`, false, "total: string where num was said"},
		{bill, `{"found":true,"value":{"due":null,"total":1,"CANARY":1}}`, false, "wasn't said"},
		{"int", `{"found":true,"value":1,"why":"CANARY"}`, false, "wasn't said"},
		{bill, `{"due":null,"total":1}`, false, "wasn't said"},
		{bill, `"CANARY"`, true, "string where"},
		{"string", `"` + strings.Repeat("x", 201) + `"`, true, "at most 200 characters"},
		{"list[list[int]]", `[[` + strings.Repeat("1,", 100) + `1]]`, true, "more than 100 items"},
		{"nonsense", `1`, true, "nobody knows"},
		{strings.Repeat(" ", 5000), `1`, true, "nobody knows"},
	} {
		v, bad := corejson.Read(test.answer, 100, nil)
		if bad != nil {
			t.Fatal(test.answer)
		}
		args := &value.Record{Fields: []value.Field{{Key: "as", Value: value.Str(test.as)}, {Key: "need", Value: value.Bool(test.need)}}}
		why := o.MisfitAnswer(args, v)
		if (why == "") != (test.why == "") || !strings.Contains(why, test.why) || strings.Contains(why, "CANARY") {
			t.Errorf("%s as %s: %q, want %q", test.answer, test.as, why, test.why)
		}
		typ := caps.AnswerBy("as", map[string]any{"as": test.as, "need": test.need})
		if (typ == nil) != (test.why == "nobody knows") {
			t.Errorf("%s types the call as %v", test.as, typ)
		}
		if test.why == "" && typ.Misfit(v) != "" {
			t.Errorf("%s isn't of the type that the program is typed by, %s", test.answer, typ)
		}
	}
	for _, literals := range []map[string]any{{}, {"as": nil}, {"as": "int", "need": nil}, {"as": true}} {
		if typ := caps.AnswerBy("as", literals); typ != nil {
			t.Errorf("%v types the call as %s", literals, typ)
		}
	}
}
