package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
)

// Whatever happens to the bytes of the file, there is an answer and no panic; and
// no answer has an event in it that wasn't recorded, without Verify telling.
func TestDamagedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	made(t, path)
	events := evolved(t, path, 60)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[journal.Hash]bool{}
	for _, e := range events {
		recorded[e.Hash] = true
	}
	unopened, found, harmless := 0, 0, 0
	for i := range full(120, 3000) {
		pick := rand.New(rand.NewPCG(uint64(i), 7))
		b := bytes.Clone(whole)
		switch pick.IntN(4) {
		case 0:
			for range 1 + pick.IntN(20) {
				b[pick.IntN(len(b))] ^= 1 << pick.IntN(8)
			}
		case 1:
			page := pick.IntN(len(b)/4096) * 4096
			for j := range 64 { // a page's header and its cells' places
				b[page+j] = byte(pick.Uint32())
			}
		case 2:
			b = b[:pick.IntN(len(b))]
		case 3:
			page := pick.IntN(len(b)/4096) * 4096
			clear(b[page : page+4096])
		}
		damaged := filepath.Join(filepath.Dir(path), fmt.Sprintf("d%d.db", i))
		write(t, damaged, b)
		key, _ := os.ReadFile(path + ".key")
		write(t, damaged+".key", key)
		s, err := journal.Open(damaged, journal.Options{})
		if err != nil {
			unopened++
			if !errors.Is(err, journal.ErrDamaged) && !errors.Is(err, journal.ErrFormat) && len(b) > 0 {
				t.Errorf("%d: not opened: %v", i, err)
			}
			continue
		}
		r, verr := s.Verify(context.Background())
		same := true
		err = s.Each(context.Background(), journal.Query{}, func(e *journal.Event) error {
			same = same && recorded[e.Hash] && e.Seal() == e.Hash
			return nil
		})
		_, _, _ = s.Read(journal.Query{Kind: "tool"})
		_, _, _ = s.Read(journal.Query{Tool: "t3"})
		newest, nerr := s.Newest(0)
		for i := range newest {
			same = same && recorded[newest[i].Hash]
		}
		changed, cerr := s.Changed()
		if whole := nerr == nil && len(newest) == 7 && cerr == nil && changed == uint64(len(events)); !whole && verr == nil && len(b) > 0 {
			t.Errorf("%d: nothing was found, but the tools are %s, %v, changed at %d, %v", i, seqs(newest), nerr, changed, cerr)
		}
		_, _ = s.Append(journal.Written, journal.RunEnded, "", "", []byte("{}"))
		_ = s.Close()
		if verr != nil {
			found++
		} else {
			harmless++
		}
		if verr == nil && (err != nil || !same || r.Last != uint64(len(events)) && len(b) > 0) {
			t.Errorf("%d: nothing was found: %v, the same events: %v, %+v", i, err, same, r)
		}
	}
	t.Logf("%d weren't opened, in %d something was found, in %d the events are whole", unopened, found, harmless)
	if found == 0 || unopened == 0 {
		t.Error("the damage is not what it was meant to be")
	}
}

// evolved appends n changes of seven tools, and closes the store.
func evolved(t *testing.T, path string, n int) []journal.Event {
	t.Helper()
	s := openStore(t, path, journal.Options{})
	for i := range n {
		change(t, s, journal.ToolEvolved, about(fmt.Sprint("t", i%7), i/7+1))
	}
	events := all(t, s, journal.Query{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return events
}

// A -wal that was cut off or damaged, as a broken disk leaves it, costs the events
// at its end, never one in the middle; who has written down the head knows.
func TestDamagedWAL(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "j.db")
	s := openStore(t, path, journal.Options{})
	for i := range 60 {
		add(t, s, journal.Synced, journal.RunStarted, fmt.Sprintf(`{"i":%d}`, i))
		change(t, s, journal.ToolEvolved, about(fmt.Sprint("t", i%7), i/7+1))
	}
	events := all(t, s, journal.Query{})
	head := journal.Anchor{Seq: 120, Hash: events[119].Hash}
	files := map[string][]byte{}
	for _, name := range []string{"", "-wal", ".key"} { // while it is open, as a crash leaves it
		b, err := os.ReadFile(path + name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = b
	}
	whole, cut := 0, 0
	for i := range full(60, 1000) {
		pick := rand.New(rand.NewPCG(uint64(i), 8))
		wal := bytes.Clone(files["-wal"])
		switch pick.IntN(3) {
		case 0:
			wal = wal[:pick.IntN(len(wal))]
		case 1:
			wal[pick.IntN(len(wal))] ^= 1 << pick.IntN(8)
		case 2:
			at := pick.IntN(len(wal))
			clear(wal[at:min(len(wal), at+4096)])
		}
		damaged := filepath.Join(dir, fmt.Sprintf("d%d.db", i))
		write(t, damaged, files[""])
		write(t, damaged+".key", files[".key"])
		write(t, damaged+"-wal", wal)
		d, err := journal.Open(damaged, journal.Options{})
		if err != nil {
			// All of the file was in it, but for the first page perhaps.
			if !errors.Is(err, journal.ErrDamaged) && !errors.Is(err, journal.ErrFormat) {
				t.Errorf("%d: not opened: %v", i, err)
			}
			continue
		}
		left := all(t, d, journal.Query{})
		if want := events[:len(left)]; fmt.Sprint(left) != fmt.Sprint(want) {
			t.Errorf("%d: the %d events left are not the first", i, len(left))
		}
		verified(t, d)
		_, err = d.Verify(ctx, head)
		if len(left) == len(events) {
			whole++
		} else {
			cut++
		}
		var b *journal.Break
		if lost := len(left) < len(events); lost != errors.As(err, &b) || lost && b.Seq != 120 {
			t.Errorf("%d: of %d events, with the head: %v", i, len(left), err)
		}
		changes := uint64(len(left) / 2 * 2)
		if got, err := d.Changed(); err != nil || got != changes {
			t.Errorf("%d: of %d events the last change is %d, %v", i, len(left), got, err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if cut == 0 {
		t.Errorf("in %d nothing is missing, in %d something", whole, cut)
	}
}
