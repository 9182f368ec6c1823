package mcpserver

import (
	"strings"
	"testing"
)

// TestSealedWithoutRules: what was sealed is kept from the model also by a server that has no such rules any more.
func TestSealedWithoutRules(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, toModel)
	m.evolve("read", `k => !toy.get(k)`)
	m.evolve("fails", `k => raise(!toy.get(k).text)`)
	m.evolve("keep", `r => let _ = !toy.put({key: "mail/2", value: r.m}) in 0`)
	const open = `{"tool":"read","input":"open/1"}`
	succeed(t, m.Server, "run", open)
	id := strings.Trim(field(t, succeed(t, m.Server, "run", `{"tool":"read","input":"mail/1"}`), "sealed"), `"`)
	pass := `{"tool":"keep","input":{},"sealed":{"/m":"` + id + `"}}`
	succeed(t, m.Server, "run", `{"tool":"fails","input":"mail/1"}`)
	succeed(t, m.Server, "run", pass)
	for _, c := range []struct {
		config string
		shows  bool
	}{
		{toModel, false}, {`{}`, true}, {`{"sources":[{"of":"toy.get:open/**","label":"other"}],"rules":[{"to":"toy.send","not_from":"other"}],"session":"ignore"}`, true},
	} {
		m.start(c.config)
		all := do(t, m.Server, "journal", `{"limit":200}`)
		if (all.Fault == nil) != c.shows || strings.Contains(all.Text+string(all.Structured), "pay me") {
			t.Errorf("under %s the journal has %.3000s", c.config, all.Text)
		}
		if a := do(t, m.Server, "run", pass); c.config == `{}` && (a.Fault == nil || !strings.Contains(a.Text, "nothing is sealed here")) {
			t.Errorf("under %s it is passed on: %s", c.config, a.Text)
		}
	}
	m.start(`{}`)
	succeed(t, m.Server, "run", `{"tool":"read","input":"mail/1"}`) // nobody keeps that now
	all := succeed(t, m.Server, "journal", `{"limit":200}`)
	if !strings.Contains(all.Text, `"input":"\"mail/1\""`) {
		t.Errorf("what was done without rules isn't in the journal: %.3000s", all.Text)
	}
}
