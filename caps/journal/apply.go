package journal

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/lease"
)

// apply applies what is followed.
func (f *follower) apply() {
	for {
		var batch []placed
		select {
		case <-f.ctx.Done():
			return
		case p := <-f.in:
			batch = append(batch, p)
		}
		for size := len(batch[0].payload); size < applyBytes && len(batch) < 256; {
			select {
			case p := <-f.in:
				batch = append(batch, p)
				size += len(p.payload)
				continue
			default:
			}
			break
		}
		if !f.insist("written", func() error { return f.applyBatch(batch) }) {
			return
		}
	}
}

// insist does something until it is done, and reports whether it was before the end.
func (f *follower) insist(what string, do func() error) bool {
	for tries := 0; ; tries++ {
		err := do()
		if err == nil {
			return true
		}
		if f.ctx.Err() != nil {
			return false
		}
		if errors.Is(err, ErrDamaged) {
			_ = f.halt(ErrDamaged, "what the cluster decided can't be %s: %v"+byRepair, what, err)
			return false
		}
		if tries%10 == 0 {
			f.s.o.Log.Error("what the cluster decided can't be "+what, "path", f.s.path, "error", err)
		}
		select {
		case <-f.ctx.Done():
			return false
		case <-time.After(retry):
		}
	}
}

// A round is a batch on its way into the file.
type round struct {
	f         *follower
	conn      *sql.Conn
	is        state
	at        point
	proposers map[boot]proposer // those that the batch changes
	points    []point
	list      []*Event
	own       map[uint64][]*entry // by number, what this boot proposed
	ownLast   uint64
}

// applyBatch applies proposals in one transaction.
func (f *follower) applyBatch(batch []placed) error {
	w := f.s.writer
	decoded := make([]proposal, len(batch))
	size := int64(0)
	for i := range batch {
		p, err := decodeProposal(batch[i].payload)
		if err == nil {
			err = f.compare(&p)
		}
		if err != nil {
			return f.halt(ErrCluster, "at place %d: %v", batch[i].place, err)
		}
		if decoded[i] = p; p.profile == f.s.o.Profile {
			size += int64(len(p.content))
		}
	}
	// Before the file has them: who ends meanwhile hears of them again.
	for i := range decoded {
		if f.s.o.Heard != nil && decoded[i].profile != f.s.o.Profile && batch[i].place > f.heard {
			f.s.o.Heard(decoded[i].heard())
		}
	}
	f.heard = batch[len(batch)-1].place
	var a *round
	run := func() error {
		return w.hold(f.ctx, func(conn *sql.Conn) error {
			if err := w.fits(size); err != nil {
				return err
			}
			return transaction(&w.session, func() (err error) {
				a = &round{f: f, conn: conn, at: f.at, proposers: map[boot]proposer{}, own: map[uint64][]*entry{}}
				a.is = state{changed: f.changed, newest: map[string]uint64{}}
				if a.is.seq, a.is.hash, err = w.head(); err != nil {
					return err
				}
				if a.is.seq != f.at.seq || a.is.hash != f.at.hash {
					return f.halt(ErrCluster, "its file has the event %d that the cluster doesn't know of: another program has written it"+byRepair, a.is.seq)
				}
				for i := range batch {
					if err := a.proposal(&decoded[i]); err != nil {
						return err
					}
					a.at = point{batch[i].place, digestOf(a.at.digest, batch[i].payload), a.is.seq, a.is.hash, Hash{}}
					a.points = append(a.points, a.at)
				}
				if err := w.session.insert(a.list...); err != nil {
					return err
				}
				a.at.sum = hashOf(batch[len(batch)-1].payload)
				changed := f.lastOf()
				maps.Copy(changed, a.proposers)
				return f.save(conn, a.at, a.is.changed, changed)
			})
		})
	}
	if a = f.empty(batch, decoded); a == nil {
		if err := w.waitFor(f.ctx, size, func() {}, run); err != nil {
			return err
		}
	}
	if len(a.list) > 0 && f.s.o.Applied != nil && !f.insist("put in force", func() error { return f.s.o.Applied(a.list) }) {
		f.ahead = 0 // the file has it, and the node is closed or has stopped
		return nil
	}
	f.applied(a, a.conn != nil)
	return nil
}

