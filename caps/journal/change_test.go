package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

func TestChange(t *testing.T) {
	journals(t, func(t *testing.T, j journal.Journal) {
		changed := func(want uint64) {
			t.Helper()
			if seq, err := j.Changed(); err != nil || seq != want {
				t.Errorf("the last change is %d, %v, expected %d", seq, err, want)
			}
		}
		change := func(after uint64, k journal.Kind, want uint64, failure error) {
			t.Helper()
			if seq, err := j.Change(after, k, about("t", 1)); seq != want || !errors.Is(err, failure) {
				t.Errorf("a change after %d is event %d, %v; expected %d, %v", after, seq, err, want, failure)
			}
		}
		changed(0)
		change(0, journal.ToolEvolved, 1, nil)
		changed(1)
		change(0, journal.ToolEvolved, 0, journal.ErrBehind)
		for _, k := range []journal.Kind{journal.ToolRefused, journal.RunStarted, journal.PolicyRevoked} {
			must.Succeed(t)(j.Append(journal.Written, k, "", "", []byte(`{"tool":"t"}`)))
		}
		changed(1)
		change(1, journal.ToolRetired, 5, nil)
		change(1, journal.ToolRetired, 0, journal.ErrBehind)
		change(4, journal.ToolRetired, 0, journal.ErrBehind)
		change(100, journal.ToolRolledBack, 6, nil) // more than there is
		changed(6)
		must.Succeed(t)(j.Append(journal.Synced, journal.ToolEvolved, "", "", about("u", 1)))
		changed(7)
		change(6, journal.ToolEvolved, 0, journal.ErrBehind)
		for _, c := range []struct {
			kind journal.Kind
			data string
		}{
			{journal.RunStarted, `{"tool":"t"}`}, {journal.ToolRefused, `{"tool":"t"}`}, {journal.ToolEvolved, `{}`}, {journal.ToolEvolved, `{"tool":""}`},
			{journal.ToolEvolved, `{"tool":7}`}, {journal.ToolEvolved, `{"a":{"tool":"t"}}`}, {journal.ToolEvolved, `{"tool":"t"`},
		} {
			if seq, err := j.Change(7, c.kind, []byte(c.data)); err == nil || errors.Is(err, journal.ErrBehind) {
				t.Errorf("%s %s was taken as %d, %v", c.kind, c.data, seq, err)
			}
		}
		changed(7)
		events, _, err := j.Read(journal.Query{Changes: true})
		if err != nil || seqs(events) != "[1 5 6 7]" {
			t.Errorf("the changes are %s, %v", seqs(events), err)
		}
	})
}

// Several processes with several goroutines each, all changing tools by what they
// know: none of the acknowledged changes is lost, none is there twice, and each
// was made by one who knew of all before it.
func TestChangesTogether(t *testing.T) {
	t.Parallel()
	const processes, goroutines, changes = 3, 4, 15
	path := filepath.Join(t.TempDir(), "j.db")
	s := openStore(t, path, journal.Options{Busy: time.Minute})
	var commands []*exec.Cmd
	var outs, errs []*bytes.Buffer
	for i := range processes {
		cmd, stderr := start(t, "change", path, fmt.Sprint(i), fmt.Sprint(goroutines), fmt.Sprint(changes))
		out := new(bytes.Buffer)
		cmd.Stdout = out
		must.NoError(t, wait.Start(cmd))
		commands, outs, errs = append(commands, cmd), append(outs, out), append(errs, stderr)
	}
	acknowledged := map[string]bool{}
	for i, cmd := range commands {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s%s", err, outs[i], errs[i])
		}
		for line := range strings.Lines(outs[i].String()) {
			acknowledged[strings.TrimSpace(line)] = true
		}
	}
	there := all(t, s, journal.Query{Changes: true})
	if want := processes * goroutines * changes; len(there) != want || len(acknowledged) != want {
		t.Errorf("%d changes are there, %d were acknowledged, of %d", len(there), len(acknowledged), want)
	}
	before, version := uint64(0), map[string]int{}
	for _, e := range there {
		var tool string
		var n int
		var after uint64
		if _, err := fmt.Sscanf(string(e.Data), `{"tool":%q,"version":%d,"after":%d}`, &tool, &n, &after); err != nil {
			t.Fatalf("%s: %v", e.Data, err)
		}
		if after != before {
			t.Errorf("event %d was made by one who knew of %d, but %d was the last", e.Seq, after, before)
		}
		if before = e.Seq; !acknowledged[fmt.Sprint(e.Seq, " ", tool, " ", n)] {
			t.Errorf("event %d, %s, was not acknowledged", e.Seq, e.Data)
		}
		if version[tool]++; n != version[tool] {
			t.Errorf("%s: version %d follows %d", tool, n, version[tool]-1)
		}
	}
	verified(t, s)
}

