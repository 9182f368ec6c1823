//go:build linux

package host

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
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
				_, err := NewProbe(context.Background(), ProbeOptions{Source: Source{Path: exe, Args: []string{"brief"}}, Sandbox: Off})
				if !errors.Is(err, ErrProtocol) {
					t.Errorf("it ended with %v", err)
					return
				}
			}
		})
	}
	all.Wait()
}
