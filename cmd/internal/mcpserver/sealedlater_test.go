package mcpserver

import (
	"cmp"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
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
	if all := succeed(t, m.Server, "journal", `{"limit":200}`); !strings.Contains(all.Text, `"input":"\"mail/1\""`) {
		t.Errorf("what was done without rules isn't in the journal: %.3000s", all.Text)
	}
}

// TestSealedAlone: so is what was sealed of a call that wasn't begun, and what was only since it couldn't be recorded that it is shown.
func TestSealedAlone(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, mailRules+"]}")
	m.evolve("read", `k => !toy.get(k)`)
	must.NoError(t, os.Mkdir(m.session, 0o700))
	if a := do(t, m.Server, "run", `{"tool":"read","input":"mail/1"}`); !a.IsSealed {
		t.Fatalf("it isn't sealed: %s", a.Text)
	}
	must.NoError(t, os.Remove(m.session))
	_, err := m.broker.Seal(run.Sealed{Text: "pay me", Failed: true}, flow.Both(1)) // as where nothing was begun
	must.NoError(t, err)
	m.start(`{}`)
	if all := succeed(t, m.Server, "journal", `{"limit":200}`); strings.Contains(all.Text, "pay me") {
		t.Errorf("the journal shows %.3000s", all.Text)
	}
}

// TestSealedOfTasks: what a task gave under other rules, or none, is told once more as the rules of now have it; and as it was
// where they are the same.
func TestSealedOfTasks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config, code string
		report       bool
		refuses      journal.Kind
		shown        string // the second time; "": nothing
	}{
		"no rule about the model": {mailRules + "]}", `k => !toy.get(k)`, false, "", ""},
		"only a report":           {toModel, `k => !toy.get(k)`, true, "", ""},
		"no rules":                {`{}`, `k => !toy.get(k)`, false, "", ""},
		"a failure":               {mailRules + "]}", `k => raise(!toy.get(k))`, false, "", ""},
		"an exception":            {toModel, `k => !toy.get(k).text == "pay me"`, false, "", "true"},
		"nothing of it":           {mailRules + "]}", `k => !toy.get("open/1")`, false, "", `"O"`},
		"what couldn't be sealed": {toModel, `k => !toy.get(k)`, false, journal.ResultSealed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailbox(t, c.config)
			m.refuses = c.refuses
			m.start(c.config)
			if c.report {
				m.broker.Flow().Report = true
			}
			m.evolve("slow", c.code)
			var made struct{ Task string }
			m.mu.Lock() // nothing is read before it is a task
			_ = json.Unmarshal(succeed(t, m.Server, "run", `{"tool":"slow","input":"mail/1","background":true}`).Structured, &made)
			m.mu.Unlock()
			again := `{"task":"` + made.Task + `"}`
			want := cmp.Or(c.shown, "pay me")
			if c.refuses != "" {
				want = "couldn't be kept"
			}
			if a := do(t, m.Server, "run", again); !strings.Contains(a.Text+a.First(), want) {
				t.Fatalf("it gives %s", a.Text)
			}
			m.refuses = ""
			for range 2 {
				m.start(toModel)
				a := do(t, m.Server, "run", again)
				if c.shown == "" && (strings.Contains(a.Text+string(a.Structured), "pay me") || !a.IsSealed) || c.shown != "" && a.Text != c.shown {
					t.Errorf("later it gives %s %s", a.Text, a.Structured)
				}
				if name == "an exception" && field(t, a, "steps") != "" {
					t.Errorf("later it tells its steps: %s", a.Structured)
				}
			}
			if all, _, err := m.memory.Read(journal.Query{Kind: journal.ResultSealed}); err != nil || len(all) > 1 {
				t.Errorf("it was sealed %d times: %v", len(all), err)
			}
		})
	}
}

// TestPlanOfOtherRules: of a plan that was made under the rules of now and done without any, nobody knows what came in.
func TestPlanOfOtherRules(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, mailRules+"]}")
	m.evolve("acts", `k => let a = !toy.get(k) in let _ = !toy.send({to: "me", text: "x"}) in a`)
	planned := succeed(t, m.Server, "run", `{"tool":"acts","input":"mail/1","plan":true}`)
	m.start(`{}`)
	if a := do(t, m.Server, "run", `{"plan":`+field(t, planned, "plan")+`}`); !strings.Contains(a.Text, "pay me") {
		t.Fatalf("it gives %s", a.Text)
	}
	ended, _, err := m.memory.Read(journal.Query{Kind: journal.RunEnded, Last: true, Limit: 1})
	must.NoError(t, err)
	m.start(mailRules + "]}")
	must.NoError(t, m.broker.Session().Clear(nil))
	succeed(t, m.Server, "journal", `{"run":"`+ended[0].Run+`"}`)
	if got := m.label(); got != "mail" {
		t.Errorf("it is shown as of %q", got)
	}
}

