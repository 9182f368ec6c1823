package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/facts"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestFlowOfCode: what breaks a rule whenever it gets there is refused, what may break one
// is a note and is refused with strict, and describe has both.
func TestFlowOfCode(t *testing.T) {
	t.Parallel()
	const config = `{"sources":[{"of":"toy.get","label":"mail"}],"rules":[
		{"to":"toy.send","argument":"to","not_from":"mail"},
		{"to":"toy.put","argument":"key","not_from":"mail","else":"ask"}]}`
	m := newMailbox(t, config)
	evolve := func(code, more string) string {
		a := do(t, m.Server, "evolve", `{"name":"reply","code":`+quoteJSON(code)+`,"capabilities":["toy:**","call:send"]`+more+`}`)
		return a.Text
	}
	for _, c := range []struct{ code, more, want string }{
		{`r => let m = !toy.get(r.id) in !toy.send({to: m.from, text: r.text})`, "",
			"line 1, column 32: toy.send may not have `to` made of mail, and it is `from` of what toy.get gives at line 1, column 14 (rule 1)"},
		{`r => @send(!toy.get(r.id).from)`, "", "toy.send may not have `to` made of mail"},
		{`r => let m = !toy.get(r.id) in !toy.send({to: r.to ?? m.from, text: r.text})`, "",
			"toy.send may be denied: toy.send may not have `to` made of mail, and it may be `from` of what toy.get gives"},
		{`r => let m = !toy.get(r.id) in !toy.send({to: r.to ?? m.from, text: r.text})`, `,"strict":true`, "flow_error: line 1, column 32: "},
		{`r => let m = !toy.get(r.id) in !toy.send({to: r.to, text: m.text})`, `,"draft":true`, `"version"`},
		{`r => !toy.put({key: !toy.get(r.id), value: 1})`, "", "toy.put will need the user's yes: "},
	} {
		if strings.Contains(c.code, "@send") {
			m.evolve("send", `to => !toy.send({to: to})`)
		}
		if got := evolve(c.code, c.more); !strings.Contains(strings.ReplaceAll(got, `\"`, `"`), c.want) {
			t.Errorf("%s\n%s\nwant %s", c.code, got, c.want)
		}
	}
	m.evolve("fine", `r => let m = !toy.get(r.id) in !toy.send({to: r.to, text: m.text})`)
	a := do(t, m.Server, "describe", `{"name":"fine","detail":true}`)
	if want := `"flows":[{"to":"toy.send","argument":"to",`; !strings.Contains(a.Text, want) || !strings.Contains(a.Text, `"verdict":"never"`) {
		t.Errorf("describe has no %s\n%s", want, a.Text)
	}
	if want := "\"make `to` of toy.send from what it reads of mail\""; !strings.Contains(a.Text, want) {
		t.Errorf("cannot has no %s\n%s", want, a.Text)
	}
	m.evolve("maybe", `r => let m = !toy.get(r.id) in [!toy.send({to: r.to ?? m.from}), !toy.put({key: "k", value: 1})]`)
	maybe, _ := m.Latest().Get("maybe")
	look := facts.Lookup{Broker: m.Broker(), Tools: m.Registry()}
	reads, does := look.FlowFacts(maybe)
	said := strings.Join(append(reads, does...), "\n")
	for _, want := range []string{
		"toy.get of toy.get,put,send:** may give mail.",
		"toy.send may not have `to` made of mail, and it may be `from` of what toy.get gives at line 1, column 14 (rule 1)\nit can't make `key` of toy.put from what it reads of mail",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the question has no\n%s\nbut\n%s", want, said)
		}
	}
	if a := do(t, m.Server, "describe", `{"name":"maybe","detail":true}`); strings.Contains(a.Text, "make `to`") {
		t.Errorf("describe says that it can't what it may: %s", a.Text)
	}
}

// Under rules of flow a plan's answer tells nothing of what the run reads, or does with it.
func TestPlanWithheld(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, toModel)
	m.evolve("fails", `k => raise(!toy.get(k).text)`)
	m.evolve("send", `k => !toy.send({to: "bob", text: !toy.get(k).text})`)
	m.evolve("is", `k => if !toy.get(k).text == "pay me" then !toy.send({to: "bob", text: "yes"}) else null`)
	m.evolve("deep", `k => let f = n => 1 + f(n) in if !toy.get(k).text == "pay me" then f(1) else null`)
	said := map[string]bool{}
	for _, tool := range []string{"fails", "send", "is", "deep"} {
		a := do(t, m.Server, "run", `{"tool":"`+tool+`","input":"mail/1","plan":true}`)
		if text := a.Text + string(a.Structured) + strings.Join(a.More, ""); strings.Contains(text, "pay") || strings.Contains(text, "toy.send") {
			t.Errorf("%s: %s", tool, text)
		}
		var members map[string]json.RawMessage
		must.NoError(t, json.Unmarshal(a.Structured, &members))
		for name := range members {
			said[name] = true
		}
	}
	if len(m.sent) > 0 || len(said) > 3 {
		t.Errorf("it sent %q and told %v", m.sent, said)
	}
}
