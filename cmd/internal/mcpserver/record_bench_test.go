package mcpserver

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
)

// unrecorded is a journal that keeps nothing of runs.
type unrecorded struct{ journal.Journal }

func (u unrecorded) Append(s journal.Stage, k journal.Kind, id, branch string, data []byte) (uint64, error) {
	if id != "" {
		return 1, nil
	}
	return u.Journal.Append(s, k, id, branch, data)
}

func (u unrecorded) AppendLater(s journal.Stage, k journal.Kind, id, branch string, data []byte) func() (uint64, error) {
	seq, err := u.Append(s, k, id, branch, data)
	return func() (uint64, error) { return seq, err }
}

// BenchmarkRecorded is runs, and runs with ten effects that cost nothing,
// unrecorded, recorded in memory, and in a file: what the record costs is the
// difference. Unrecorded runs write their events, too, for nobody.
func BenchmarkRecorded(b *testing.B) {
	known, err := caps.NewKinds(toy)
	if err != nil {
		b.Fatal(err)
	}
	store, err := journal.Open(filepath.Join(b.TempDir(), "journal.db"), journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	for _, j := range []struct {
		name string
		journal.Journal
	}{
		{"none", unrecorded{journal.NewMemory(1<<20, nil)}}, {"memory", journal.NewMemory(8<<20, nil)}, {"file", store},
	} {
		policy := caps.NewPolicy(known, time.Now)
		c, err := caps.Parse("toy:notes/**,calls=100000000,bytes=1GiB", known)
		if err != nil {
			b.Fatal(err)
		}
		g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: known})
		if err == nil {
			err = policy.Grant(g)
		}
		if err != nil {
			b.Fatal(err)
		}
		s := New(Options{Broker: run.New(run.Options{Policy: policy, Handler: steady{}, Journal: j.Journal})})
		must(b, s, "evolve", `{"name":"square","code":"n => n * n"}`)
		must(b, s, "evolve", `{"name":"work","code":"n => sum(map(x => x * x, range(0, n)))"}`)
		must(b, s, "evolve", `{"name":"ten","code":"n => map(i => !toy.get(\"notes/a\"), range(0, n))","capabilities":["toy.get:notes/**"]}`)
		for _, c := range []struct {
			name string
			call Call
		}{
			{"square", Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"square","input":7}`)}},
			{"direct", Call{Tool: "square", Arguments: json.RawMessage(`{"input":7}`)}},
			{"code", Call{Tool: "run", Arguments: json.RawMessage(`{"code":` + square + `,"input":7}`)}},
			{"work", Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"work","input":1000}`)}},
			{"effects10", Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"ten","input":10}`)}},
		} {
			b.Run(c.name+"/"+j.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if a := s.Call(context.Background(), c.call); a.Fault != nil {
						b.Fatal(a.Text)
					}
				}
			})
		}
	}
}

// BenchmarkReplay is the replay of a run with ten effects.
func BenchmarkReplay(b *testing.B) {
	w := newRecordedWorld(b, 1)
	w.server.broker = run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store})
	w.evolve("ten", `n => map(i => !toy.get("notes/a"), range(0, n))`, toyGet)
	must(b, w.server, "ten", `{"input":10}`)
	id := w.newest()
	tools := w.at(w.record(id).AsOf)
	for b.Loop() {
		rec, err := run.ReadRecord(w.store, id)
		if err != nil {
			b.Fatal(err)
		}
		if _, v := Replay(context.Background(), ReplayOptions{Replay: run.NewReplay(rec, false), Tools: tools}); v.Verdict != run.Identical {
			b.Fatal(v.Text)
		}
	}
}
