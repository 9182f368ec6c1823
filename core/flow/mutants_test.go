package flow_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/flow/mutate"
)

// mutants are seeded mistakes in the evaluator.
var mutants = []mutate.Mistake{
	// Contexts.
	{"eval.go", "w = w.under(cs.own.Control())", ""},
	{"eval.go", "w = w.under(fs.own)", ""},
	{"eval.go", "w = w.under(l)", ""},
	{"eval.go", "s := b.shadow.Raise(w.here)", "s := b.shadow.Raise(w.here)\nif M {\ns = b.shadow\n}"},
	{"eval.go", "return value.NewInt(n.Value), leaf(w.here), nil", "if M {\nreturn value.NewInt(n.Value), leaf(0), nil\n}\nreturn value.NewInt(n.Value), leaf(w.here), nil"},
	{"eval.go", "return v, leaf(w.here | deep), nil\n\t}", "if M {\nif rule == nil {\nreturn v, leaf(w.here | shadows[0].deep), nil\n}\n}\nreturn v, leaf(w.here | deep), nil\n\t}"},
	{"eval.go", "return v, rule.of(args, shadows, v).Raise(w.here), nil", "if M {\nreturn v, rule.of(args, shadows, v), nil\n}\nreturn v, rule.of(args, shadows, v).Raise(w.here), nil"},
	{"eval.go", "return v, leaf(s.deep.Counted() | w.here), nil", "if M {\nreturn v, leaf(s.deep | w.here), nil\n}\nreturn v, leaf(s.deep.Counted() | w.here), nil"},
	{"flow.go", "c.ctx, c.around, depth, true, w.under(s.own))", "c.ctx, c.around, depth, true, w.under(If(M, 0, s.own)))"},
	{"forms.go", "w = w.under(fs.own)", ""},
	{"forms.go", "w = w.under(ls.own.Control())", ""},
	{"forms.go", "return acc, as.Raise(w.here | ls.own.Control()), nil", "if M {\nreturn acc, as.Raise(w.here), nil\n}\nreturn acc, as.Raise(w.here | ls.own.Control()), nil"},
	{"forms.go", "inside = inside.under(s.own.Control())", ""},
	{"forms.go", "all |= s.own | all.Control()", "all |= s.own | all.Control()\nif M {\nall = 0\n}"},
	{"forms.go", "listOf(shadows, w.here), nil", "listOf(shadows, If(M, 0, w.here)), nil"},
	{"forms.go", "node(w.here, shadows...), nil", "node(If(M, 0, w.here), shadows...), nil"},
	{"forms.go", "s := r.function(w.here, e)", "s := r.function(w.here, e)\nif M {\ns = leaf(w.here)\n}"},
	{"forms.go", "return r.codeOf(n, string(name), false, ctx, w.under(s.own))", "return r.codeOf(n, string(name), false, ctx, w.under(If(M, 0, s.own)))"},
	{"effects.go", "w = w.under(ns.own)", ""},
	{"effects.go", "placed = s.deep", "placed = If(M, s.own, s.deep)"},
	{"effects.go", "leaf(0)\n\t}\n\tr.entered", "leaf(0)\n\t}\n\tif M {\nas = leaf(0)\n}\nr.entered"},
	{"effects.go", "return a.Value, as.fit(a.Value).Raise(asked), nil", "return a.Value, as.fit(a.Value).Raise(If(M, w.all, asked)), nil"},
	{"effects.go", "Shadow: s.Raise(w.all),", "Shadow: s.Raise(If(M, 0, w.all)),"},
	// Failures.
	{"forms.go", "node(decided, s).Raise(w.here), nil", "node(If(M, 0, decided), s).Raise(w.here), nil"},
	{"forms.go", "leaf(decided|r.failed)).Raise(w.here), nil", "leaf(decided|If(M, 0, r.failed))).Raise(w.here), nil"},
	{"forms.go", "r.base |= before.touched", ""},
	{"forms.go", "r.saved |= before.touched", ""},
	{"effects.go", "if r.guarded {\n\t\tl |= r.touched\n\t}", ""},
	{"effects.go", "l := w.all | r.base | r.lower", "l := w.all | r.base | r.lower\nif M {\nl = w.all | r.base\n}"},
	{"effects.go", "asked | as.deep\n\tif", "If(M, 0, asked | as.deep)\n\tif"},
	{"eval.go", "r.touched |= cs.own | w.all", ""},
	{"eval.go", "r.touched |= tested | w.all", ""},
	{"eval.go", "tested |= rule.tests(args, shadows)", ""},
	{"eval.go", "return nil, nil, r.fail(ctx, n, f, w.all|deep)", "return nil, nil, r.fail(ctx, n, f, w.all|If(M, tested.Control(), deep))"},
	{"par.go", "lower |= c.watch.touched | c.watch.saved", ""},
	{"par.go", "r.touched |= b.watch.touched | b.watch.saved", "r.touched |= b.watch.touched | If(M, 0, b.watch.saved)"},
	{"par.go", "b.watch.base |= r.touched", ""},
	{"eval.go", "r.touched |= fs.own | w.all", ""},
	// Rows and shadows.
	{"rows.go", "l := s[0].own | s[1].own\n\tif i, ok", "l := s[0].own | If(M, 0, s[1].own)\n\tif i, ok"},
	{"rows.go", "items[i] = two(s[0].own, leaf(s[0].own), s[0].kid(i))", "items[i] = two(s[0].own, leaf(s[0].own), s[0].kid(i))\nif M {\nitems[i] = leaf(s[0].own)\n}"},
	{"rows.go", "l |= cells(c.Head, items[i]) | items[i].kid(0).own", ""},
	{"rows.go", "return s[1].kid(i)", "if M {\nreturn s[1].kids[i]\n}\nreturn s[1].kid(i)"},
	{"rows.go", "return leaf(cells(a[0], s[0]).Counted())", "if M {\nreturn leaf(cells(a[0], s[0]))\n}\nreturn leaf(cells(a[0], s[0]).Counted())"},
	{"rows.go", "l |= cells(a[0], s[0]).Counted()", ""},
	{"rows.go", "return items[n].Raise(l | s[1].own)", "return items[n].Raise(If(M, 0, l) | s[1].own)"},
	{"rows.go", "return item(s[0], int(n)).Raise(s[1].own)", "return item(s[0], int(n)).Raise(If(M, 0, s[1].own))"},
	{"rows.go", "return s[0].deep | s[1].deep\n}\n\nfunc isAtom", "return If(M, owns(s), s[0].deep|s[1].deep)\n}\n\nfunc isAtom"},
	{"rows.go", "return listOf(items[min(from, len(items)):], l|s[1].own|s[2].own)", "return listOf(items[min(from, len(items)):], l|s[1].own|If(M, 0, s[2].own))"},
	{"rows.go", "return listOf(append(items, s[1]), l)", "return listOf(append(items, If(M, leaf(0), s[1])), l)"},
	{"label.go", "return s.kids[i].Raise(s.own)", "if M {\nreturn s.kids[i]\n}\nreturn s.kids[i].Raise(s.own)"},
	{"label.go", "return l&^Data | l<<MaxAtoms", "if M {\nreturn l &^ Data\n}\nreturn l&^Data | l<<MaxAtoms"},
}

// TestMutants builds the tests once with all mistakes in the evaluator, and a switch, and
// wants each to be found: three a day, all with PIF_FULL.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("a short run")
	}
	bin := mutate.Build(t, mutants)
	const small = "^(TestSmall|TestRows)$"
	if mutate.Finds(bin, -1, small) {
		t.Fatal("without a mistake the tests fail, too")
	}
	for _, i := range mutate.Tried(mutants, 3) {
		switch {
		case mutate.Finds(bin, i, small):
		case mutate.Finds(bin, i, "^TestTwoRuns$", "FLOW_RUNS=60000"):
			t.Logf("%s: found by two runs only", mutants[i][1])
		default:
			t.Errorf("not found: %s without\n%s", mutants[i][0], mutants[i][1])
		}
	}
}