// empty is a batch in which nothing has to be written now; nil: it has.
func (f *follower) empty(batch []placed, decoded []proposal) *round {
	if f.due.Swap(false) || f.ahead+len(batch) > maxAhead {
		return nil
	}
	a := &round{f: f, at: f.at, proposers: map[boot]proposer{}, own: map[uint64][]*entry{}}
	a.is = state{seq: f.at.seq, hash: f.at.hash, changed: f.changed}
	for i := range decoded {
		if p := &decoded[i]; p.profile == f.s.o.Profile && (len(p.content) > 0 || p.pieces > 1 || p.n == 1) || a.proposal(p) != nil {
			return nil // one whose number is 1 is of a new boot
		}
		a.at = point{batch[i].place, digestOf(a.at.digest, batch[i].payload), a.is.seq, a.is.hash, Hash{}}
		a.points = append(a.points, a.at)
	}
	a.at.sum = hashOf(batch[len(batch)-1].payload)
	return a
}

// applied has it known what is applied.
func (f *follower) applied(a *round, saved bool) {
	w := f.s.writer
	for _, e := range a.list {
		w.flight.end(e.Data)
	}
	f.mu.Lock()
	f.at, f.changed = a.at, a.is.changed
	for b, p := range a.proposers {
		f.proposers[b] = p
		f.unsaved[b] = true
	}
	f.ahead += len(a.points)
	if a.ownLast > 0 && lease.Since(f.missed) >= missEvery {
		f.missed = lease.Now()
		for _, peer := range f.peers {
			peer.Missed++
		}
	}
	if saved {
		clear(f.unsaved)
		f.ahead = 0
	}
	f.points = append(f.points, a.points...)
	if n := len(f.points); n > 2*maxPoints {
		f.points = append([]point{}, f.points[n-maxPoints:]...)
	}
	if x := f.waiting; x != nil && a.ownLast >= x.n {
		for i, got := range a.own[x.n] {
			x.entries[i].e.Seq, x.entries[i].behind = got.e.Seq, got.behind
		}
		close(x.applied)
		f.waiting = nil
	}
	f.mu.Unlock()
	if a.proposers[f.boot].fenced {
		_ = f.halt(ErrCluster, "the order has lost a proposal of this node that it had acknowledged")
	}
}

// proposal applies one.
func (a *round) proposal(p *proposal) error {
	f := a.f
	if p.profile != f.s.o.Profile {
		return nil
	}
	is, known := a.proposers[p.boot]
	if !known {
		is, known = f.proposers[p.boot]
	}
	switch {
	case is.fenced || p.n <= is.n:
		return nil // it is there already
	case p.base != f.base && len(f.proposers)+len(a.proposers) > 0:
		// The order's first proposal of a profile says to all with what it begins.
		f.s.o.Log.Error("the proposals of a node are left out: its file began with other events before it came into the cluster", "node", p.node, "profile", p.profile)
		a.proposers[p.boot] = proposer{node: p.node, n: p.n, fenced: true}
		return nil
	case p.base != f.base:
		return f.halt(ErrCluster, "the file of the node %s began with other events than this one's before they came into the cluster: move its own away, and it gets that one's"+byRepair, p.node)
	case p.n > is.n+1:
		f.s.o.Log.Error("proposals of a node are missing in the order", "node", p.node, "from", is.n+1, "to", p.n-1)
		is.node, is.fenced = p.node, true
		a.proposers[p.boot] = is
		return nil
	}
	a.proposers[p.boot] = proposer{node: p.node, n: p.n}
	if p.boot == f.boot {
		a.ownLast = p.n
	}
	if a.conn != nil && !known {
		// What an earlier boot of the node didn't end never will.
		if _, err := a.conn.ExecContext(bg, `DELETE FROM pieces WHERE boot IN (SELECT boot FROM proposers WHERE node = ?)`, p.node); err != nil {
			return err
		}
	}
	content := p.content
	if p.pieces > 1 {
		var err error
		if content, err = a.piece(p); content == nil {
			return err
		}
	}
	entries, err := decodeEntries(content)
	if err != nil {
		return f.halt(ErrCluster, "of the node %s: %v", p.node, err)
	}
	return a.entries(p, entries)
}

// piece keeps a piece of a content, and gives all of it where it is the last.
func (a *round) piece(p *proposal) (content []byte, err error) {
	if p.piece < p.pieces-1 {
		_, err := a.conn.ExecContext(bg, `INSERT OR IGNORE INTO pieces VALUES(?,?,?)`, p.boot[:], int64(p.piece), p.content)
		return nil, err
	}
	content = []byte{}
	n := uint64(0)
	err = each(a.conn, `SELECT bytes FROM pieces WHERE boot = ? ORDER BY i`, func(scan func(...any) error) error {
		var b []byte
		n++
		err := scan(&b)
		content = append(content, b...)
		return err
	}, p.boot[:])
	if err == nil && n != p.piece {
		err = a.f.halt(ErrCluster, "of the node %s: %v", p.node, errGarbled)
	}
	if err == nil {
		_, err = a.conn.ExecContext(bg, `DELETE FROM pieces WHERE boot = ?`, p.boot[:])
	}
	if err != nil {
		return nil, err
	}
	return append(content, p.content...), nil
}

