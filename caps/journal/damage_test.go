package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// What isn't a journal of this format is refused with words, and left as it is.
func TestFormats(t *testing.T) {
	for name, c := range map[string]struct {
		make  func(t *testing.T, path string)
		class error
		words []string
	}{
		"text":       {func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("not a database\n"), 100)) }, journal.ErrFormat, []string{"not a journal", "--store"}},
		"short text": {func(t *testing.T, path string) { write(t, path, []byte("x")) }, journal.ErrFormat, []string{"not a journal"}},
		"another's":  {func(t *testing.T, path string) { sqlExec(t, raw(t, path), `CREATE TABLE t(x)`) }, journal.ErrFormat, []string{"not a journal", "--store"}},
		"another's, marked": {func(t *testing.T, path string) {
			sqlExec(t, raw(t, path), `PRAGMA application_id=77; CREATE TABLE t(x)`)
		}, journal.ErrFormat, []string{"another program", "0x4d"}},
		"newer": {func(t *testing.T, path string) {
			made(t, path)
			sqlExec(t, raw(t, path), fmt.Sprintf(`PRAGMA user_version=%d`, journal.Format+2))
		}, journal.ErrFormat, []string{"newer mcp-pif", fmt.Sprint("format is ", journal.Format+2), fmt.Sprint("up to ", journal.Format+1), "update"}},
		"odd": {func(t *testing.T, path string) {
			made(t, path)
			sqlExec(t, raw(t, path), `PRAGMA user_version=-1`)
		}, journal.ErrFormat, []string{"format is -1"}},
		"a trigger": {func(t *testing.T, path string) {
			made(t, path)
			sqlExec(t, raw(t, path), `CREATE TRIGGER forget AFTER INSERT ON events BEGIN DELETE FROM events WHERE kind='effect.outcome'; END`)
		}, journal.ErrDamaged, []string{`"forget"`, "doesn't belong"}},
		"a missing index": {func(t *testing.T, path string) {
			made(t, path)
			sqlExec(t, raw(t, path), `DROP INDEX events_kind`)
		}, journal.ErrDamaged, []string{"missing"}},
		"the tools' index is missing": {func(t *testing.T, path string) {
			made(t, path)
			sqlExec(t, raw(t, path), `DROP INDEX events_tool`)
		}, journal.ErrDamaged, []string{"missing"}},
		"a later format's index": {func(t *testing.T, path string) {
			made(t, path)
			sqlExec(t, raw(t, path), `PRAGMA user_version=1`)
		}, journal.ErrDamaged, []string{`"events_kind"`, "doesn't belong"}},
		"no key": {func(t *testing.T, path string) {
			made(t, path)
			sqlExec(t, raw(t, path), `DELETE FROM meta`)
		}, journal.ErrDamaged, []string{"key"}},
		"half a file": {func(t *testing.T, path string) {
			made(t, path)
			must.NoError(t, os.Truncate(path, 5000))
		}, journal.ErrDamaged, []string{"--store"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j.db")
			c.make(t, path)
			must.NoError(t, os.Chmod(path, 0o600))
			before, err := os.ReadFile(path)
			must.NoError(t, err)
			for _, o := range []journal.Options{{}, {ReadOnly: true}} {
				s, err := journal.Open(path, o)
				if err == nil {
					s.Close()
					t.Fatal("it was opened")
				}
				if !errors.Is(err, c.class) {
					t.Errorf("%v: it is not %q", err, c.class)
				}
				for _, w := range append(c.words, path) {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("%v: it doesn't say %q", err, w)
					}
				}
			}
			if c.class == journal.ErrFormat {
				if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
					t.Errorf("the file was changed, %v", err)
				}
			}
		})
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	must.NoError(t, os.WriteFile(path, b, 0o600))
}

