package run_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// bomb is code of a value that takes a kilobyte of memory and 2^60 times as much
// written out.
const bomb = `fold(p => (fst(p), fst(p)), 1, range(0, 60))`

// An argument that is larger than the run's memory once it is written is written
// nowhere: of a denial there is what it was about and that it is larger, and a
// request that is permitted is refused before it is performed, for good.
func TestArgumentsAreMeasuredBeforeTheyAreWritten(t *testing.T) {
	performed := 0
	w := newWorld(t, run.Options{}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
		performed++
		return value.Unit{}, 4, nil
	}, "toy:notes/**,max=1GiB")
	w.evolve("put", "k => get(try(!toy.put({key: k, value: "+bomb+"})), \"error\")", "toy.put:notes/**")
	w.evolve("get", "k => get(get(try(!toy.get("+bomb+")), \"error\"), \"kind\")", "toy.get:notes/**")

	w.gives("get", `0`, `"effect_failed"`) // a pair is no key
	if got, f := w.run(context.Background(), "put", `"secret"`); f != nil || !strings.Contains(got, `"kind":"denied"`) {
		t.Errorf("a denial gave %s, %v, and is to be caught", got, f)
	}
	w.fails("put", `"notes/a"`, fault.OutOfMemory, "toy.put", "67108864")
	if performed > 0 {
		t.Errorf("%d requests were performed", performed)
	}
	events, _, err := w.memory.Read(journal.Query{Kind: journal.EffectDenied})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"kind":"toy","bytes":67108865}`,
		`{"kind":"toy","scope":"secret","bytes":67108865}`,
		`{"kind":"toy","scope":"notes/a","bytes":67108865}`,
	}
	for i, e := range events {
		var data struct {
			Measured json.RawMessage `json:"args_measured"`
		}
		if err := json.Unmarshal(e.Data, &data); err != nil || string(data.Measured) != want[i] || len(e.Data) > 4096 {
			t.Errorf("denial %d has %s (%v) in %d bytes, not %s", i, data.Measured, err, len(e.Data), want[i])
		}
	}
	if len(events) != len(want) {
		t.Errorf("%d denials are recorded, not %d", len(events), len(want))
	}
	if err := w.memory.Verify(); err != nil {
		t.Error(err)
	}
}

// What is large and fits is hashed without being written as a whole, and hashed as
// ever: older records are compared with it.
func TestLargeDenialsAreHashed(t *testing.T) {
	w := newWorld(t, run.Options{}, echo, "toy:notes/**")
	w.evolve("put", `n => !toy.put({key: "secret", value: join(map(i => "\u2028é\u0001\"", range(0, n)), "x")})`, "toy.put:notes/**")
	w.fails("put", `100000`, fault.Denied)
	events, _, err := w.memory.Read(journal.Query{Kind: journal.EffectDenied})
	if err != nil || len(events) != 1 {
		t.Fatal(err, len(events))
	}
	var data struct {
		Hash run.Digest `json:"args_hash"`
	}
	if err := json.Unmarshal(events[0].Data, &data); err != nil {
		t.Fatal(err)
	}
	unit := `\u2028é\u0001\"`
	text := `{"key":"secret","value":"` + strings.Repeat(unit+"x", 99_999) + unit + `"}`
	if want := (run.Digest{Bytes: int64(len(text)), SHA256: sha256.Sum256([]byte(text))}); data.Hash != want {
		t.Errorf("the digest is %v, not %v", data.Hash, want)
	}
}