// TestCodeOfOtherRules: what a run under other rules gave may come from what the writer of its code had been shown, also if it
// did nothing; of inline code nobody knows that.
func TestCodeOfOtherRules(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, mailRules+"]}")
	m.evolve("read", `k => !toy.get(k)`)
	m.evolve("plain", `k => "pay nobody"`)
	succeed(t, m.Server, "run", `{"tool":"read","input":"mail/1"}`)
	m.evolve("says", `k => "pay me"`)
	must.NoError(t, os.Remove(m.session)) // who writes these was shown nothing
	m.start(`{}`)
	succeed(t, m.Server, "evolve", `{"name":"calls","code":"k => @says(k)","capabilities":["call:says"]}`)
	m.evolve("finds", `k => length(to_text(code_of("says")))`)
	for call, label := range map[string]string{
		`"tool":"plain","input":1`: "", `"tool":"says","input":1`: "mail", `"tool":"calls","input":1`: "mail", `"tool":"finds","input":1`: "mail", `"code":"1 + 1"`: "mail",
	} {
		m.start(`{}`)
		succeed(t, m.Server, "run", `{`+call+`}`)
		ended, _, err := m.memory.Read(journal.Query{Kind: journal.RunEnded, Last: true, Limit: 1})
		must.NoError(t, err)
		m.start(mailRules + "]}")
		succeed(t, m.Server, "journal", `{"run":"`+ended[0].Run+`"}`)
		if got := m.label(); got != label {
			t.Errorf("%s is shown as of %q, not %q", call, got, label)
		}
		if label != "" {
			must.NoError(t, os.Remove(m.session))
		}
	}
}

// TestSealedCancelled: a task that was cancelled, and whose end is sealed, is told by a later server as by this one: that it was
// cancelled in time may depend on what it read.
func TestSealedCancelled(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, toModel)
	m.evolve("slow", `k => let _ = !toy.get(k) in let f = n => f(n + 1) in f(0)`)
	var made struct{ Task string }
	m.mu.Lock() // nothing is read before it is a task
	_ = json.Unmarshal(succeed(t, m.Server, "run", `{"tool":"slow","input":"mail/1","background":true}`).Structured, &made)
	m.mu.Unlock()
	again := `{"task":"` + made.Task + `"}`
	wait.Until(t, "the mail is read", func() bool {
		events, _, err := m.memory.Read(journal.Query{Run: made.Task, Kind: journal.EffectOutcome})
		return err == nil && len(events) > 0
	})
	do(t, m.Server, "run", `{"task":"`+made.Task+`","cancel":true}`)
	var a wire.Answer
	wait.Until(t, "its end", func() bool { a = do(t, m.Server, "run", again); return a.IsSealed })
	m.start(toModel)
	if b := do(t, m.Server, "run", again); b.Text != a.Text || string(b.Structured) != string(a.Structured) {
		t.Errorf("later it gives %s, and before %s", b.Text, a.Text)
	}
}

// slow has read the mail in the background, and shown it: the task, and the call that shows it again.
func (m *mailbox) slow(t *testing.T) (task, again string) {
	m.evolve("slow", `k => !toy.get(k)`)
	var made struct{ Task string }
	m.mu.Lock() // nothing is read before it is a task
	_ = json.Unmarshal(succeed(t, m.Server, "run", `{"tool":"slow","input":"mail/1","background":true}`).Structured, &made)
	m.mu.Unlock()
	again = `{"task":"` + made.Task + `"}`
	if a := do(t, m.Server, "run", again); !strings.Contains(a.Text, "pay me") {
		t.Fatalf("it gives %s", a.Text)
	}
	return made.Task, again
}

// TestSealedLost: what was sealed, and the record has no text of any more, is sealed once.
func TestSealedLost(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, mailRules+"]}")
	task, again := m.slow(t)
	_, err := m.memory.Append(journal.Written, journal.ResultSealed, task, "", []byte(`{"sealed":"s_a","label":["mail"],"value":{"bytes":9,"sha256":"`+strings.Repeat("0", 64)+`"}}`))
	must.NoError(t, err)
	for range 2 {
		m.start(toModel)
		if a := do(t, m.Server, "run", again); !a.IsSealed || !strings.Contains(a.Text, " s_a.") {
			t.Errorf("later it gives %s", a.Text)
		}
	}
	if all, _, err := m.memory.Read(journal.Query{Kind: journal.ResultSealed}); err != nil || len(all) != 1 {
		t.Errorf("it was sealed %d times: %v", len(all), err)
	}
}

