package journal

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/lease"
)

// A proposer is what is known of a boot.
type proposer struct {
	node string
	n    uint64 // the last of its proposals
	// fenced is set where proposals of it are missing: nothing more of it is applied.
	fenced bool
}

// A follower applies the proposals of a cluster's order to the file of one profile, in
// their order. All that it does to the file is a function of the file and the proposals:
// no clock, no policy. So the files of all nodes have the same events.
//
// It doesn't believe the order. Each proposal tells how far its proposer was and what it
// had there; where that differs from what was here at that place, an order lost
// something, or one of the files isn't what it was, and the node stops.
type follower struct {
	s     *Store
	order order.Order
	boot  boot
	base  Hash
	ctx   context.Context
	end   context.CancelFunc
	tasks sync.WaitGroup
	in    chan placed
	due   atomic.Bool // the file is to have its place with the next batch
	heard uint64      // place up to which the store's owner was told; the applier's
	// identified is closed when the order is known to be the one of the file.
	identified chan struct{}

	mu        sync.Mutex
	at        point
	changed   uint64
	proposers map[boot]proposer
	unsaved   map[boot]bool // proposers of whom the file doesn't know the last
	ahead     int           // proposals of which it doesn't
	points    []point       // the last ones
	peers     map[string]*Peer
	identity  string
	missed    lease.Time // when the others missed one last; see [Peer]
	fresh     lease.Time // when the last of its own proposals was proposed that came back
	waiting   *waiting
	stopped   error
	stopping  chan struct{} // closed when it has
	begun     time.Time     // when it had read how far the file is
	next      uint64        // number of the last proposal; the writer's
	gaveUp    bool          // on that one, while the store is being closed; the writer's
}

// A placed is a proposal at its place.
type placed struct {
	place   uint64
	payload []byte
}

// A waiting is the proposal of this boot that is under way.
type waiting struct {
	n       uint64
	entries []*entry // with the outcomes, when it is applied
	applied chan struct{}
}

// A Peer is another node, as its last proposals show it.
type Peer struct {
	// Seen is when the last one of this profile came, and Place what it had applied then.
	Seen    time.Time
	Place   uint64
	Differs bool // its order or its events aren't those of this node

	// Missed is how many proposals of this node came back since, of those that come at once one.
	Missed int

	heard time.Time // when the last one of any profile came
}

const (
	maxPoints  = 4096 // places that are held against what others had there
	maxAhead   = 1024 // proposals, most of other profiles, until the file has their place
	applyBytes = 4 << 20
	// missEvery is less than a node's heartbeats are apart.
	missEvery = 250 * time.Millisecond
)

// clusterLayout is the tables that a file of a cluster has besides.
var clusterLayout = []string{
	`CREATE TABLE cluster(name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT`,
	`CREATE TABLE proposers(boot BLOB PRIMARY KEY, node TEXT NOT NULL, n INTEGER NOT NULL, fenced INTEGER NOT NULL) STRICT`,
	`CREATE TABLE pieces(boot BLOB NOT NULL, i INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY(boot, i)) STRICT`,
	`CREATE TABLE newest(tool TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT`,
}

// toCluster brings a file of the second format into a cluster.
func (s *Store) toCluster(conn *sql.Conn) error {
	return transaction(conn, func() error {
		format, err := s.recognize(conn)
		if err != nil || format == clusterFormat && !s.o.NewOrder {
			return err
		}
		base, err := lastEvent(conn)
		if err != nil {
			return err
		}
		if format == clusterFormat {
			if err := outOfCluster(conn); err != nil {
				return err
			}
		}
		for _, sql := range append(slices.Clone(clusterLayout),
			`INSERT INTO newest SELECT `+toolName+`, max(seq) FROM events`+byTool+` WHERE `+aboutTools+` AND +kind <> 'tool.refused' AND `+toolName+` IS NOT NULL GROUP BY 1`,
			fmt.Sprintf(`PRAGMA user_version=%d`, clusterFormat)) {
			if _, err := conn.ExecContext(bg, sql); err != nil {
				return err
			}
		}
		var changed uint64
		if err := conn.QueryRowContext(bg, newestChange).Scan(&changed); err != nil {
			return err
		}
		return setCluster(conn, map[string]any{
			"profile": s.o.Profile, "identity": "", "base": base.Hash[:], "place": int64(s.o.Begins.Place), "digest": s.o.Begins.Digest[:], "changed": int64(changed),
		})
	})
}

