package node

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
)

// Copies of files travel in the order itself, which all nodes reach and are let into by it:
// as messages, which no file keeps.

const (
	// says is behind the name of a node whose program isn't a server, or doesn't act as one.
	says = "/says"
	// pieceBytes is how much of a copy is in one message.
	pieceBytes = 512 << 10
)

// deaf is how long is waited for a node that lives, or goes on.
const deaf = 10 * time.Second

// A message is one of those; what is raw follows it, after a line end.
type message struct {
	// ID is that of who asks.
	ID string `json:"id"`
	// Of is the node that is asked for a copy of its files; "": a mark only.
	Of string `json:"of,omitempty"`
	// Profile is that of the file of which this is a piece, N its number among all pieces
	// of the answer, and Ends is set with the last of the file.
	Profile string `json:"profile,omitempty"`
	N       int    `json:"n,omitempty"`
	Ends    bool   `json:"ends,omitempty"`
	// Done says that it was the last, or why there are no more.
	Done  bool   `json:"done,omitempty"`
	Error string `json:"error,omitempty"`
	// Session says that the ID is of a session, which has ended, of the principal Whose.
	Session bool   `json:"session,omitempty"`
	Whose   string `json:"whose,omitempty"`
	// Offer is what a node has whose order is lost.
	Offer *offer `json:"offer,omitempty"`
}

func readMessage(content []byte) (m message, raw []byte, ok bool) {
	head, raw, _ := bytes.Cut(content, []byte("\n"))
	return m, raw, json.Unmarshal(head, &m) == nil && m.ID != ""
}

