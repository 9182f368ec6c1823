package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxEnded is how many ended sessions a node remembers over a restart.
const maxEnded = 10000

func sessionKey(session string) string {
	sum := sha256.Sum256([]byte(session))
	return hex.EncodeToString(sum[:16])
}

func (n *Node) endedFile() string { return filepath.Join(n.o.Dir, "cluster", "ended") }

// End ends a session on all nodes. It returns when all will hear of it.
func (n *Node) End(ctx context.Context, session string) error {
	if err := say(ctx, n.o.Order, n.o.Name, message{ID: sessionKey(session), Session: true}, nil); err != nil {
		return err
	}
	return n.store.Barrier(ctx) // what comes after it is heard, so it is
}

// Ended reports whether a session was ended at some node.
func (n *Node) Ended(session string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ended[sessionKey(session)]
}

// remember keeps that a session has ended, in a file that a kill of the process leaves.
func (n *Node) remember(key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended[key] {
		return
	}
	n.ended[key] = true
	f, err := os.OpenFile(n.endedFile(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		_, err = f.WriteString(key + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		n.o.Log.Error("the end of a session can't be kept over a restart", "error", err)
	}
}

func (n *Node) readEnded() error {
	data, err := os.ReadFile(n.endedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	keys := strings.Fields(string(data))
	if len(keys) > 2*maxEnded {
		keys = keys[len(keys)-maxEnded:]
		err = errors.Join(err, os.WriteFile(n.endedFile(), []byte(strings.Join(keys, "\n")+"\n"), 0o600))
	}
	for _, key := range keys {
		n.ended[key] = true
	}
	return err
}
