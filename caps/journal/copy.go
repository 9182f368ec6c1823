package journal

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal/order"
)

// byRepair is what helps a node that has stopped.
const byRepair = "; end this server, and 'mcp-pif cluster repair' gives it what the cluster has"

// messages is the profile of what nodes tell one another by the order, which no file keeps.
const messages = "~messages"

// Message returns a proposal that tells other nodes something, and changes no file.
func Message(node string, content []byte) []byte {
	p := proposal{profile: messages, node: node, n: 1, pieces: 1, content: content}
	rand.Read(p.boot[:]) // never fails
	return p.encode()
}

// A Heard is what can be told of a proposal without applying it.
type Heard struct {
	Profile, Node string
	Anchor        // of the profile's file, as the proposer had it
	Message       []byte
	IsMessage     bool
}

func (p *proposal) heard() Heard {
	h := Heard{Profile: p.profile, Node: p.node, Anchor: Anchor{p.at.seq, p.at.hash}}
	if p.profile == messages {
		h.IsMessage, h.Message = true, p.content
	}
	return h
}

// Hear reads a proposal of an order.
func Hear(payload []byte) (Heard, error) {
	p, err := decodeProposal(payload)
	return p.heard(), err
}

// claims has the files of clusters that this process writes: two who apply one order to
// one file would be in each other's way.
var claims = struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}{held: map[string]chan struct{}{}}

// claimTimeout is how long a file is waited for that another part of this process has open.
const claimTimeout = 30 * time.Second

// claim waits until nobody has the file at a path, and has it until release is called; an
// error where somebody keeps it, or the caller doesn't wait.
func claim(path string, atOnce bool) (release func(), err error) {
	timeout := time.After(claimTimeout)
	if atOnce {
		timeout = time.After(0)
	}
	for {
		claims.mu.Lock()
		held, taken := claims.held[path]
		if !taken {
			ended := make(chan struct{})
			claims.held[path] = ended
			claims.mu.Unlock()
			return sync.OnceFunc(func() {
				claims.mu.Lock()
				delete(claims.held, path)
				claims.mu.Unlock()
				close(ended)
			}), nil
		}
		claims.mu.Unlock()
		select {
		case <-held:
		case <-timeout:
			return nil, &problem{path, ErrLocked, "this process has it open", nil}
		}
	}
}

// A Membership is what a file knows of the cluster that it is in.
type Membership struct {
	Profile, Identity string
	// Place is how far in the order the file surely is.
	Point
	// Anchor is its newest event.
	Anchor
	// Nodes are those that ever proposed something for it.
	Nodes []string

	base, last Hash
	changed    uint64
}

func readMembership(db querier) (m Membership, err error) {
	err = each(db, `SELECT name, CAST(value AS TEXT), value FROM cluster`, func(scan func(...any) error) (err error) {
		var name, text string
		var value []byte
		if err := scan(&name, &text, &value); err != nil {
			return err
		}
		switch name {
		case "profile":
			m.Profile = text
		case "identity":
			m.Identity = text
		case "base":
			copy(m.base[:], value)
		case "digest":
			copy(m.Digest[:], value)
		case "last":
			copy(m.last[:], value)
		case "place":
			_, err = fmt.Sscan(text, &m.Place)
		case "changed":
			_, err = fmt.Sscan(text, &m.changed)
		}
		return err
	})
	return m, err
}