// made makes a store with some events, and closes it.
func made(t *testing.T, path string) []journal.Event {
	t.Helper()
	s, err := journal.Open(path, journal.Options{})
	must.NoError(t, err)
	populate(t, s, 300)
	hash, err := s.PutBlob(context.Background(), bytes.Repeat([]byte("blob"), 5000))
	must.NoError(t, err)
	add(t, s, journal.Synced, journal.EffectOutcome, fmt.Sprintf(`{"value":{"bytes":20000,"sha256":%q}}`, hash))
	events := all(t, s, journal.Query{})
	must.NoError(t, s.Close())
	return events
}

// Whoever edits the file with SQLite is found, at the event or the one behind it.
func TestEditsAreFoundAndLocated(t *testing.T) {
	t.Parallel()
	reseal := func(t *testing.T, path string, e journal.Event) string {
		e.Data = []byte(`{"i":"forged"}`)
		return fmt.Sprintf(`UPDATE events SET data=x'%x', hash=x'%s' WHERE seq=%d`, []byte(e.Data), e.Seal(), e.Seq)
	}
	for name, c := range map[string]struct {
		edit  func(t *testing.T, path string, events []journal.Event) string
		seqs  []uint64 // where the breaks are
		other string   // part of the damage, where there is none in the chain
	}{
		"data":                  {edit: by(`UPDATE events SET data=CAST('{"i":98}' AS BLOB) WHERE seq=100`), seqs: []uint64{100}},
		"one byte":              {edit: by(`UPDATE events SET data=CAST(replace(data,'"i":99','"i":98') AS BLOB) WHERE seq=100`), seqs: []uint64{100}},
		"kind":                  {edit: by(`UPDATE events SET kind='effect.denied' WHERE seq=100`), seqs: []uint64{100}},
		"bad kind":              {edit: by(`UPDATE events SET kind='x' WHERE seq=100`), seqs: []uint64{100}},
		"run":                   {edit: by(`UPDATE events SET run='r9' WHERE seq=100`), seqs: []uint64{100}},
		"branch":                {edit: by(`UPDATE events SET branch='' WHERE seq=100`), seqs: []uint64{100}},
		"time":                  {edit: by(`UPDATE events SET time=time+1 WHERE seq=100`), seqs: []uint64{100}},
		"prev":                  {edit: by(`UPDATE events SET prev=zeroblob(32) WHERE seq=100`), seqs: []uint64{100, 100}},
		"hash":                  {edit: by(`UPDATE events SET hash=zeroblob(32) WHERE seq=100`), seqs: []uint64{100, 101}},
		"no hash":               {edit: by(`UPDATE events SET hash=zeroblob(0) WHERE seq=100`), seqs: []uint64{100, 101}},
		"two edits":             {edit: by(`UPDATE events SET branch='' WHERE seq IN (7,250)`), seqs: []uint64{7, 250}},
		"another tool":          {edit: by(`UPDATE events SET data=CAST('{"tool":"x"}' AS BLOB) WHERE seq=68`), seqs: []uint64{68}},
		"a tool without JSON":   {edit: by(`UPDATE events SET data=CAST('{"tool":' AS BLOB) WHERE seq=68`), seqs: []uint64{68}},
		"a retired tool back":   {edit: by(`UPDATE events SET kind='tool.refused' WHERE seq=68`), seqs: []uint64{68}},
		"resealed":              {edit: func(t *testing.T, path string, events []journal.Event) string { return reseal(t, path, events[99]) }, seqs: []uint64{101}},
		"removed":               {edit: by(`DELETE FROM events WHERE seq=100`), seqs: []uint64{101}},
		"the first removed":     {edit: by(`DELETE FROM events WHERE seq<=3`), seqs: []uint64{4}},
		"removed and closed up": {edit: by(`DELETE FROM events WHERE seq=290; UPDATE events SET seq=-(seq-1) WHERE seq>290; UPDATE events SET seq=-seq WHERE seq<0`), seqs: behind(290, 300)},
		"inserted":              {edit: by(`UPDATE events SET seq=-(seq+1) WHERE seq>=300; UPDATE events SET seq=-seq WHERE seq<0; INSERT INTO events SELECT 300,prev,hash,time,kind,run,branch,data FROM events WHERE seq=20`), seqs: []uint64{300, 300, 301, 301, 302}},
		"swapped":               {edit: by(`UPDATE events SET seq=-1 WHERE seq=100; UPDATE events SET seq=100 WHERE seq=101; UPDATE events SET seq=101 WHERE seq=-1`), seqs: []uint64{100, 100, 101, 101, 102}},
		"before the first":      {edit: by(`INSERT INTO events SELECT -5,prev,hash,time,kind,run,branch,data FROM events WHERE seq=20`), other: "numbers below 1"},
		"forged checkpoint":     {edit: by(`DELETE FROM events WHERE seq<100; UPDATE events SET kind='checkpoint' WHERE seq=100`), seqs: []uint64{100, 100, 101}},
		"blob":                  {edit: by(`UPDATE blobs SET bytes=zeroblob(20000)`), other: "bytes with the hash"},
		"trigger":               {edit: by(`CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END`), other: "doesn't belong"},
		"key":                   {edit: by(`UPDATE meta SET value='` + strings.Repeat("00", 32) + `' WHERE name='key'`), other: "the key in the store"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j.db")
			events := made(t, path)
			s := openStore(t, path, journal.Options{})
			sqlExec(t, raw(t, path), c.edit(t, path, events))
			if name == "key" { // who opens it after the edit
				s = openStore(t, path, journal.Options{})
			}
			r, err := s.Verify(context.Background())
			var got []uint64
			for _, b := range r.Breaks {
				got = append(got, b.Seq)
			}
			want := slices.Clone(c.seqs)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("breaks at %v, expected at %v: %v", got, want, r.Breaks)
			}
			var b *journal.Break
			switch {
			case c.other == "" && (!errors.As(err, &b) || len(r.Damage) > 0):
				t.Errorf("%v, damage %v", err, r.Damage)
			case c.other != "" && (!errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), c.other)):
				t.Errorf("%v, expected %q", err, c.other)
			}
			if name == "a number too large" {
				if _, err := s.Append(journal.Written, journal.RunEnded, "", "", []byte("{}")); !errors.Is(err, journal.ErrDamaged) {
					t.Errorf("appended behind it: %v", err)
				}
			}
			if c.other == "" {
				// The same is found in what is exported.
				var lines bytes.Buffer
				must.NoError(t, s.Export(context.Background(), &lines, journal.Query{}))
				if _, err := journal.VerifyLines(&lines); !errors.As(err, &b) {
					t.Errorf("in the exported lines: %v", err)
				}
			}
		})
	}
}