// Leave takes the file of a store out of its cluster, and reports whether it was in one.
// Nobody may use it meanwhile.
func Leave(path string) (was bool, err error) {
	s, err := Open(path, Options{leaves: true})
	if err != nil {
		return false, err
	}
	err = s.writer.use(bg, func(conn *sql.Conn) error {
		return transaction(conn, func() error {
			format, err := s.recognize(conn)
			if was = format == clusterFormat; err != nil || !was {
				return err
			}
			return outOfCluster(conn)
		})
	})
	return was, errors.Join(err, s.Close())
}

// outOfCluster takes a file out of its cluster.
func outOfCluster(conn *sql.Conn) error {
	for _, sql := range []string{`DROP TABLE cluster`, `DROP TABLE proposers`, `DROP TABLE pieces`, `DROP TABLE newest`, fmt.Sprintf(`PRAGMA user_version=%d`, Format)} {
		if _, err := conn.ExecContext(bg, sql); err != nil {
			return err
		}
	}
	return nil
}

func setCluster(conn *sql.Conn, values map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		if n, ok := v.(int64); ok {
			v = fmt.Append(nil, n)
		} else if text, ok := v.(string); ok {
			v = []byte(text)
		}
		if _, err := conn.ExecContext(bg, `INSERT INTO cluster VALUES(?,?) ON CONFLICT(name) DO UPDATE SET value = excluded.value`, name, v); err != nil {
			return err
		}
	}
	return nil
}

// newFollower reads how far the file is.
func newFollower(s *Store, conn *sql.Conn) (*follower, error) {
	f := &follower{
		s: s, order: s.o.Order, in: make(chan placed, 16), identified: make(chan struct{}), stopping: make(chan struct{}),
		proposers: map[boot]proposer{}, unsaved: map[boot]bool{}, peers: map[string]*Peer{},
	}
	rand.Read(f.boot[:]) // never fails
	f.ctx, f.end = context.WithCancel(bg)
	file, err := readMembership(conn)
	f.identity, f.base, f.changed, f.at = file.Identity, file.base, file.changed, point{place: file.Place, digest: file.Digest, sum: file.last}
	if err == nil && file.Profile != s.o.Profile {
		err = &problem{s.path, ErrCluster, fmt.Sprintf("it has the profile %q of its cluster, not %q", file.Profile, s.o.Profile), nil}
	}
	if err == nil {
		err = each(conn, `SELECT boot, node, n, fenced FROM proposers`, func(scan func(...any) error) error {
			var b []byte
			var p proposer
			if err := scan(&b, &p.node, &p.n, &p.fenced); err != nil {
				return err
			}
			if len(b) != len(boot{}) {
				return &problem{s.path, ErrCluster, "a proposer in it has no boot: the file is damaged" + byRepair, nil}
			}
			f.proposers[boot(b)] = p
			return nil
		})
	}
	if err != nil {
		return nil, err
	}
	f.at.seq, f.at.hash, err = s.writer.head()
	f.points, f.begun = []point{f.at}, time.Now()
	return f, err
}

// start begins to follow.
func (f *follower) start() {
	f.tasks.Go(f.follow)
	f.tasks.Go(f.apply)
}

// close ends it after the writer, and writes how far it is.
func (f *follower) close() error {
	f.end()
	f.tasks.Wait()
	if f.stopped != nil || f.ahead == 0 {
		return nil
	}
	err := f.s.writer.hold(bg, func(conn *sql.Conn) error {
		return transaction(conn, func() error { return f.save(conn, f.at, f.changed, f.lastOf()) })
	})
	if err == nil {
		f.ahead = 0
	}
	return err
}

