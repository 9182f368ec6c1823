package journal_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
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
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

// What a server does when it starts, and others before each request, of 100,000 events.
func BenchmarkStore100k(b *testing.B) {
	path := large(b)
	count := func(b *testing.B, q journal.Query, want int) {
		for b.Loop() {
			s, err := journal.Open(path, journal.Options{})
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			if err := s.Each(context.Background(), q, func(*journal.Event) error { n++; return nil }); err != nil || n != want {
				b.Fatal(n, err)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
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
