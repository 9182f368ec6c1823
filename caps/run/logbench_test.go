package run_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// openStore opens a store in a file.
func openStore(t testing.TB, path string) *journal.Store {
	t.Helper()
	s, err := journal.Open(path, journal.Options{Busy: 10 * time.Minute}) // many may write to it, on a slow disk
	must.NoError(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func openTools(t testing.TB, j journal.Journal) *registry.Registry {
	t.Helper()
	r, problems, err := registry.Open(run.Log(j), nil)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	return r
}

func definition(name, code string) registry.Definition {
	return registry.Definition{Name: name, Code: []byte(code)}
}

// filled is a store with so many tools, the first some of which are called by
// others.
func filled(b *testing.B, tools int) *journal.Store {
	s := openStore(b, filepath.Join(b.TempDir(), "store.db"))
	memory := journal.NewMemory(1<<30, nil)
	r := openTools(b, memory)
	for i := range tools {
		d := definition(fmt.Sprintf("tool_%d", i), fmt.Sprintf(`{"lam":"x","body":{"add":[{"mul":[{"var":"x"},{"var":"x"}]},%d]}}`, i))
		if i%10 == 9 {
			d.Code = fmt.Appendf(nil, `{"app":{"func":{"code_of":"tool_%d"},"arg":%d}}`, i-1, i)
		}
		if _, err := r.Evolve(d, registry.Edit{}); err != nil {
			b.Fatal(err)
		}
	}
	events, _, err := memory.Read(journal.Query{})
	must.NoError(b, err)
	for _, e := range events {
		if _, err := s.Append(journal.Noted, e.Kind, "", "", e.Data); err != nil {
			b.Fatal(err)
		}
	}
	if _, _, err := s.Read(journal.Query{Limit: 1}); err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkOpen makes the tools that a store tells of, alone in it or among the
// events of runs.
func BenchmarkOpen(b *testing.B) {
	const tools = 10_000
	s := filled(b, tools)
	for _, others := range []int{0, 90_000} {
		for range others {
			if _, err := s.Append(journal.Noted, journal.RunEnded, "run-1", "", []byte(`{"steps":7,"type":"int","result":{"bytes":1}}`)); err != nil {
				b.Fatal(err)
			}
		}
		if _, _, err := s.Read(journal.Query{Limit: 1}); err != nil { // they are written
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(tools+others), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var r *registry.Registry
			for b.Loop() {
				r = openTools(b, s)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/tools, "B/tool")
			if r.Snapshot().Len() != tools {
				b.Fatal(r.Snapshot().Len())
			}
		})
	}
}

// BenchmarkEvolve makes versions that are on the disk.
func BenchmarkEvolve(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			r := openTools(b, openStore(b, filepath.Join(b.TempDir(), "store.db")))
			var n atomic.Int64
			b.SetParallelism((callers + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
			if callers == 1 {
				for b.Loop() {
					i := n.Add(1)
					if _, err := r.Evolve(definition(fmt.Sprint("t", i%100), fmt.Sprint(i)), registry.Edit{}); err != nil {
						b.Fatal(err)
					}
				}
				return
			}
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					i := n.Add(1)
					if _, err := r.Evolve(definition(fmt.Sprint("t", i%100), fmt.Sprint(i)), registry.Edit{}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkRefresh asks whether another process changed something, which none did.
func BenchmarkRefresh(b *testing.B) {
	r := openTools(b, filled(b, 100))
	for b.Loop() {
		if _, err := r.Refresh(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGet looks a tool up among many.
func BenchmarkGet(b *testing.B) {
	r := openTools(b, filled(b, 10_000))
	s := r.Snapshot()
	for b.Loop() {
		if _, ok := s.Get("tool_4711"); !ok {
			b.Fatal("it isn't there")
		}
	}
}
