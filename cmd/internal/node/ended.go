package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// maxEnded is how many ended sessions of a principal a node remembers, the newest, and maxAllEnded of all. Files of
// earlier versions don't say whose one was: of those there may be unownedEnded times as many.
var maxEnded, maxAllEnded = 1000, 50_000

const unownedEnded = 10

// ends are the ended sessions.
type ends struct {
	keys map[string]bool
	of   map[string][]string // by whose they were, the oldest first
}

// add adds one, and reports whether it is new.
func (e *ends) add(key, whose string) bool {
	if e.keys[key] {
		return false
	}
	e.keys[key] = true
	e.of[whose] = append(e.of[whose], key)
	most := maxEnded
	if whose == "" {
		most *= unownedEnded
	}
	if len(e.of[whose]) > most {
		e.drop(whose)
	}
	if len(e.keys) > maxAllEnded {
		for other, list := range e.of {
			if len(list) > len(e.of[whose]) {
				whose = other
			}
		}
		e.drop(whose)
	}
	return true
}

// drop forgets somebody's oldest.
func (e *ends) drop(whose string) {
	delete(e.keys, e.of[whose][0])
	if e.of[whose] = e.of[whose][1:]; len(e.of[whose]) == 0 {
		delete(e.of, whose)
	}
}

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

func (n *Node) endedFile() string { return filepath.Join(n.o.Dir, "cluster", "ended") }

// End ends a session on all nodes, whose name is its principal's with a 0 byte and its own. It
// returns when all will hear of it, or the order is silent.
func (n *Node) End(ctx context.Context, session string) error {
	ctx, cancel := context.WithTimeout(ctx, maxSilence)
	defer cancel()
	principal, _, _ := strings.Cut(session, "\x00")
	if err := say(ctx, n.o.Order, n.o.Name, message{ID: hashed(session), Whose: hashed(principal), Session: true}, nil); err != nil {
		return err
	}
	return n.store.Barrier(ctx) // what comes after it is heard, so it is
}

// Ended reports whether a session was ended at some node.
func (n *Node) Ended(session string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ended.keys[hashed(session)]
}

// remember keeps that a session has ended, in a file that a kill of the process leaves.
func (n *Node) remember(key, whose string) {
	n.keeping.Lock()
	defer n.keeping.Unlock()
	n.mu.Lock()
	isNew, known := n.ended.add(key, whose), len(n.ended.keys)
	n.mu.Unlock()
	if !isNew {
		return
	}
	f, err := os.OpenFile(n.endedFile(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(f, "\n%s %s\n", key, whose) // what was torn before is a line of its own
		err = errors.Join(err, f.Close())
	}
	if n.endedLines++; err == nil && n.endedLines > 2*known+maxEnded {
		err = n.rewriteEnded()
	}
	if err != nil {
		n.o.Log.Error("the end of a session can't be kept over a restart", "error", err)
	}
}

// rewriteEnded leaves out of the file what isn't remembered. The caller holds the lock of the file.
func (n *Node) rewriteEnded() error {
	var b bytes.Buffer
	n.mu.Lock()
	n.endedLines = len(n.ended.keys)
	for whose, list := range n.ended.of {
		for _, key := range list {
			fmt.Fprintln(&b, key, whose)
		}
	}
	n.mu.Unlock()
	return statefile.Replace(n.endedFile(), b.Bytes(), 0o600)
}

func (n *Node) readEnded() error {
	data, err := os.ReadFile(n.endedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		if key, whose, _ := strings.Cut(strings.TrimSpace(line), " "); key != "" {
			n.endedLines++
			n.ended.add(key, whose)
		}
	}
	return err
}
