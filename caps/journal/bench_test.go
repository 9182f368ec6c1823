package journal_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
)

var sample = `{"op":"fs.read","capability":"fs.read:./sandbox","args":{"path":"a.txt"}}`

func BenchmarkStoreAppend(b *testing.B) {
	for _, c := range []struct {
		name    string
		stage   journal.Stage
		callers int
	}{{"noted", journal.Noted, 1}, {"written", journal.Written, 1}, {"written16", journal.Written, 16}, {"synced", journal.Synced, 1}, {"synced16", journal.Synced, 16}} {
		b.Run(c.name, func(b *testing.B) {
			s := newStore(b)
			b.SetParallelism((c.callers + 1) / 2)
			work := func(more func() bool) {
				for more() {
					if _, err := s.Append(c.stage, journal.EffectRequested, "7f3a9c-1", "", []byte(sample)); err != nil {
						b.Error(err)
						return
					}
				}
			}
			if c.callers == 1 {
				work(b.Loop)
				if _, _, err := s.Head(); err != nil { // what is noted is written, too
					b.Fatal(err)
				}
			} else {
				b.RunParallel(func(p *testing.PB) { work(p.Next) })
			}
		})
	}
}

// Changes of tools, each durable before the next of its caller; those who were
// not fast enough try again.
func BenchmarkStoreChange(b *testing.B) {
	data := fmt.Appendf(nil, `{"tool":"square","version":1,"source":%q}`, strings.Repeat("x", 500))
	work := func(b *testing.B, s *journal.Store, more func() bool) {
		for more() {
			if _, err := changeOnce(s, slices.Clone(data)); err != nil {
				b.Error(err)
				return
			}
		}
	}
	b.Run("1", func(b *testing.B) { work(b, newStore(b), b.Loop) })
	b.Run("16", func(b *testing.B) {
		s := newStore(b)
		b.SetParallelism(8)
		b.RunParallel(func(p *testing.PB) { work(b, s, p.Next) })
	})
}

// Two events of a run, as one that is only computed has them, with what is written
// behind Append included.
func BenchmarkStoreRun(b *testing.B) {
	started := []byte(`{"tool":"square","version":1,"hash":"4b0d6a1c8a5b4a7a9ad21c3b60cf3f3e3b6c2b9c5f1d7f0b0a1e2d3c4b5a6978","input":"7","as_of":12,"limits":{"steps":1000000,"memory":67108864}}`)
	ended := []byte(`{"result":"49","type":"int","steps":6}`)
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			s := newStore(b)
			var n atomic.Int64
			work := func(more func() bool) {
				for more() {
					run := fmt.Sprintf("7f3a9c12d-%d", n.Add(1))
					for _, e := range []struct {
						kind journal.Kind
						data []byte
					}{{journal.RunStarted, started}, {journal.RunEnded, ended}} {
						if _, err := s.Append(journal.Noted, e.kind, run, "", slices.Clone(e.data)); err != nil {
							b.Error(err)
							return
						}
					}
				}
			}
			if callers == 1 {
				work(b.Loop)
			} else {
				b.SetParallelism(callers / 2)
				b.RunParallel(func(p *testing.PB) { work(p.Next) })
			}
			if _, _, err := s.Head(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// The tools of a server that starts: 10,000 with three versions each, among
// 130,000 events. And what is asked before each request.
func BenchmarkStoreTools(b *testing.B) {
	path := filepath.Join(b.TempDir(), "j.db")
	s := openStore(b, path, journal.Options{})
	for i := range 130_000 {
		k, run, data := journal.RunStarted, fmt.Sprint("r", i), []byte(sample)
		if i%13 < 3 {
			n := i/13*3 + i%13
			k, run, data = journal.ToolEvolved, "", fmt.Appendf(nil, `{"tool":"tool%d","version":%d,"source":%q}`, n%10_000, n/10_000+1, strings.Repeat("x", 300))
		}
		if _, err := s.Append(journal.Noted, k, run, "", data); err != nil {
			b.Fatal(err)
		}
	}
	newest := func(b *testing.B, s *journal.Store, through uint64, want int) {
		if events, err := journal.Newest(s, through); err != nil || len(events) != want {
			b.Fatal(len(events), err)
		}
	}
	b.Run("newest", func(b *testing.B) {
		for b.Loop() {
			newest(b, s, 0, 10_000)
		}
	})
	b.Run("open+newest", func(b *testing.B) {
		for b.Loop() {
			s, err := journal.Open(path, journal.Options{})
			must.NoError(b, err)
			newest(b, s, 0, 10_000)
			must.NoError(b, s.Close())
		}
	})
	b.Run("history", func(b *testing.B) {
		for b.Loop() {
			if events, _, err := s.Read(journal.Query{Tool: "tool77", Last: true, Limit: 20}); err != nil || len(events) != 3 {
				b.Fatal(len(events), err)
			}
		}
	})
	b.Run("changed", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Changed(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// large is a store with 100,000 events, made once.
func large(b *testing.B) string {
	path := filepath.Join(b.TempDir(), "j.db")
	s := openStore(b, path, journal.Options{})
	for i := range 100_000 {
		k := []journal.Kind{journal.RunStarted, journal.EffectRequested, journal.EffectOutcome, journal.RunEnded}[i%4]
		if i%100 == 0 {
			k = journal.ToolEvolved
		}
		if _, err := s.Append(journal.Noted, k, fmt.Sprintf("7f3a9c-%d", i/4), "", []byte(sample)); err != nil {
			b.Fatal(err)
		}
	}
	must.NoError(b, s.Close())
	return path
}

// What a server does when it starts, and others before each request, of 100,000 events.
func BenchmarkStore100k(b *testing.B) {
	path := large(b)
	count := func(b *testing.B, q journal.Query, want int) {
		for b.Loop() {
			s, err := journal.Open(path, journal.Options{})
			must.NoError(b, err)
			n := 0
			if err := s.Each(context.Background(), q, func(*journal.Event) error { n++; return nil }); err != nil || n != want {
				b.Fatal(n, err)
			}
			must.NoError(b, s.Close())
		}
	}
	b.Run("open+each", func(b *testing.B) { count(b, journal.Query{}, 100_000) })
	b.Run("open+tools", func(b *testing.B) { count(b, journal.Query{Kind: "tool"}, 1000) })
	s := openStore(b, path, journal.Options{})
	b.Run("last", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Last(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, q := range map[string]journal.Query{
		"newest50": {Limit: 50, Last: true}, "newest50effects": {Limit: 50, Last: true, Kind: "effect"}, "run": {Run: "7f3a9c-12000"}, "runeffects": {Run: "7f3a9c-12000", Kind: "effect"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.Read(q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Verify(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