// Member returns what the file at a path knows of its cluster; nil where it is in none.
func Member(path string) (_ *Membership, err error) {
	s, err := Open(path, Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var m Membership
	member := false
	err = s.reader(bg, func(conn *sql.Conn) error {
		format, err := s.recognizeOnce(conn)
		if member = format == clusterFormat; err != nil || !member {
			return err
		}
		if m, err = readMembership(conn); err != nil {
			return err
		}
		err = each(conn, `SELECT DISTINCT node FROM proposers`, func(scan func(...any) error) error {
			var node string
			err := scan(&node)
			if !strings.Contains(node, "/") {
				m.Nodes = append(m.Nodes, node)
			}
			return err
		})
		if err != nil {
			return err
		}
		last, err := lastEvent(conn)
		m.Anchor = Anchor{last.Seq, last.Hash}
		return err
	})
	if err != nil || !member {
		return nil, err
	}
	return &m, nil
}

// CatchUp has the file at a path have what is in its cluster's order up to a place, and
// returns the place up to which it has it on the disk; 0 where it is in no cluster. It
// proposes nothing. A file that isn't there is made where the options name its profile; one
// that this process has open is [ErrLocked].
func CatchUp(ctx context.Context, path string, to uint64, o Options) (place uint64, err error) {
	if o.Profile == "" {
		m, err := Member(path)
		if err != nil || m == nil {
			return 0, err
		}
		o.Profile = m.Profile
	}
	o.atOnce = true
	s, err := Open(path, o)
	if err != nil {
		return 0, err
	}
	f := s.writer.follower
	if err = f.reach(ctx, to); err == nil {
		err = f.close()
	}
	if err == nil {
		place, err = s.sync(ctx)
	}
	return place, errors.Join(err, s.Close())
}

// Keep has all that is in a cluster's order survive the machine in the file, and returns the
// place up to which that is.
func (s *Store) Keep(ctx context.Context) (place uint64, err error) {
	s.writer.follower.due.Store(true)
	if err := s.Barrier(ctx); err != nil {
		return 0, err
	}
	return s.sync(ctx)
}

// sync has what was written survive the machine, and returns the place up to which that is.
func (s *Store) sync(ctx context.Context) (place uint64, err error) {
	w := s.writer
	err = w.use(ctx, func(conn *sql.Conn) (err error) {
		if err := w.synchronous(true); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.synchronous(false)) }()
		return transaction(conn, func() error {
			return conn.QueryRowContext(bg, `UPDATE cluster SET value = value WHERE name = 'place' RETURNING CAST(CAST(value AS TEXT) AS INTEGER)`).Scan(&place)
		})
	})
	return place, err
}

// Snapshot writes the file as it is now to a path where nothing is.
func (s *Store) Snapshot(ctx context.Context, path string) error {
	db, err := s.connect()
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, path)
	return explain(s.path, errors.Join(err, db.Close()))
}

// A Point is a place of an order, and what all before it come to.
type Point struct {
	Place  uint64 `json:"place"`
	Digest Hash   `json:"digest"`
}

// A Beginning is where an order goes on that was made in place of another.
type Beginning struct {
	Identity string
	Place    uint64
}

// Adopt makes the copy of another node's file, which was verified, at its place, this
// machine's: with a key of its own, which signs what was dropped from it. With a beginning
// it follows the order of that.
func Adopt(path string, begins *Beginning) error {
	s, err := Open(path, Options{leaves: true})
	if err != nil {
		return err
	}
	err = s.writer.use(bg, func(conn *sql.Conn) error {
		return transaction(conn, func() error {
			if begins != nil {
				values := map[string]any{"identity": begins.Identity, "place": int64(begins.Place), "digest": make([]byte, len(Hash{})), "last": ""}
				if err := setCluster(conn, values); err != nil {
					return err
				}
			}
			if key, err := signingKey(path); err == nil && s.public.Equal(key.Public()) {
				return nil // it is this machine's
			}
			key, err := newSigningKey(path)
			if err != nil {
				return err
			}
			id := make([]byte, 16)
			rand.Read(id) // never fails
			s.id, s.public = hex.EncodeToString(id), key.Public().(ed25519.PublicKey)
			if err := s.resign(conn, key); err != nil {
				return err
			}
			_, err = conn.ExecContext(bg, `UPDATE meta SET value = CASE name WHEN 'id' THEN ? ELSE ? END WHERE name IN ('id','key')`,
				s.id, hex.EncodeToString(s.public))
			return err
		})
	})
	return errors.Join(err, s.Close())
}

