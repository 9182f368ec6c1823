package journal_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// TestNotedHead: what is cut off, emptied, replaced or put back is noticed by the
// next who opens the store, and by verify; what retention drops isn't, nor is a copy
// at another place.
func TestNotedHead(t *testing.T) {
	t.Parallel()
	copyTo := func(t *testing.T, from, to string) {
		for _, suffix := range []string{"", ".key"} {
			b, err := os.ReadFile(from + suffix)
			must.NoError(t, err)
			write(t, to+suffix, b)
		}
	}
	// With the notes in another folder, made with some events; then more are added.
	for name, c := range map[string]struct {
		between func(t *testing.T, path string) // when there are 301 events
		after   func(t *testing.T, path string) // when there are 331
		says    string                          // in the log; "": nothing
		broken  bool                            // verify says so
	}{
		"as it was":    {},
		"emptied":      {after: func(t *testing.T, path string) { sqlExec(t, raw(t, path), `DELETE FROM events`) }, says: "is 0 now", broken: true},
		"the last one": {after: func(t *testing.T, path string) { sqlExec(t, raw(t, path), `DELETE FROM events WHERE seq=331`) }, says: "is 330 now", broken: true},
		"an older copy": {
			between: func(t *testing.T, path string) { copyTo(t, path, path+".old") },
			after:   func(t *testing.T, path string) { copyTo(t, path+".old", path) }, says: "is 301 now", broken: true,
		},
		"an older copy that went on": {
			between: func(t *testing.T, path string) { copyTo(t, path, path+".old") },
			after: func(t *testing.T, path string) {
				copyTo(t, path+".old", path)
				s := openStore(t, path, journal.Options{}) // where nothing is noted
				populate(t, s, 60)
				s.Close()
			},
			says: "another than the one that was here", broken: true,
		},
		"another store": {
			after: func(t *testing.T, path string) {
				for _, suffix := range []string{"", ".key"} {
					must.NoError(t, os.Remove(path+suffix))
				}
				made(t, path)
			},
			says: "isn't the one that was at its path",
		},
		"retained": {after: func(t *testing.T, path string) {
			s := openStore(t, path, journal.Options{})
			populate(t, s, 1)
			must.Succeed(t)(s.Retain(context.Background(), journal.RetainOptions{MaxBytes: 1}))
			s.Close()
		}},
		"moved away and back": {after: func(t *testing.T, path string) {
			copyTo(t, path, path+".moved")
			copyTo(t, path+".moved", path)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, notes := filepath.Join(dir, "store", "j.db"), filepath.Join(dir, "heads")
			var log wait.Log
			open := func(o journal.Options) *journal.Store {
				o.Notes, o.Log = notes, slog.New(slog.NewTextHandler(&log, nil))
				return openStore(t, path, o)
			}
			s := open(journal.Options{})
			populate(t, s, 301)
			s.Close()
			if c.between != nil {
				c.between(t, path)
			}
			s = open(journal.Options{})
			populate(t, s, 30)
			s.Close()
			if c.after != nil {
				c.after(t, path)
			}
			if log.String() != "" {
				t.Fatalf("before: %s", log.String())
			}

			s = open(journal.Options{ReadOnly: true})
			report, err := s.Verify(context.Background())
			if (err != nil) != c.broken || c.broken && !strings.Contains(err.Error(), c.says) {
				t.Errorf("verify says %v", err)
			}
			if (report.Noted != nil) != (c.says == "") {
				t.Errorf("noted and there is %v", report.Noted)
			}
			if said := log.String(); (said != "") != (c.says != "") || !strings.Contains(said, c.says) {
				t.Errorf("the log says %q", said)
			}
			s.Close()

			// Who goes on says so once, and leaves word of it.
			for range 2 {
				s = open(journal.Options{})
				populate(t, s, 3)
				s.Close()
			}
			if n := strings.Count(log.String(), "level=WARN"); c.says != "" && n != 2 || c.says == "" && n != 0 {
				t.Errorf("%d warnings: %s", n, log.String())
			}
			s = open(journal.Options{ReadOnly: true})
			report, err = s.Verify(context.Background())
			if err != nil || report.Noted == nil || (report.Lost != "") != (c.says != "") {
				t.Errorf("then verify says %v, noted %v, lost %q", err, report.Noted, report.Lost)
			}
		})
	}
}