// changeTogether is a process that changes the tools of the store args[0]: each of
// args[2] goroutines evolves args[3] tools of its own choice, of which all use the
// same. It writes a line for each that is acknowledged.
func changeTogether(args []string) error {
	var goroutines, changes int
	if _, err := fmt.Sscan(args[2]+" "+args[3], &goroutines, &changes); err != nil {
		return err
	}
	s, err := journal.Open(args[0], journal.Options{Busy: time.Minute})
	if err != nil {
		return err
	}
	errs := make(chan error)
	for range goroutines {
		go func() {
			for range changes {
				if err := evolveOne(s, fmt.Sprint("tool", rand.IntN(5))); err != nil {
					errs <- err
					return
				}
				if _, err := s.Append(journal.Noted, journal.RunStarted, args[1], "", []byte("{}")); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range goroutines {
		err = errors.Join(err, <-errs)
	}
	return errors.Join(err, s.Close())
}

// evolveOne makes a next version of a tool, however often others are faster.
func evolveOne(s *journal.Store, tool string) error {
	for {
		after, err := s.Changed()
		if err != nil {
			return err
		}
		known, err := journal.Newest(s, after)
		if err != nil {
			return err
		}
		version := 1
		for i := range known {
			if e := &known[i]; e.Tool() == tool {
				if _, err := fmt.Sscanf(string(e.Data), `{"tool":`+fmt.Sprintf("%q", tool)+`,"version":%d`, &version); err != nil {
					return err
				}
				version++
			}
		}
		seq, err := s.Change(after, journal.ToolEvolved, fmt.Appendf(nil, `{"tool":%q,"version":%d,"after":%d}`, tool, version, after))
		if errors.Is(err, journal.ErrBehind) {
			continue
		}
		if err == nil {
			_, err = fmt.Printf("%d %s %d\n", seq, tool, version)
		}
		return err
	}
}

// Whoever writes, and whatever becomes of -wal, each store knows of each change at
// once.
func TestChangedMissesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j.db")
	pick := rand.New(rand.NewPCG(11, 12))
	open := func() *journal.Store { return openStore(t, path, journal.Options{Busy: time.Minute}) }
	stores := []*journal.Store{open(), open(), openStore(t, path, journal.Options{ReadOnly: true})}
	conn := raw(t, path)
	last, number := uint64(0), uint64(0)
	for i := range full(200, 10_000) {
		s := stores[pick.IntN(2)]
		switch n := pick.IntN(20); {
		case n < 8:
			last = change(t, s, journal.ToolEvolved, about("t", i+1))
			number = last
		case n < 14:
			number = add(t, s, journal.Written, journal.RunStarted, "{}")
		case n < 16:
			add(t, s, journal.Noted, journal.RunStarted, "{}")
			if number++; len(all(t, s, journal.Query{After: number - 1})) != 1 {
				t.Fatal("what was noted is not there")
			}
		case n == 16:
			sqlExec(t, conn, `PRAGMA wal_checkpoint(TRUNCATE)`)
		case n == 17:
			sqlExec(t, conn, `BEGIN IMMEDIATE; INSERT INTO meta VALUES('x',''); ROLLBACK`)
		case n == 18:
			retain(t, s, journal.RetainOptions{MaxBytes: 20_000, Keep: tools})
		case n == 19:
			which := pick.IntN(2)
			must.NoError(t, stores[which].Close())
			stores[which] = open()
		}
		for j := range pick.IntN(3) {
			for k, s := range stores {
				if got, err := s.Changed(); err != nil || got != last {
					t.Fatalf("act %d, look %d: store %d knows of %d, %v; the last change is %d", i, j, k, got, err, last)
				}
			}
		}
	}
}

// A change that comes too late fails alone, not what is written together with it.
func TestChangeBehindInABatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := openStore(t, path, journal.Options{Busy: time.Minute})
	unlock := lock(t, path) // so that all wait for one transaction, or few
	var wg sync.WaitGroup
	var mu sync.Mutex
	won, behind := 0, 0
	for i := range 30 {
		wg.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = s.Change(0, journal.ToolEvolved, about("t", 1))
			} else {
				_, err = s.Append(journal.Written, journal.RunStarted, fmt.Sprint(i), "", []byte("{}"))
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case i%2 == 0 && err == nil:
				won++
			case i%2 == 0 && errors.Is(err, journal.ErrBehind):
				behind++
			case err != nil:
				t.Error(err)
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	unlock()
	wg.Wait()
	if n := len(all(t, s, journal.Query{})); won != 1 || behind != 14 || n != 16 {
		t.Errorf("%d changes were made, %d came too late, %d events are there", won, behind, n)
	}
	verified(t, s)
}

// A change that can't be written is not there, and not said to be behind.
func TestChangeThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := openStore(t, path, journal.Options{Busy: 20 * time.Millisecond})
	unlock := lock(t, path)
	if _, err := s.Change(0, journal.ToolEvolved, about("t", 1)); !errors.Is(err, journal.ErrLocked) || errors.Is(err, journal.ErrBehind) {
		t.Errorf("while it is locked: %v", err)
	}
	if n, err := s.Changed(); n != 0 || err != nil {
		t.Errorf("the last change is %d, %v", n, err)
	}
	unlock()
	reader := openStore(t, path, journal.Options{ReadOnly: true})
	if _, err := reader.Change(0, journal.ToolEvolved, about("t", 1)); !errors.Is(err, journal.ErrReadOnly) {
		t.Errorf("of a store to be read: %v", err)
	}
	if seq, err := s.Change(0, journal.ToolEvolved, about("t", 1)); seq != 1 || err != nil {
		t.Errorf("%d, %v", seq, err)
	}
	if n, err := reader.Changed(); n != 1 || err != nil {
		t.Errorf("for the reader the last change is %d, %v", n, err)
	}
	must.NoError(t, reader.Close())
	if _, err := reader.Changed(); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := journal.Newest(reader, 0); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := s.Blob(journal.Hash{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// several is n changes, each of which has its own number in its data.
func several(n int) []journal.Part {
	parts := make([]journal.Part, n)
	for i := range parts {
		data := fmt.Appendf(nil, `{"tool":"t%d","version":1,"number":0}`, i)
		parts[i] = journal.Part{Kind: journal.ToolEvolved, Data: data, Refs: []journal.Ref{{At: len(data) - 2, Part: i}}}
	}
	return parts
}

// TestChangeAll: several changes have numbers in a row, which they are told, and a
// chain that holds; all or none of them are appended.
func TestChangeAll(t *testing.T) {
	journals(t, func(t *testing.T, j journal.Journal) {
		for range 3 {
			must.Succeed(t)(j.Append(journal.Noted, journal.RunStarted, "r", "", []byte(`{}`)))
		}
		first, err := j.ChangeAll(0, several(100))
		if err != nil || first != 4 {
			t.Fatalf("the first is %d, %v", first, err)
		}
		if n, err := j.Changed(); n != 103 || err != nil {
			t.Errorf("the newest change is %d, %v", n, err)
		}
		if _, err := j.ChangeAll(102, several(2)); !errors.Is(err, journal.ErrBehind) {
			t.Errorf("after a change that isn't the newest: %v", err)
		}
		nothing, noTool, noPlace, noPart := several(3), several(3), several(3), several(3)
		nothing[1].Kind = journal.RunStarted
		noTool[2] = journal.Part{Kind: journal.ToolEvolved, Data: []byte(`{}`)}
		noPlace[0].Refs[0].At--
		noPart[0].Refs[0].Part = 3
		for what, parts := range map[string][]journal.Part{
			"none": several(0), "one that changes nothing": nothing, "one about no tool": noTool,
			"a number where none belongs": noPlace, "a number of no part": noPart,
		} {
			if _, err := j.ChangeAll(103, parts); err == nil {
				t.Errorf("%s: it was taken", what)
			}
		}
		if first, err = j.ChangeAll(103, several(2)); first != 104 || err != nil {
			t.Errorf("then the first is %d, %v", first, err)
		}
		events, _, err := j.Read(journal.Query{})
		if err != nil || len(events) != 105 {
			t.Fatalf("%d events, %v", len(events), err)
		}
		var v journal.Verifier
		for i := range events {
			e := &events[i]
			if err := v.Next(e); err != nil {
				t.Error(err)
			}
			if e.Kind == journal.ToolEvolved && !strings.HasSuffix(string(e.Data), fmt.Sprintf(`"number":%d}`, e.Seq)) {
				t.Errorf("event %d was told another number: %s", e.Seq, e.Data)
			}
		}
	})
}

// TestChangeAllOrNone: where not all of it fits, nothing of it is there, and what is
// appended later goes on from what was.
func TestChangeAllOrNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := openStore(t, path, journal.Options{MaxBytes: 1 << 20})
	seq, err := s.Change(0, journal.ToolEvolved, []byte(`{"tool":"a","version":1}`))
	must.NoError(t, err)
	large := several(3000)
	for i := range large {
		large[i] = journal.Part{Kind: journal.ToolEvolved, Data: fmt.Appendf(nil, `{"tool":"t%d","text":"%s"}`, i, strings.Repeat("x", 1000))}
	}
	if _, err := s.ChangeAll(seq, large); !errors.Is(err, journal.ErrFull) {
		t.Errorf("it was taken: %v", err)
	}
	next, err := s.ChangeAll(seq, several(5))
	if err != nil || next != seq+1 {
		t.Errorf("then it goes on with %d, %v", next, err)
	}
	if _, err := s.Verify(context.Background()); err != nil {
		t.Error(err)
	}
}