// resign signs the checkpoint that there is as this store's.
func (s *Store) resign(conn *sql.Conn, key ed25519.PrivateKey) error {
	e, err := first(conn, Checkpoint)
	if err != nil || e.Seq == 0 {
		return err
	}
	c, err := ReadCut(e)
	if err != nil {
		return err
	}
	before := e.Hash
	c.Previous, c.Store, c.Key = &before, s.id, hex.EncodeToString(s.public)
	if err := c.sign(e, key); err != nil {
		return err
	}
	e.Hash = e.Seal()
	_, err = conn.ExecContext(bg, `UPDATE events SET hash = ?, data = ? WHERE seq = ?`, e.Hash[:], []byte(e.Data), int64(e.Seq))
	return err
}

// A Difference is how a file is unlike another one of the same profile.
type Difference struct {
	// Damage is what is wrong with the file itself; nil: nothing.
	Damage error
	// Common is the last event that both have, and Theirs the other's newest.
	Common, Theirs uint64
	// Extra are the events after it that only this one has, where the other should have
	// them; those of a damaged file aren't known.
	Extra []Event
}

// Compare compares the file at a path with another one, which must be whole.
func Compare(ctx context.Context, path, other string) (d Difference, err error) {
	theirs, dropped := map[uint64]Hash{}, uint64(0)
	before := func(s *Store, fn func(*Event)) error {
		return s.Each(ctx, Query{}, func(e *Event) error {
			if e.Kind == Checkpoint { // in the place of an event of that hash
				e.Hash = e.Prev
			}
			fn(e)
			return nil
		})
	}
	err = open(other, func(s *Store) error {
		return before(s, func(e *Event) {
			theirs[e.Seq], d.Theirs = e.Hash, max(d.Theirs, e.Seq)
			if e.Kind == Checkpoint {
				dropped = e.Seq
			}
		})
	})
	if err != nil {
		return d, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		d.Damage = err
		return d, nil
	}
	there, err := Member(other)
	if err != nil || there == nil {
		return d, errors.Join(err, ErrCluster)
	}
	here, err := Member(path)
	if err != nil || here == nil {
		d.Damage = errors.Join(err, ErrCluster)
		return d, nil
	}
	var list []Event
	d.Damage = open(path, func(s *Store) error {
		if _, err := s.Verify(ctx); err != nil {
			return err
		}
		return before(s, func(e *Event) {
			if theirs[e.Seq] == e.Hash {
				d.Common, list = e.Seq, nil
			} else if e.Seq >= dropped {
				list = append(list, *e)
			}
		})
	})
	if d.Common < d.Theirs || here.Identity != there.Identity || here.Place <= there.Place {
		d.Extra = slices.Clip(list)
	}
	return d, ctx.Err()
}

// open opens a file to read it.
func open(path string, do func(*Store) error) error {
	s, err := Open(path, Options{ReadOnly: true})
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// Follows reports whether an order has what a file had at its place, and still all that
// comes after it: [order.ErrEnds] where it has lost its end, even if others have filled that
// again, and [order.ErrTrimmed] where it begins later.
func (m *Membership) Follows(ctx context.Context, o order.Order) error {
	wait := time.Minute
	if m.last == (Hash{}) { // only what comes next tells, and it may be yet to come
		wait = 3 * time.Second
	}
	limit, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	seen := order.Seen{Place: m.Place, Sum: m.last}
	ends := make(chan error, 2)
	if m.last != (Hash{}) {
		go func() {
			ends <- o.Follow(limit, seen.From(0), func(place uint64, p []byte) error {
				_, err := seen.Check(place, p)
				return cmp.Or(err, errFound)
			})
		}()
	}
	// Who follows from the place waits where the order ends right before it; who follows from
	// the next one is told.
	go func() {
		ends <- o.Follow(limit, m.Place+1, func(uint64, []byte) error {
			if m.last != (Hash{}) {
				<-limit.Done()
			}
			return errFound
		})
	}()
	err := <-ends
	if errors.Is(err, errFound) || m.last == (Hash{}) && ctx.Err() == nil && limit.Err() != nil {
		return nil
	}
	return err
}

var errFound = errors.New("found")