// TestNotedCopy: a copy at another place has no note, and two processes on one store
// keep one that both have.
func TestNotedCopy(t *testing.T) {
	dir := t.TempDir()
	path, notes := filepath.Join(dir, "a", "j.db"), filepath.Join(dir, "heads")
	var log wait.Log
	o := journal.Options{Notes: notes, Log: slog.New(slog.NewTextHandler(&log, nil))}
	one, two := openStore(t, path, o), openStore(t, path, o)
	var both sync.WaitGroup
	for _, s := range []*journal.Store{one, two} {
		both.Go(func() { populate(t, s, 100) })
	}
	both.Wait()
	one.Close()
	two.Close()
	text, err := os.ReadFile(path)
	must.NoError(t, err)
	must.NoError(t, os.MkdirAll(filepath.Join(dir, "b"), 0o700))
	write(t, filepath.Join(dir, "b", "j.db"), text)
	other := openStore(t, filepath.Join(dir, "b", "j.db"), o)
	other.Close()
	again := openStore(t, path, o)
	report, err := again.Verify(context.Background())
	if seq, hash, _ := again.Head(); err != nil || report.Noted == nil || *report.Noted != (journal.Anchor{Seq: seq, Hash: hash}) {
		t.Errorf("noted is %v, the newest is %d; %v", report.Noted, seq, err)
	}
	if strings.Contains(log.String(), "isn't") {
		t.Error(log.String())
	}
	if files, err := filepath.Glob(filepath.Join(notes, "*")); err != nil || len(files) != 2 {
		t.Errorf("the notes are %v", files)
	}
}

// TestUnfinishedNotes: what a process left of a note that was killed goes with the next start; that of one
// that lives stays.
func TestUnfinishedNotes(t *testing.T) {
	dir := t.TempDir()
	o := journal.Options{Notes: filepath.Join(dir, "heads")}
	s := openStore(t, filepath.Join(dir, "j.db"), o)
	populate(t, s, 1)
	s.Close()
	notes, err := filepath.Glob(filepath.Join(o.Notes, "*.json"))
	if err != nil || len(notes) != 1 {
		t.Fatal(notes, err)
	}
	killed, alive := notes[0]+".1999999999", fmt.Sprint(notes[0], ".", os.Getppid())
	write(t, killed, nil)
	write(t, alive, nil)
	openStore(t, filepath.Join(dir, "j.db"), o).Close()
	if _, err := os.Lstat(killed); !os.IsNotExist(err) && runtime.GOOS != "windows" {
		t.Errorf("%s: %v", killed, err)
	}
	if _, err := os.Lstat(alive); err != nil {
		t.Error(err)
	}
}

// TestNotesAreNotNeeded: where nothing can be noted, or what is noted is no note,
// everything else works.
func TestNotesAreNotNeeded(t *testing.T) {
	dir := t.TempDir()
	path, notes := filepath.Join(dir, "j.db"), filepath.Join(dir, "heads")
	write(t, notes, []byte("a file where the folder is to be"))
	s := openStore(t, path, journal.Options{Notes: notes, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	populate(t, s, 3)
	s.Close()
	must.NoError(t, os.Remove(notes))
	s = openStore(t, path, journal.Options{Notes: notes})
	s.Close()
	files, err := filepath.Glob(filepath.Join(notes, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	for _, text := range []string{"", "{", "null", `{"seq":5}`, `{"seq":-1,"store":"x"}`} {
		write(t, files[0], []byte(text))
		var log wait.Log
		s := openStore(t, path, journal.Options{Notes: notes, ReadOnly: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if _, err := s.Verify(context.Background()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if strings.Contains(log.String(), "isn't") {
			t.Errorf("%s: %s", text, log.String())
		}
		s.Close()
	}
}