func by(text string) func(*testing.T, string, []journal.Event) string {
	return func(*testing.T, string, []journal.Event) string { return text }
}

// behind is a break at first, twice, and at each after it up to last, too: where
// the numbers of all are changed.
func behind(first, last uint64) (seqs []uint64) {
	seqs = append(seqs, first)
	for n := first; n <= last; n++ {
		seqs = append(seqs, n)
	}
	return seqs
}

// A chain can't tell that its end was cut off, or that it was all written anew:
// the report says so. An anchor can.
func TestAnchors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	events := made(t, path)
	at := func(seq uint64) journal.Anchor { return journal.Anchor{Seq: seq, Hash: events[seq-1].Hash} }
	s := openStore(t, path, journal.Options{})
	verified(t, s, at(1), at(150), at(301))
	sqlExec(t, raw(t, path), `DELETE FROM events WHERE seq>200`)
	if r := verified(t, s, at(200)); r.Last != 200 || !strings.Contains(strings.Join(r.Unproved, " "), "truncation at the end") {
		t.Errorf("%+v", r)
	}
	r, err := s.Verify(context.Background(), at(150), at(301))
	if err == nil || r.Breaks[0].Seq != 301 || !strings.Contains(err.Error(), "ends at event 200") {
		t.Errorf("the end was cut off: %v", err)
	}
	// Another history, consistent in itself.
	conn := raw(t, path)
	last := events[99]
	for _, e := range events[100:200] {
		e.Run, e.Prev = "forged", last.Hash
		e.Hash = e.Seal()
		sqlExec(t, conn, `UPDATE events SET run=?, prev=?, hash=? WHERE seq=?`, e.Run, e.Prev[:], e.Hash[:], int64(e.Seq))
		last = e
	}
	verified(t, s, at(100))
	if r, err := s.Verify(context.Background(), at(100), at(180)); err == nil || len(r.Breaks) != 1 || r.Breaks[0].Seq != 180 {
		t.Errorf("another history: %v", r.Breaks)
	}
}

