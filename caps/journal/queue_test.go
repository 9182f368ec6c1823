package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// Everybody who may not wait long gets an answer, and what was noted is written
// when the lock is free again.
func TestLockedStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := openStore(t, path, journal.Options{Busy: 50 * time.Millisecond, Queue: 4 << 10})
	add(t, s, journal.Written, journal.ServerStarted, "{}")
	unlock := lock(t, path)
	if _, err := s.Append(journal.Written, journal.RunStarted, "", "", []byte(`{"lost":1}`)); !errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), "another process") {
		t.Fatalf("while it is locked: %v", err)
	}
	if !errors.Is(s.Failing(), journal.ErrLocked) {
		t.Errorf("it is failing: %v", s.Failing())
	}
	taken, refused := 0, 0
	for i := range 100 {
		_, err := s.Append(journal.Noted, journal.RunStarted, "", "", fmt.Appendf(nil, `{"i":%d}`, i))
		switch {
		case err == nil:
			taken++
		case errors.Is(err, journal.ErrLocked):
			refused++
		default:
			t.Fatal(err)
		}
	}
	if taken < 10 || refused < 10 {
		t.Errorf("%d events were taken, %d refused", taken, refused)
	}
	if last, err := s.Last(); err != nil || last != 1 {
		t.Errorf("what is there can't be read while it is locked: %d, %v", last, err)
	}
	unlock()
	if seq := add(t, s, journal.Written, journal.RunEnded, "{}"); seq != uint64(taken)+2 {
		t.Errorf("after %d events that waited comes %d", taken, seq)
	}
	if err := s.Failing(); err != nil {
		t.Errorf("it works, and is failing: %v", err)
	}
	verified(t, s)
}

// However much waits before it that can't be written, who asks for more than that
// it is noted gets an answer.
func TestManyWaitWhileLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := openStore(t, path, journal.Options{Busy: 10 * time.Millisecond})
	unlock := lock(t, path)
	const waiting = 5000 // more than are written at once
	for range waiting {
		add(t, s, journal.Noted, journal.RunStarted, "{}")
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, err := s.Change(0, journal.ToolEvolved, about("t", 1)); !errors.Is(err, journal.ErrLocked) {
				t.Errorf("while it is locked: %v", err)
			}
		})
	}
	wg.Wait()
	unlock()
	if seq, err := s.Change(0, journal.ToolEvolved, about("t", 1)); err != nil || seq != waiting+1 {
		t.Errorf("after %d events that waited comes %d, %v", waiting, seq, err)
	}
	verified(t, s)
}

// Events wait for each other, but nobody waits for events: not in a queue that is
// too short for them, not for what was noted before.
func TestQueue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s, err := journal.Open(path, journal.Options{Queue: 2 << 10, Linger: time.Hour})
	must.NoError(t, err)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { populate(t, s, 300) })
	}
	wg.Wait()
	add(t, s, journal.Noted, journal.EffectOutcome, `{"large":"`+strings.Repeat("x", 8<<10)+`"}`)
	if n := len(all(t, s, journal.Query{})); n != 1201 {
		t.Errorf("%d events are read", n)
	}
	add(t, s, journal.Noted, journal.RunEnded, "{}")
	if seq := add(t, s, journal.Written, journal.RunEnded, "{}"); seq != 1203 {
		t.Errorf("the last is %d", seq)
	}
	add(t, s, journal.Noted, journal.RunEnded, "{}")
	must.NoError(t, s.Close())
	if last, err := openStore(t, path, journal.Options{}).Last(); err != nil || last != 1204 {
		t.Errorf("after Close the last is %d, %v", last, err)
	}
}

// TestLinger: what is noted is written soon, whatever was written before its time; who needs
// room doesn't wait for that time.
func TestLinger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s, other := openStore(t, path, journal.Options{}), openStore(t, path, journal.Options{})
	for n := uint64(3); n <= 9; n += 3 {
		add(t, s, journal.Noted, journal.RunStarted, "{}")
		add(t, s, journal.Written, journal.EffectRequested, "{}")
		add(t, s, journal.Noted, journal.EffectOutcome, "{}")
		wait.Until(t, "what was noted", func() bool {
			last, err := other.Last()
			must.NoError(t, err)
			return last == n
		})
	}
	s = openStore(t, filepath.Join(t.TempDir(), "j.db"), journal.Options{Queue: 2 << 10, Linger: time.Hour})
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		add(t, s, journal.Noted, journal.RunStarted, "{}")
		add(t, s, journal.Noted, journal.EffectOutcome, `{"large":"`+strings.Repeat("x", 8<<10)+`"}`)
	}()
	wait.For(t, taken, "room")
}

// What can't be written by the end is not lost in silence.
func TestCloseTellsOfLoss(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	var log bytes.Buffer
	s, err := journal.Open(path, journal.Options{Busy: 20 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
	must.NoError(t, err)
	defer lock(t, path)()
	for range 3 {
		add(t, s, journal.Noted, journal.RunStarted, "{}")
	}
	if err := s.Close(); !errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), "the last 3 events are lost") {
		t.Errorf("Close: %v", err)
	}
	if !strings.Contains(log.String(), "can't be written") {
		t.Errorf("the log says %q", log.String())
	}
}