// entries decides what becomes of a content.
func (a *round) entries(p *proposal, entries []*entry) error {
	before := len(a.list)
	for _, x := range entries {
		if x.blob != nil {
			if err := a.blob(x.blob); err != nil {
				return err
			}
			x.flush = true // it is no event
		}
		for _, name := range x.tools {
			if _, ok := a.is.newest[name]; ok {
				continue
			}
			var seq uint64
			err := a.conn.QueryRowContext(bg, `SELECT seq FROM newest WHERE tool = ?`, name).Scan(&seq)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			a.is.newest[name] = seq
		}
	}
	a.list = a.is.decide(entries, a.list)
	for _, e := range a.list[before:] {
		if name := e.Tool(); name != "" && e.Kind.Changes() {
			if _, err := a.conn.ExecContext(bg, `INSERT INTO newest VALUES(?,?) ON CONFLICT(tool) DO UPDATE SET seq = excluded.seq`, name, int64(e.Seq)); err != nil {
				return err
			}
		}
	}
	if p.boot == a.f.boot {
		a.own[p.n] = entries
	}
	return nil
}

// blob keeps bytes. The event that refers to them may come late.
func (a *round) blob(data []byte) error {
	hash := hashOf(data)
	used, err := a.f.s.putBlob(a.conn, hash, data)
	if err == nil {
		a.f.s.writer.flight.begin(hash, used, a.f.s.o.Now())
	}
	return err
}

// lastOf is the proposers of whom the file doesn't know the last.
func (f *follower) lastOf() map[boot]proposer {
	changed := make(map[boot]proposer, len(f.unsaved))
	for b := range f.unsaved {
		changed[b] = f.proposers[b]
	}
	return changed
}

// save writes how far the file is.
func (f *follower) save(conn *sql.Conn, at point, changed uint64, proposers map[boot]proposer) error {
	for b, p := range proposers {
		_, err := conn.ExecContext(bg, `INSERT INTO proposers VALUES(?,?,?,?) ON CONFLICT(boot) DO UPDATE SET n = excluded.n, fenced = excluded.fenced`, b[:], p.node, int64(p.n), p.fenced)
		if err != nil {
			return err
		}
	}
	return setCluster(conn, map[string]any{"place": int64(at.place), "digest": at.digest[:], "last": at.sum[:], "changed": int64(changed)})
}

// compare holds what a proposer had at a place against what was here.
func (f *follower) compare(p *proposal) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.boot == f.boot || p.profile == f.s.o.Profile && p.base != f.base || p.profile == messages {
		return nil
	}
	peer := f.peers[p.node]
	if peer == nil {
		peer = new(Peer)
		f.peers[p.node] = peer
	}
	peer.heard = time.Now()
	if p.profile == f.s.o.Profile {
		peer.Seen, peer.Place, peer.Missed = peer.heard, p.at.place, 0
	}
	i, found := slices.BinarySearchFunc(f.points, p.at.place, func(here point, place uint64) int { return cmp.Compare(here.place, place) })
	if p.at.place == 0 || !found && (i == 0 || i == len(f.points)) {
		return nil // it is the beginning, too old, or not applied here
	}
	here := &f.points[i] // or what comes next, where nothing is here at that place
	same := here.place == p.at.place && here.digest == p.at.digest && (p.profile != f.s.o.Profile || here.seq == p.at.seq && here.hash == p.at.hash)
	if !same && !peer.Differs {
		f.s.o.Log.Error("another node of the cluster has something else", "node", p.node, "profile", p.profile, "place", p.at.place,
			"event there", p.at.seq, "hash there", p.at.hash, "event here", here.seq, "hash here", here.hash)
	}
	peer.Differs = !same
	return f.outvoted(p, here)
}

// maxVote is how long what a node had counts.
const maxVote = 10 * time.Second

// outvoted says why this node stops where as many differ from it as are like it. The
// caller holds the lock.
func (f *follower) outvoted(p *proposal, here *point) error {
	differ, all := 0, 1
	for name, peer := range f.peers {
		if name == f.s.o.Node && !peer.Differs || time.Since(peer.heard) > maxVote {
			continue // an earlier boot of its own, or one that is gone
		}
		all++
		if peer.Differs {
			differ++
		}
	}
	if 2*differ < all {
		return nil
	}
	what := "events"
	if here.digest != p.at.digest {
		what = "proposals"
	}
	return fmt.Errorf("the node %s had other %s up to place %d: there event %d with the hash %s, here event %d with the hash %s"+byRepair, p.node, what, p.at.place, p.at.seq, p.at.hash, here.seq, here.hash)
}
