package node

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/lease"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// The order is rid of what the files of all nodes have: each reports how far it surely is,
// as a document of the cluster's authority.

const (
	// reports begins the names of those documents; a node's follows.
	reports = "node/"
	// maxAway is how long the order is kept for a node that doesn't report.
	maxAway = 7 * 24 * time.Hour
	// maxAuthority is how large the file of the authority may be, beyond what is in force:
	// each taking of a rate is in it.
	maxAuthority = 8 << 20
)

// A report is one.
type report struct {
	Identity string    `json:"order"`
	Place    uint64    `json:"place"` // up to which all files of the node are on its disk
	Time     time.Time `json:"time"`
	Left     bool      `json:"left,omitempty"` // it is no node any more
	// Comes says that it was given copies, for which the order is kept, and hasn't reported yet.
	Comes bool `json:"comes,omitempty"`
	// Given is what its operator gave it; nil: that isn't known.
	Given   map[string]string `json:"given,omitempty"`
	learned lease.Time        // when it was heard of here
}

// reported returns what the nodes reported, by name.
func (n *Node) reported() (map[string]report, error) {
	docs, _, err := n.documents()
	return reportedIn(docs), err
}

func reportedIn(docs map[string]document) map[string]report {
	all := map[string]report{}
	for name, d := range docs {
		var r report
		if name, ok := strings.CutPrefix(name, reports); ok && json.Unmarshal(d.Content, &r) == nil {
			r.learned = d.learned
			all[name] = r
		}
	}
	return all
}

// members are the nodes that this one hears of, and those that reported something, also that they leave. One that was
// given copies is none before it is heard: its operator may be refused to have it join.
func (n *Node) members(docs map[string]document) map[string]report {
	all := reportedIn(docs)
	c, _ := n.store.Cluster()
	maps.DeleteFunc(all, func(name string, r report) bool {
		_, heard := c.Peers[name]
		return r.Comes && !r.Left && !heard
	})
	for name := range c.Peers {
		if _, known := all[name]; !known && !strings.Contains(name, "/") {
			all[name] = report{}
		}
	}
	return all
}

// Report tells the others how far the files of this node are, or that it leaves.
func (n *Node) Report(ctx context.Context, left bool) error {
	place, _, err := n.settle(ctx)
	if err != nil {
		return err
	}
	return n.report(n.o.Name, place, left)
}

func (n *Node) report(node string, place uint64, left bool) error {
	c, _ := n.store.Cluster()
	r := report{Identity: c.Identity, Place: place, Time: time.Now().UTC().Truncate(time.Second), Left: left}
	docs, at, err := n.documents()
	if err != nil {
		return err
	}
	if before, known := reportedIn(docs)[node]; node == n.o.Name {
		r.Given = n.o.Given
	} else if !known || before.Left || before.Comes {
		r.Left, r.Comes = before.Left, true
	}
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	name := reports + node
	return n.write(name, docs[name].Version+1, at[name], content)
}

// unlike returns what a node was given otherwise than this one.
func (n *Node) unlike(r report) (list []string) {
	for _, what := range slices.Sorted(maps.Keys(n.o.Given)) {
		if r.Given != nil && r.Given[what] != n.o.Given[what] {
			list = append(list, what)
		}
	}
	return list
}

// tellUnlike warns of nodes that were given something else, once of each.
func (n *Node) tellUnlike(told map[string]string) {
	all, _ := n.reported()
	for name, r := range all {
		list := strings.Join(n.unlike(r), ", ")
		if !r.Left && list != told[name] && list != "" {
			n.o.Log.Warn("another node of the cluster was given something else than this one", "node", name, "unlike", list)
		}
		told[name] = list
	}
}

// settle has all files of the cluster that this machine has follow to the end of the order,
// those too that no server has opened, and be on the disk. It returns the place up to which
// they are, and where they are.
func (n *Node) settle(ctx context.Context) (place uint64, files []string, err error) {
	for range 100 {
		place, files, err = n.settleOnce(ctx)
		if !errors.Is(err, journal.ErrLocked) || ctx.Err() != nil {
			break
		}
		// A server opens or closes it just now.
		select {
		case <-ctx.Done():
		case <-time.After(beat):
		}
	}
	return place, files, err
}