// reach waits until a place is applied, or the order hasn't gone on for long.
func (f *follower) reach(ctx context.Context, place uint64) error {
	w := f.s.writer
	tick, identified := time.NewTicker(5*time.Millisecond), f.identified
	defer tick.Stop()
	moved, at := time.Now(), f.point().place
	for identified != nil || at < place {
		select {
		case <-identified:
			identified = nil
		case <-f.stopping:
			return f.stopped
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if now := f.point().place; now != at {
			moved, at = time.Now(), now
		} else if time.Since(moved) > w.o.Patience {
			return w.errSilent()
		}
	}
	return nil
}

// halt stops the node, for good.
func (f *follower) halt(class error, format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped == nil {
		f.stopped = &problem{f.s.path, class, "this node has stopped: " + fmt.Sprintf(format, args...), nil}
		f.s.o.Log.Error("this node of the cluster stops serving", "profile", f.s.o.Profile, "error", f.stopped)
		close(f.stopping)
		f.end()
	}
	return f.stopped
}

// follow takes what is in the order, and puts it where it is applied.
func (f *follower) follow() {
	at := f.point()
	last, seen := at.place, order.Seen{}
	if at.sum != (Hash{}) {
		seen = order.Seen{Place: last, Sum: at.sum}
	}
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := f.identify()
		if err == nil {
			err = f.order.Follow(f.ctx, seen.From(last+1), func(place uint64, p []byte) error {
				pause = 50 * time.Millisecond
				if isNew, err := seen.Check(place, p); err != nil || !isNew {
					return err
				}
				select {
				case f.in <- placed{place, p}:
					last = place
					return nil
				case <-f.ctx.Done():
					return f.ctx.Err()
				}
			})
		}
		switch {
		case f.ctx.Err() != nil:
			return
		case errors.Is(err, order.ErrTrimmed):
			f.halt(ErrCluster, "its file is at place %d, and the order no longer has what comes next"+byRepair, last)
			return
		case errors.Is(err, order.ErrEnds):
			f.halt(ErrCluster, "its file is at place %d, and %v"+byRepair, last, err)
			return
		case errors.Is(err, order.ErrOther):
			f.halt(ErrCluster, "the order is another than the one that its file followed"+byRepair)
			return
		}
		f.s.o.Log.Warn("the cluster's order can't be followed", "profile", f.s.o.Profile, "error", err)
		select {
		case <-f.ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// identify makes sure that the order is the one of the file.
func (f *follower) identify() error {
	select {
	case <-f.identified:
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
	defer cancel()
	identity, err := f.order.Identity(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	known := f.identity
	f.mu.Unlock()
	switch known {
	case "":
		err = f.s.writer.hold(f.ctx, func(conn *sql.Conn) error { return setCluster(conn, map[string]any{"identity": identity}) })
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.identity = identity
		f.mu.Unlock()
	case identity:
	default:
		return f.halt(ErrCluster, "the order is %s, and its file followed %s: it is another order, or one that was made anew"+byRepair, identity, known)
	}
	close(f.identified)
	return nil
}

// point returns how far it is.
func (f *follower) point() point {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

// Cluster is a store's place in its cluster.
type Cluster struct {
	Profile, Node, Identity string
	Place, Seq              uint64
	Hash                    Hash
	// Fresh is when the last proposal of this node was proposed that has come back: what
	// was in the order then is applied. 0 where none has.
	Fresh lease.Time
	// Stopped is why it has stopped for good; nil: it hasn't.
	Stopped error
	Peers   map[string]Peer
}

// Cluster returns the store's place in its cluster; false where it is in none.
func (s *Store) Cluster() (Cluster, bool) {
	if s.writer == nil || s.writer.follower == nil {
		return Cluster{}, false
	}
	f := s.writer.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	c := Cluster{Profile: s.o.Profile, Node: s.o.Node, Identity: f.identity, Place: f.at.place, Seq: f.at.seq, Hash: f.at.hash, Fresh: f.fresh, Stopped: f.stopped, Peers: map[string]Peer{}}
	for name, p := range f.peers {
		c.Peers[name] = *p
	}
	return c, true
}

// Fresh waits until the store has all that was in its cluster's order less than
// [lease.Length] ago, and gives when that was; 0 where it is in no cluster.
func (s *Store) Fresh(ctx context.Context) (lease.Time, error) {
	for {
		if c, in := s.Cluster(); !in || c.Fresh != 0 && !c.Fresh.Add(lease.Length).Over() {
			return c.Fresh, nil
		}
		if err := s.Barrier(ctx); err != nil {
			return 0, err
		}
	}
}

// Silent returns how long ago the last proposal came that another node, or this one before it was started again, made
// for this profile; it is at most how long ago the store was opened. 0 where the store is in no cluster.
func (s *Store) Silent(node string) time.Duration {
	if s.writer == nil || s.writer.follower == nil {
		return 0
	}
	f := s.writer.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.begun
	if p := f.peers[node]; p != nil && p.Seen.After(last) {
		last = p.Seen
	}
	return time.Since(last)
}

// Barrier waits until all is applied that was in the order when it was called. Where the
// store is in no cluster there is nothing to wait for.
func (s *Store) Barrier(ctx context.Context) error {
	if s.writer == nil || s.writer.follower == nil {
		return nil
	}
	x := &entry{barrier: true, stage: Written, done: make(chan outcome, 1)}
	if err := s.writer.push(x); err != nil {
		return err
	}
	select {
	case got := <-x.done:
		return got.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func hashOf(data []byte) Hash { return sha256.Sum256(data) }

// digestOf continues a digest by a proposal.
func digestOf(before Hash, payload []byte) (h Hash) {
	sum := sha256.New()
	sum.Write(before[:])
	sum.Write(payload)
	sum.Sum(h[:0])
	return h
}
