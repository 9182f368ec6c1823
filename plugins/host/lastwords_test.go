//go:build linux

package host

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"testing"
	"time"
)

// What a process writes just before its end is read, though it is gone by then.
func TestLastWords(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 { // so that who reads gets its turn late
		all.Go(func() {
			for range 8 {
				_, err := NewProbe(context.Background(), ProbeOptions{Source: Source{Path: exe, Args: []string{"brief"}}, Sandbox: Off, Within: patience})
				if !errors.Is(err, ErrProtocol) {
					t.Errorf("it ended with %v", err)
					return
				}
			}
		})
	}
	all.Wait()
}

// What was written is waited for although the time is over; where nothing is, who
// holds the other end isn't.
func TestHearOut(t *testing.T) {
	over, end := context.WithCancel(context.Background())
	end()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	hearOut(over, make(chan struct{}), r)
	if _, err := w.WriteString("words\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	heard, given := make(chan struct{}), make(chan struct{})
	go func() { hearOut(over, heard, r); close(given) }()
	select {
	case <-given:
		t.Error("it was given up unread")
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := io.ReadAll(r); err != nil {
		t.Error(err)
	}
	close(heard)
	<-given
}