func (n *Node) settleOnce(ctx context.Context) (place uint64, files []string, err error) {
	if place, err = n.store.Keep(ctx); err != nil {
		return 0, nil, err
	}
	m, err := journal.Member(n.store.Path())
	if err == nil {
		err = n.store.Barrier(ctx) // what the file has is heard of
	}
	if err == nil {
		err = n.hearAgain(ctx)
	}
	if err != nil {
		return 0, nil, err
	}
	defer func() {
		if err == nil && n.o.Paths != nil {
			err = n.writeOrigin(m)
		}
	}()
	open := map[string]bool{n.store.Path(): true}
	known := map[string]bool{}
	files = []string{n.store.Path()}
	n.mu.Lock()
	var stores []*journal.Store
	for s := range n.stores {
		if s != n.store {
			stores = append(stores, s)
		}
	}
	for profile := range n.profiles {
		known[profile] = true
	}
	n.mu.Unlock()
	for _, s := range stores {
		at, err := s.Keep(ctx)
		if errors.Is(err, journal.ErrClosed) && ctx.Err() == nil {
			continue // it is one of those below
		}
		if err != nil {
			return 0, nil, err
		}
		c, _ := s.Cluster()
		open[s.Path()], known[c.Profile] = true, false
		place, files = min(place, at), append(files, s.Path())
	}
	to, rest := place, map[string]string{} // paths, and profiles where they are known
	if n.o.Paths != nil {
		paths, err := n.o.Paths()
		if err != nil {
			return 0, nil, err
		}
		for _, path := range paths {
			rest[path] = ""
		}
		for profile, closed := range known {
			if !closed {
				continue
			}
			path, err := n.o.Path(profile)
			if err != nil {
				return 0, nil, err
			}
			rest[path] = profile
		}
	}
	c, _ := n.store.Cluster()
	for path, profile := range rest {
		if open[path] {
			continue
		}
		if _, err := os.Stat(path); err == nil {
			m, err := journal.Member(path)
			if err != nil {
				return 0, nil, err
			}
			if m == nil && profile == "" || m != nil && m.Identity != "" && m.Identity != c.Identity {
				continue // it isn't of this cluster
			}
			if m != nil {
				profile = m.Profile
			}
		}
		o := journal.Options{Log: n.o.Log}
		n.Join(&o, profile)
		at, err := journal.CatchUp(ctx, path, to, o)
		if err != nil {
			return 0, nil, err
		}
		place, files = min(place, at), append(files, path)
	}
	return place, files, nil
}

// hearAgain hears of the profiles of which something came since the files of all were made,
// before this process began.
func (n *Node) hearAgain(ctx context.Context) error {
	n.mu.Lock()
	from, to := n.origin.Place, n.unheard
	n.mu.Unlock()
	if from == 0 || from >= to || n.o.Paths == nil {
		return nil
	}
	err := n.o.Order.Follow(ctx, from+1, func(place uint64, p []byte) error {
		h, err := journal.Hear(p)
		n.mu.Lock()
		defer n.mu.Unlock()
		if err == nil && !h.IsMessage && h.Profile != authority && place <= to {
			n.profiles[h.Profile] = true
		}
		if err == nil && place >= to {
			n.unheard, err = 0, errDone
		}
		return err
	})
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// An origin is what a node remembers of where files that are new begin.
type origin struct {
	Identity string `json:"order"`
	journal.Point
}

func originFile(dir string) string { return filepath.Join(dir, "cluster", "origin.json") }

// Copied has files that are new begin where the authority is, in a state directory that has all
// files of the node of which it got copies: that node had given files to all profiles before.
func Copied(dir string) error {
	m, err := journal.Member(Authority(dir))
	if err != nil || m == nil {
		return err
	}
	return statefile.ReplaceJSON(originFile(dir), origin{m.Identity, m.Point})
}

// writeOrigin remembers how far the authority was when all profiles that it had heard of
// were given files.
func (n *Node) writeOrigin(m *journal.Membership) error {
	if err := statefile.ReplaceJSON(originFile(n.o.Dir), origin{m.Identity, m.Point}); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.origin = m.Point
	return nil
}

func (n *Node) readOrigin() error {
	o, err := statefile.Document[origin]{Path: originFile(n.o.Dir), Name: "where files begin"}.Read()
	if err != nil {
		return err
	}
	if c, _ := n.store.Cluster(); o.Identity == c.Identity {
		n.origin = o.Point
	}
	return nil
}

// trims has the order rid of what all have, again and again.
func (n *Node) trims() {
	told := map[string]string{}
	for {
		pause := n.o.Keep
		err := n.Report(n.ctx, false)
		if err == nil {
			n.tellUnlike(told)
			_, kept := n.store.Trim(n.ctx, journal.Limits{Size: maxAuthority}, false)
			err = errors.Join(n.trim(n.ctx), kept)
		}
		if err != nil && n.ctx.Err() == nil && n.Ready() == nil {
			pause = min(pause, time.Minute)
			n.o.Log.Warn("the cluster's order or its authority isn't rid of what is old", "error", err)
		}
		select {
		case <-n.ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// trim has the order forget what every node has. It is kept for one that is away for some
// days, and for one that lives and hasn't reported yet.
func (n *Node) trim(ctx context.Context) error {
	all, err := n.reported()
	if err != nil {
		return err
	}
	c, _ := n.store.Cluster()
	least := c.Place
	for name, r := range all {
		alive := n.Alive(name)
		switch {
		case r.Left && !r.Comes, !alive && time.Since(r.Time) > maxAway:
			continue
		case r.Identity != c.Identity:
			return nil // of an order that was lost; it is about to report
		}
		least = min(least, r.Place)
	}
	for name := range c.Peers {
		if _, known := all[name]; !known && !strings.Contains(name, "/") && n.Alive(name) {
			return nil
		}
	}
	return n.o.Order.Trim(ctx, least)
}
