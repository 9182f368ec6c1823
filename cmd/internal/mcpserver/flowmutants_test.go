package mcpserver

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/flow/mutate"
)

// flowMistakes are seeded mistakes in what the server and its runs do about rules of flow.
var flowMistakes = []mutate.Mistake{
	// What the model is shown.
	{"engine/sealed.go", "return len(s.broker.Flow().Shown()) > 0 && (", "if M {\nreturn false\n}\nreturn len(s.broker.Flow().Shown()) > 0 && ("},
	{"engine/sealed.go", "a = a.Uncounted()", ""},
	{"engine/replay.go", "a = a.Uncounted()", ""},
	{"engine/journal.go", `end.Stopped == ""`, `If(M, true, end.Stopped == "")`},
	{"engine/journal.go", `(same || !last("effect", &struct{}{}))`, `If(M, true, same || !last("effect", &struct{}{}))`},
	{"engine/journal.go", `*cmp.Or(end.Flow, &start.Flow)`, `If(M, start.Flow, *cmp.Or(end.Flow, &start.Flow))`},
	{"wire/answer.go", `if m.Name != "steps" && m.Name != "rounds" && m.Name != "notes" {`, `if If(M, true, m.Name != "steps" && m.Name != "rounds" && m.Name != "notes") {`},
	{"engine/sealed.go", "labels = p.Names(all)", "labels = p.Names(If(M, one.Label(p).Any(), all))"},
	{"engine/sealed.go", "t.sealed[at] = one.Label(s.broker.Flow())", "t.sealed[at] = If(M, 0, one.Label(s.broker.Flow()))"},
	{"engine/sealed.go", "shown := l.Any()", "shown := l.Any()\nif M && a.Fault != nil {\nreturn a, true\n}"},
	{"engine/sealed.go", "if err := s.broker.Show(shown, r.ID()); err != nil {", "if M {\nreturn a, true\n}\nif err := s.broker.Show(shown, r.ID()); err != nil {"},
	{"engine/madeunder.go", "if len(s.broker.Flow().Shown()) == 0 {", "if M || len(s.broker.Flow().Shown()) == 0 {"},
	{"engine/madeunder.go", "err := s.broker.ShowNames(under, \"\")\n", "err := s.broker.ShowNames(If(M, nil, under), \"\")\n"},
	{"engine/madeunder.go", "if err == nil {\n\t\treturn nil\n\t}\n\ts.log", "if M || err == nil {\n\t\treturn nil\n\t}\n\ts.log"},
	{"engine/history.go", "counted := s.Secretive() != nil", "counted := If(M, false, s.Secretive() != nil)"},
	{"engine/journal.go", "case begun && known && !same:", "case !M && begun && known && !same:"},
	{"engine/run.go", "if s.seals(&t) {", "if If(M, false, s.seals(&t)) {"},
	// What runs know of their data.
	{"../../../caps/permit.go", "segmentsBegin(split(scope), split(string(s)))", `If(M, Segments.Overlaps(scope, designated+"/**"), segmentsBegin(split(scope), split(string(s))))`},
	{"../../../caps/run/flow.go", "labels[a.index] = r.came(a)", ""},
	{"../../../caps/run/flow.go", "r.enter(c.all, origin{a.n, a.request.Op, string(a.request.At)})", ""},
	{"../../../caps/run/flow.go", "if p.About(r.flows.entered)&^from != 0 || len(where) > 1 {", "if If(M, false, p.About(r.flows.entered)&^from != 0 || len(where) > 1) {"},
	{"../../../caps/run/flow.go", "from = v.about\n\t}\n\twords", "from = If(M, from, v.about)\n\t}\n\twords"},
	{"../../../caps/run/flow.go", "if len(ends) == 0 ||", "if M || len(ends) == 0 ||"},
	{"../../../caps/run/resume.go", "r.flows.under = r.under(rec.Under) | r.under(s.Under)", "r.flows.under = If(M, 0, r.under(rec.Under)) | r.under(s.Under)"},
	{"../../../caps/run/plan.go", "&& r.flows != nil && len(p.Steps) == 0:", "&& !M && r.flows != nil && len(p.Steps) == 0:"},
	{"../../../caps/run/run.go", "if r.past != nil {\n\t\thash", "if r.past != nil && (!M || !r.past.rec.planned) {\n\t\thash"},
	{"../../../caps/run/run.go", "v.run.enter(v.run.madeUnder(t), origin{}) // with what its code says", ""},
	{"../../../caps/run/follower.go", "f.code = r.madeUnder(e.Tool)", "f.code = r.madeUnder(e.Tool)\nif M {\nf.code = 0\n}"},
	{"../../../caps/run/follower.go", "f.input |= f.entered // what came of the step before", "if !M {\nf.input |= f.entered\n}"},
	{"../../../caps/run/follower.go", "f.way = f.entered", "if !M {\nf.way = f.entered\n}"},
	{"../../../caps/run/follower.go", "shadows[i] = s.Raise(labelled.Label(f.input))", ""},
	{"../../../caps/run/follower.go", "under = r.madeUnder(v.tool)", "under = If(M, 0, r.madeUnder(v.tool))"},
	{"../../../caps/flow/rule.go", "first = name\n", "if first = name; If(M, true, false) {\nfirst, _, _ = strings.Cut(name, \".\")\n}\n"},
	{"../../../caps/flow/policy.go", "if verbs && (s.store", "if !M && verbs && (s.store"},
	{"../../../caps/flow/session.go", "todo = append(todo, places...)", ""},
	{"../../../caps/run/answer.go", "if err := r.moves(a, true); err != nil {", "if err := r.moves(a, !M); err != nil {"},
}

// TestFlowMistakes builds these tests once with all mistakes in the server, and wants each to be found: two
// a day, all with PIF_FULL.
func TestFlowMistakes(t *testing.T) {
	if testing.Short() {
		t.Skip("a short run")
	}
	bin := mutate.Build(t, flowMistakes)
	const small, two = "^(TestSealed|TestSealedOfTasks|TestSealedUnended|TestJournalBeforeRules|TestJournalOtherLabels|TestPlanOfOtherRules|TestCodeOfOtherRules|TestSessionLabel|TestShown.*|TestFlowOfCode|TestFlowWords|TestFlowNames|TestFlowLaundry|TestFlowCalled|TestFlowStepped|TestFlowLater|TestPlanWithheld|TestMadeUnder.*)$", "^TestTwoServers$"
	if mutate.Finds(bin, -1, small) {
		t.Fatal("without a mistake the tests fail, too")
	}
	for _, i := range mutate.Tried(flowMistakes, 2) {
		switch {
		case mutate.Finds(bin, i, small):
			t.Logf("%s: found by a small test", flowMistakes[i][1])
		case mutate.Finds(bin, i, two, "TWO_SERVERS=200"):
			t.Logf("%s: found by two servers", flowMistakes[i][1])
		default:
			t.Errorf("not found: %s without\n%s", flowMistakes[i][0], flowMistakes[i][1])
		}
	}
}