// Exported lines that were edited are found.
func TestLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	events := made(t, path)
	s := openStore(t, path, journal.Options{ReadOnly: true})
	var b bytes.Buffer
	must.NoError(t, s.Export(context.Background(), &b, journal.Query{}))
	text := b.String()
	last := events[len(events)-1]
	r, err := journal.VerifyLines(strings.NewReader(text), journal.Anchor{Seq: last.Seq, Hash: last.Hash})
	if err != nil || r.Events != uint64(len(events)) || r.Head != last.Hash {
		t.Fatalf("%+v, %v", r, err)
	}
	lines := strings.SplitAfter(text, "\n")
	for name, c := range map[string]struct {
		line string
		seq  uint64
	}{
		"a field twice": {strings.Replace(lines[99], `"kind"`, `"kind":"run.ended","kind"`, 1), 100},
		"another field": {strings.Replace(lines[99], `"kind"`, `"note":1,"kind"`, 1), 100},
		"finer time":    {strings.Replace(lines[99], `Z","kind"`, `111Z","kind"`, 1), 100},
		"white space":   {strings.Replace(lines[99], `"data":{`, `"data": {`, 1), 100},
		"escaped":       {strings.Replace(lines[99], `é`, `\u00e9`, 1), 100},
		"not JSON":      {"x\n", 100},
		"missing":       {"", 101},
		"twice":         {lines[99] + lines[99], 100},
		"out of order":  {lines[100] + lines[99], 100},
	} {
		if c.line == lines[99] {
			t.Fatalf("%s: the line is the same", name)
		}
		edited := strings.Join(lines[:99], "") + c.line + strings.Join(lines[100:], "")
		if r, err := journal.VerifyLines(strings.NewReader(edited)); err == nil || r.Breaks[0].Seq != c.seq {
			t.Errorf("%s: %v", name, r.Breaks)
		}
	}
	if _, err := journal.VerifyLines(strings.NewReader(text[:len(text)-40])); err == nil {
		t.Error("half a line was taken")
	}
	if _, err := s.Append(journal.Written, journal.RunEnded, "", "", []byte("{}")); !errors.Is(err, journal.ErrReadOnly) {
		t.Errorf("appended to a store opened to be read: %v", err)
	}
	if _, err := s.Retain(context.Background(), journal.RetainOptions{}); !errors.Is(err, journal.ErrReadOnly) {
		t.Errorf("dropped from a store opened to be read: %v", err)
	}
	if _, err := s.Blob(journal.Hash{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no blob: %v", err)
	}
}

// Whatever happens to the bytes of the file, there is an answer and no panic; and
// no answer has an event in it that wasn't recorded, without Verify telling.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j.db")
	made(t, path)
	events := evolved(t, path, 60)
	whole, err := os.ReadFile(path)
	must.NoError(t, err)
	recorded := map[journal.Hash]bool{}
	for _, e := range events {
		recorded[e.Hash] = true
	}
	unopened, found, harmless := 0, 0, 0
	for i := range full(50, 3000) {
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
		newest, nerr := journal.Newest(s, 0)
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
	must.NoError(t, s.Close())
	return events
}

// A -wal that was cut off or damaged, as a broken disk leaves it, costs the events
// at its end, never one in the middle; who has written down the head knows.
func TestDamagedWAL(t *testing.T) {
	t.Parallel()
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
		must.NoError(t, err)
		files[name] = b
	}
	whole, cut := 0, 0
	for i := range full(30, 1000) {
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
		must.NoError(t, d.Close())
	}
	if cut == 0 {
		t.Errorf("in %d nothing is missing, in %d something", whole, cut)
	}
}