// TestSealedUnended: of a task that its run can't end, since it can't go on, and what may have come into that counts: what the
// journal has of it, and why it ended.
func TestSealedUnended(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, mailRules+"]}")
	m.evolve("slow", `k => !toy.get(k)`)
	tool, _ := m.tools.Snapshot().Get("slow")
	for _, c := range []struct {
		name  string
		begun bool
		label string
	}{
		{"begun", true, "mail"}, {"waiting", false, ""},
	} {
		id, call := m.broker.NewID(), run.Call{Tool: "run", Arguments: []byte(`{"tool":"slow","input":"mail/1"}`)}
		must.NoError(t, m.broker.CreateTask(&run.Task{ID: id, Call: call}))
		if c.begun {
			m.broker.Begin(m.tools.Snapshot(), run.Start{ID: id, Call: call, Tool: tool, Input: []byte(`"mail/1"`), Bounds: run.Bounds{MaxSteps: 1000, MaxMemory: 1 << 20, MaxDepth: 100, Result: 1000}})
		}
		must.NoError(t, m.broker.EndTask(id, "", 0, fault.New(fault.NoTool, "retired")))
		for _, tool := range []string{"journal", "run", "run"} {
			must.NoError(t, m.broker.Session().Clear(nil))
			if a := do(t, m.Server, tool, `{"`+map[string]string{"journal": "run", "run": "task"}[tool]+`":"`+id+`"}`); m.label() != c.label || tool == "run" && !strings.Contains(a.Text, "retired") {
				t.Errorf("%s: %s gives %s, and the label is %q", c.name, tool, a.Text, m.label())
			}
		}
	}
}

// TestJournalBeforeRules: what the journal has of a run that acted before there were rules counts, whatever came into that.
func TestJournalBeforeRules(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, `{}`)
	m.evolve("read", `k => if has(k, "key") then !toy.get(k.key) else 0`)
	succeed(t, m.Server, "run", `{"tool":"read","input":{}}`)
	succeed(t, m.Server, "run", `{"tool":"read","input":{"key":"mail/1"}}`)
	runs, _, err := m.memory.Read(journal.Query{Kind: journal.RunStarted})
	must.NoError(t, err)
	m.start(mailRules + "]}")
	for i, want := range []string{"", "mail"} {
		succeed(t, m.Server, "journal", `{"run":"`+runs[i].Run+`"}`)
		if got := m.label(); got != want {
			t.Errorf("run %d: the label is %q", i, got)
		}
	}
}

// TestJournalOtherLabels: what a run gave that acted under rules by which other labels came in counts as if there had been none,
// also where it went on without rules after the end of its server; what acted on nothing doesn't.
func TestJournalOtherLabels(t *testing.T) {
	t.Parallel()
	const web = `{"of":"toy.get:open/**","label":"web"}`
	before := `{"sources":[` + web + `],"rules":[{"to":"toy.send","not_from":"web"}]}`
	after := strings.Replace(mailRules, "[", "["+web+",", 1) + `,{"to":"toy.send","not_from":"web"}`
	m := newMailbox(t, before)
	m.evolve("read", `k => if has(k, "key") then [!toy.get("open/1"), !toy.get(k.key)] else 0`)
	succeed(t, m.Server, "run", `{"tool":"read","input":{}}`)
	succeed(t, m.Server, "run", `{"tool":"read","input":{"key":"mail/1"}}`)
	_, again := m.slow(t)
	m.start(after + "]}")
	id := m.broker.NewID()
	for _, e := range []journal.Event{
		{Kind: journal.RunStarted, Data: []byte(`{"flow":"` + m.broker.Flow().Hash + `"}`)}, {Kind: journal.EffectRequested, Data: []byte(`{"op":"toy.get"}`)},
		{Kind: journal.RunEnded, Data: []byte(`{"steps":1,"flow":""}`)},
	} {
		_, err := m.memory.Append(journal.Written, e.Kind, id, "", e.Data)
		must.NoError(t, err)
	}
	runs, _, err := m.memory.Read(journal.Query{Kind: journal.RunStarted})
	must.NoError(t, err)
	for i, mail := range []bool{false, true, true, true} {
		must.NoError(t, m.broker.Session().Clear(nil))
		succeed(t, m.Server, "journal", `{"run":"`+runs[i].Run+`"}`)
		if got := m.label(); strings.Contains(got, "mail") != mail {
			t.Errorf("run %d: the label is %q", i, got)
		}
	}
	must.NoError(t, m.broker.Session().Clear(nil))
	if a := do(t, m.Server, "run", again); !strings.Contains(m.label(), "mail") || !strings.Contains(a.Text, "pay me") {
		t.Errorf("later it gives %s, and the label is %q", a.Text, m.label())
	}
	m.start(after + `,{"to":"model","not_from":"mail"}]}`)
	if a := do(t, m.Server, "run", again); !a.IsSealed || strings.Contains(a.Text, "pay me") {
		t.Errorf("where it is kept it gives %s", a.Text)
	}
}
