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

// maxEnded is how many ended sessions of a principal a node remembers, the newest.
var maxEnded = 1000

// ends are the ended sessions.
type ends struct {
	keys  map[string]bool
	of    map[string][]string // by whose they were, the oldest first
	lines int                 // of the file
}

// add adds one, and reports whether it is new.
func (e *ends) add(key, whose string) bool {
	if e.keys[key] {
		return false
	}
	e.keys[key] = true
	list := append(e.of[whose], key)
	if len(list) > maxEnded {
		delete(e.keys, list[0])
		list = list[1:]
	}
	e.of[whose] = list
	return true
}

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

func (n *Node) endedFile() string { return filepath.Join(n.o.Dir, "cluster", "ended") }

// End ends a session on all nodes, whose name is its principal's with a 0 byte and its own. It
// returns when all will hear of it.
func (n *Node) End(ctx context.Context, session string) error {
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
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ended.add(key, whose) {
		return
	}
	f, err := os.OpenFile(n.endedFile(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, key, whose)
		err = errors.Join(err, f.Close())
	}
	if n.ended.lines++; err == nil && n.ended.lines > 2*len(n.ended.keys)+maxEnded {
		err = n.rewriteEnded()
	}
	if err != nil {
		n.o.Log.Error("the end of a session can't be kept over a restart", "error", err)
	}
}

// rewriteEnded leaves out of the file what isn't remembered. The caller holds the lock.
func (n *Node) rewriteEnded() error {
	var b bytes.Buffer
	n.ended.lines = 0
	for whose, list := range n.ended.of {
		for _, key := range list {
			fmt.Fprintln(&b, key, whose)
			n.ended.lines++
		}
	}
	return statefile.Replace(n.endedFile(), b.Bytes(), 0o600)
}

func (n *Node) readEnded() error {
	data, err := os.ReadFile(n.endedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		n.ended.lines++
		key, whose, _ := strings.Cut(strings.TrimSpace(line), " ")
		if key != "" {
			n.ended.add(key, whose)
		}
	}
	return err
}