// say puts a message into an order.
func say(ctx context.Context, o order.Order, node string, m message, raw []byte) error {
	head, err := json.Marshal(m)
	p := journal.Message(node+says, append(append(head, '\n'), raw...))
	for pause := 20 * time.Millisecond; err == nil; pause = min(2*pause, time.Second) {
		refused := o.Propose(ctx, p)
		if refused == nil || errors.Is(refused, order.ErrOther) || errors.Is(refused, order.ErrClosed) || errors.Is(refused, order.ErrTooLarge) {
			return refused
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return err
}

// hear follows an order, and ends after a time in which fn isn't content.
func hear(ctx context.Context, o order.Order, from uint64, silence error, fn func(place uint64, h journal.Heard) (content bool, err error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(deaf, func() { cancel(silence) })
	defer timer.Stop()
	err := o.Follow(ctx, from, func(place uint64, p []byte) error {
		h, err := journal.Hear(p)
		if err != nil {
			return err
		}
		content, err := fn(place, h)
		if content {
			timer.Reset(deaf)
		}
		return err
	})
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
		return cause
	}
	return err
}

// ErrNobody occurs when no node lives that could give a copy.
var ErrNobody = errors.New("no other node of the cluster runs: a copy of its files takes one that does")

var errDone = errors.New("done")

// Copies are files of another node, whole and as others had them.
type Copies struct {
	From  string
	Files map[string]string // paths by profile
}

// Copy gets the files of a node that runs, or of any where from is "", into a folder.
func Copy(ctx context.Context, o order.Order, name, from, dir string) (c Copies, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	id := fmt.Sprintf("%s-%d", name, time.Now().UnixNano())
	ask := func(of string) { go func() { _ = say(ctx, o, name, message{ID: id, Of: of}, nil) }() }
	c = Copies{From: from, Files: map[string]string{}}
	anchors := map[string]map[string]journal.Anchor{} // by profile and node
	present, asked := time.Time{}, false
	pieces := collecting{dir: dir, files: c.Files}
	defer func() { err = errors.Join(err, pieces.close()) }()
	silence := ErrNobody
	if from != "" {
		silence = fmt.Errorf("the node %s doesn't run, or doesn't answer", from)
	}
	first, begun := uint64(0), false // a cluster is in this order, or was
	fn := func(place uint64, h journal.Heard) (bool, error) {
		if begun = begun || !h.IsMessage; first == 0 {
			first = place
		}
		m, raw, ok := message{}, []byte(nil), false
		if h.IsMessage {
			m, raw, ok = readMessage(h.Message)
		}
		switch {
		case present.IsZero(): // what is old
			if ok && m.ID == id {
				if present = time.Now(); first == 1 && !begun {
					return false, silence
				}
			}
			return true, nil
		case !h.IsMessage && !asked && !strings.Contains(h.Node, "/"):
			if anchors[h.Profile] == nil {
				anchors[h.Profile] = map[string]journal.Anchor{}
			}
			anchors[h.Profile][h.Node] = h.Anchor
			if time.Since(present) < 3*beat || h.Profile != authority || h.Node == name || from != "" && h.Node != from {
				return false, nil
			}
			asked, c.From = true, h.Node
			ask(h.Node)
			return true, nil
		case !ok || m.ID != id || !asked || m.Of != "":
			return false, nil
		case m.Error != "":
			return false, fmt.Errorf("the node %s: %s", c.From, m.Error)
		case m.Done:
			return false, errDone
		}
		return true, pieces.take(m, raw)
	}
	for err = order.ErrTrimmed; errors.Is(err, order.ErrTrimmed) && !asked; { // a node that starts trims it meanwhile
		present, first = time.Time{}, 0
		ask("")
		err = hear(ctx, o, 0, silence, fn)
	}
	if asked && errors.Is(err, silence) {
		err = fmt.Errorf("the node %s began to give its files, and hasn't gone on for %v: try again", c.From, deaf)
	}
	if !errors.Is(err, errDone) {
		return c, err
	}
	for profile, path := range c.Files {
		delete(anchors[profile], c.From)
		if err := check(ctx, path, anchors[profile]); err != nil {
			return c, fmt.Errorf("the copy of the profile %s that the node %s gave: %w", profile, c.From, err)
		}
	}
	return c, nil
}

// check makes sure that a copy is whole, and has what other nodes had.
func check(ctx context.Context, path string, had map[string]journal.Anchor) error {
	s, err := journal.Open(path, journal.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	var anchors []journal.Anchor
	for _, a := range had {
		if a.Seq > 0 {
			anchors = append(anchors, a)
		}
	}
	_, err = s.Verify(ctx, anchors...)
	return errors.Join(err, s.Close())
}

func unzip(from *os.File, path string) error {
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	z, err := gzip.NewReader(from)
	if err != nil {
		return err
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, z)
	return errors.Join(err, to.Sync(), to.Close())
}

// hears is what the node does with what comes in the order besides its authority. It is
// called by who applies, so it doesn't wait.
func (n *Node) hears(h journal.Heard) {
	if !h.IsMessage {
		n.mu.Lock()
		n.profiles[h.Profile] = true
		n.mu.Unlock()
		return
	}
	m, _, ok := readMessage(h.Message)
	if ok && m.Session {
		n.remember(m.ID, m.Whose)
	}
	if !ok || m.Of != n.o.Name || !n.holds.Load() {
		return
	}
	n.mu.Lock()
	before := n.asked[h.Node]
	if before.id == m.ID {
		n.mu.Unlock()
		return
	}
	if before.end != nil { // nobody listens any more
		before.end()
	}
	ctx, end := context.WithCancel(n.ctx)
	n.asked[h.Node] = asked{m.ID, end}
	n.mu.Unlock()
	n.tasks.Go(func() {
		for say(ctx, n.o.Order, n.o.Name, message{ID: m.ID}, nil) == nil { // what comes first may take long
			select {
			case <-ctx.Done():
			case <-time.After(deaf / 4):
			}
		}
	})
	n.tasks.Go(func() {
		defer end()
		n.giving.Lock()
		defer n.giving.Unlock()
		if ctx.Err() != nil {
			return
		}
		g := giving{ctx: ctx, order: n.o.Order, node: n.o.Name, id: m.ID}
		if err := g.give(n, strings.TrimSuffix(h.Node, says)); err != nil && ctx.Err() == nil {
			n.o.Log.Error("a copy of this node's files for another one failed", "error", err)
			_ = g.say(message{Error: "its files can't be copied, its log says why"}, nil)
		}
	})
}

// asked is the newest answer with copies to somebody.
type asked struct {
	id  string
	end context.CancelFunc
}

// A giving is an answer with copies.
type giving struct {
	ctx   context.Context
	order order.Order
	node  string
	id    string
	n     int
}

func (g *giving) say(m message, raw []byte) error {
	g.n++
	m.ID, m.N = g.id, g.n
	return say(g.ctx, g.order, g.node, m, raw)
}

// give gives all files to a node, for which the order is kept from here on.
func (g *giving) give(n *Node, to string) error {
	place, files, err := n.settle(g.ctx)
	if err != nil {
		return err
	}
	all, err := n.reported()
	if err != nil {
		return err
	}
	c, _ := n.store.Cluster()
	if r, known := all[to]; known && !r.Left && r.Identity == c.Identity {
		place = min(place, r.Place) // it may have a file that is whole, and only behind
	}
	if err := n.report(to, place, false); err != nil {
		return err
	}
	// The authority first: there are files of all profiles then of which something came before.
	if err := g.file(files[0]); err != nil {
		return err
	}
	if _, files, err = n.settle(g.ctx); err != nil {
		return err
	}
	for _, path := range files[1:] {
		if err := g.file(path); err != nil {
			return err
		}
	}
	return g.say(message{Done: true}, nil)
}

// file gives one.
func (g *giving) file(path string) error {
	m, err := journal.Member(path)
	if err != nil || m == nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pif-copy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := journal.Open(path, journal.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	copied := filepath.Join(dir, "copy.db")
	if err := errors.Join(s.Snapshot(g.ctx, copied), s.Close()); err != nil {
		return err
	}
	f, err := os.Open(copied)
	if err != nil {
		return err
	}
	defer f.Close()
	pieces := &cutter{size: pieceBytes, piece: func(raw []byte, ends bool) error {
		return g.say(message{Profile: m.Profile, Ends: ends}, raw)
	}}
	z := gzip.NewWriter(pieces)
	if _, err := io.Copy(z, f); err != nil {
		return err
	}
	return errors.Join(z.Close(), pieces.piece(pieces.rest, true))
}

// A cutter cuts what is written into pieces, all but the last.
type cutter struct {
	size  int
	rest  []byte
	piece func(raw []byte, ends bool) error
}

func (c *cutter) Write(p []byte) (int, error) {
	for c.rest = append(c.rest, p...); len(c.rest) > c.size; c.rest = c.rest[c.size:] {
		if err := c.piece(c.rest[:c.size], false); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
