package run_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// typedToy is the toy with types of its answers.
func typedToy(t testing.TB, get, put string) *caps.Manifest {
	t.Helper()
	m := *toy
	m.Operations = append([]caps.Operation{}, toy.Operations...)
	for i, notation := range []string{get, put} {
		if notation == "" {
			continue
		}
		var err error
		if m.Operations[i].Type, err = check.ParseAnswer(notation); err != nil {
			t.Fatal(err)
		}
	}
	return &m
}

// TestLyingPlugin: an answer that isn't of the type that the manifest says is the
// plugin's failure, for programs, in the record and in the operator's log, and
// nobody sees what it was.
func TestLyingPlugin(t *testing.T) {
	var shared value.Value = value.FromSlice([]value.Value{value.NewInt(1)})
	for range 20 { // package check's tests have one that no machine would hold
		shared = value.FromSlice([]value.Value{shared, shared})
	}
	secret := value.Str("SECRET")
	for what, c := range map[string]struct {
		typ    string
		v      value.Value
		why    string
		honest bool
	}{
		"another kind":  {"{n: int}", secret, "string where {n: int} was said", false},
		"a part":        {"{n: int}", &value.Record{Fields: []value.Field{{Key: "n", Value: secret}}}, "n: string where int was said", false},
		"a member less": {"{n: int}", &value.Record{}, "a record without n", false},
		"a member more": {"{n: int}", &value.Record{Fields: []value.Field{{Key: "SECRET", Value: secret}, {Key: "n", Value: value.NewInt(1)}}}, "wasn't said", false},
		"very large":    {"json", shared, "too large", false},
		"a function":    {"data", &value.Closure{}, "", false},
		"what is said":  {"string", secret, "", true},
		"any data":      {"", secret, "", true},
	} {
		var log bytes.Buffer
		w := newWorldOf(t, typedToy(t, c.typ, c.typ), run.Options{Log: slog.New(slog.NewTextHandler(&log, nil))},
			func(context.Context, run.Act) (value.Value, int64, *fault.Fault) { return c.v, 10, nil }, "toy:notes/**")
		w.evolve("get", `k => !toy.get(k)`, "toy.get:notes/**")
		w.evolve("put", `k => !toy.put({key: k, value: 1})`, "toy.put:notes/**")
		w.evolve("careful", `k => try(!toy.get(k)).error.kind`, "toy.get:notes/**")
		if c.honest {
			w.gives("get", `"notes/a"`, `"SECRET"`)
			w.gives("put", `"notes/a"`, `"SECRET"`)
			if log.Len() > 0 {
				t.Errorf("%s: the log says %s", what, &log)
			}
			continue
		}
		if what == "a function" { // which no record takes
			w.fails("get", `"notes/a"`, fault.EffectFailed, "toy.get")
			continue
		}
		w.fails("get", `"notes/a"`, fault.EffectFailed, "toy.get", "the plugin's answer can't be used", "defect")
		w.fails("put", `"notes/a"`, fault.OutcomeUnknown, "toy.put", "nobody knows whether it was done")
		w.gives("careful", `"notes/a"`, `"effect_failed"`)
		for _, words := range []string{"level=ERROR", "op=toy.get", "op=toy.put", "plugin=toy", c.why} {
			if !strings.Contains(log.String(), words) {
				t.Errorf("%s: the log doesn't say %q: %s", what, words, &log)
			}
		}
		w.recorded(journal.EffectOutcome, "outcome effect_failed", "outcome outcome_unknown", "outcome effect_failed")
		events, _, err := w.memory.Read(journal.Query{})
		must.NoError(t, err)
		for _, e := range events {
			if strings.Contains(string(e.Data), "SECRET") {
				t.Errorf("%s: the record has %s", what, e.Data)
			}
		}
		if strings.Contains(log.String(), "SECRET") {
			t.Errorf("%s: the log has %s", what, &log)
		}
	}
}

// TestDoneWithoutAnswer: an outcome that there is no room for, or that no record takes, doesn't have an effect that may not be
// repeated fail: it was done.
func TestDoneWithoutAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		v    value.Value
		size int64
		why  string
	}{"too large": {value.Str("x"), 1 << 40, "bytes, "}, "a function": {&value.Closure{}, 10, "can't be taken"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, run.Options{}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) { return c.v, c.size, nil }, "toy:notes/**")
			w.evolve("get", `k => !toy.get(k)`, "toy.get:notes/**")
			w.evolve("put", `k => !toy.put({key: k, value: 1})`, "toy.put:notes/**")
			w.fails("get", `"notes/a"`, fault.EffectFailed, c.why)
			w.fails("put", `"notes/a"`, fault.OutcomeUnknown, c.why, "it was done")
		})
	}
}

// TestLyingInARound: of a round the answers that hold are given on.
func TestLyingInARound(t *testing.T) {
	w := newWorldOf(t, typedToy(t, "string", ""), run.Options{}, func(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		if field(a.Args, "key") == value.Value(value.Str("notes/b")) {
			return value.NewInt(7), 1, nil
		}
		return field(a.Args, "key"), 1, nil
	}, "toy:notes/**")
	w.evolve("all", `x => par(try(!toy.get("notes/a")), try(!toy.get("notes/b")), try(!toy.get("notes/c")))`, "toy.get:notes/**")
	got, f := w.run(t.Context(), "all", "null")
	if f != nil || !strings.Contains(got, `{"ok":"notes/a"}`) || !strings.Contains(got, `"effect_failed"`) || !strings.Contains(got, `{"ok":"notes/c"}`) {
		t.Errorf("%s, %v", got, f)
	}
}
