package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
)

// An offer is what a node has whose order is lost.
type offer struct {
	Node    string    `json:"node"`
	Files   []offered `json:"files"`
	Members []string  `json:"members"` // that it knows of
	Without []string  `json:"without"` // that its operator leaves out
}

// An offered is a file of one.
type offered struct {
	Profile string `json:"profile"`
	journal.Anchor
	Damaged bool `json:"damaged,omitempty"`
}

// AuthorityProfile is that of the cluster's authority.
const AuthorityProfile = authority

// Authority is where the file of the cluster's authority is in a state directory.
func Authority(dir string) string { return filepath.Join(dir, "cluster", "authority.db") }

// offers says what a node has.
func offers(ctx context.Context, name string, files map[string]string, without []string) (offer, error) {
	o := offer{Node: name, Members: []string{name}, Without: without}
	for _, profile := range slices.Sorted(maps.Keys(files)) {
		f := offered{Profile: profile}
		if err := check(ctx, files[profile], nil); err != nil {
			f.Damaged = true
		} else if m, err := journal.Member(files[profile]); err != nil || m == nil {
			f.Damaged = true
		} else if f.Anchor = m.Anchor; profile == authority {
			left, err := whoLeft(files[profile])
			if err != nil {
				return o, err
			}
			for _, node := range m.Nodes {
				if !left[node] && node != name {
					o.Members = append(o.Members, node)
				}
			}
		}
		if o.Files = append(o.Files, f); ctx.Err() != nil {
			return o, ctx.Err()
		}
	}
	return o, nil
}

// whoLeft are those who said so.
func whoLeft(path string) (left map[string]bool, err error) {
	s, err := journal.Open(path, journal.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	docs, _, err := recorded(s)
	left = map[string]bool{}
	for name, r := range reportedIn(docs) {
		left[name] = r.Left
	}
	return left, errors.Join(err, s.Close())
}

// A Restart is a cluster that begins anew in another order.
type Restart struct {
	Begins journal.Beginning
	// From is whose file is taken, by profile, and Copies those that aren't this node's.
	From   map[string]string
	Copies map[string]string
	// Damaged are the profiles of which no node has a file that is whole.
	Damaged []string
}

// ErrRuns occurs when a cluster runs in an order that was to be made one.
var ErrRuns = errors.New("the order has a cluster already: start the server of another node, and repair this one then")

// Begin begins a cluster anew whose order is lost, in an empty one: of each profile with the
// longest file that is whole. It waits until all members, but those left out, have offered
// what they have; waits is called with those that haven't.
func Begin(ctx context.Context, o order.Order, name string, files map[string]string, without []string, dir string, waits func(missing []string)) (r Restart, err error) {
	mine, err := offers(ctx, name, files, without)
	if err != nil {
		return r, err
	}
	if r.Begins.Identity, err = o.Identity(ctx); err != nil {
		return r, err
	}
	id := fmt.Sprintf("%s-%d", name, time.Now().UnixNano())
	if err := say(ctx, o, name, message{ID: id, Offer: &mine}, nil); err != nil {
		return r, err
	}
	all := map[string]*offer{}
	c := collecting{dir: dir, files: map[string]string{}}
	defer func() { err = errors.Join(err, c.close()) }()
	r.Copies = c.files
	done := func() bool {
		for profile, from := range r.From {
			if _, have := c.files[profile]; !have && from != name {
				return false
			}
		}
		return true
	}
	gave := make(chan error, 1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err = o.Follow(ctx, 0, func(place uint64, p []byte) error {
		h, err := journal.Hear(p)
		if err != nil {
			return err
		}
		m, raw, ok := readMessage(h.Message)
		switch {
		case !h.IsMessage && r.From == nil && !strings.Contains(h.Node, "/"):
			return ErrRuns
		case !ok:
			return nil
		case r.From != nil:
			// The pieces of a file come from its one giver, and say whose they are.
			if r.From[m.Profile] == strings.TrimSuffix(h.Node, says) && h.Node != name+says {
				if err := c.take(m, raw); err != nil {
					return err
				}
			}
		case m.Offer != nil:
			all[m.Offer.Node] = m.Offer
			if missing := absent(all); len(missing) > 0 {
				waits(missing)
				return nil
			}
			r.choose(all)
			r.Begins.Place = place
			go func() {
				err := give(ctx, o, name, r.From, files)
				if gave <- err; err != nil {
					cancel(err)
				}
			}()
		default:
			return nil
		}
		if done() {
			return errDone
		}
		return nil
	})
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if !errors.Is(err, errDone) {
		return r, err
	}
	if err := <-gave; err != nil {
		return r, err
	}
	for profile, path := range r.Copies {
		if err := check(ctx, path, nil); err != nil {
			return r, fmt.Errorf("the copy of the profile %s that the node %s gave: %w", profile, r.From[profile], err)
		}
	}
	return r, nil
}

// absent are the members that offered nothing and aren't left out.
func absent(all map[string]*offer) (names []string) {
	for _, o := range all {
		for _, member := range o.Members {
			without := func(o *offer) bool { return slices.Contains(o.Without, member) }
			if all[member] == nil && !slices.ContainsFunc(slices.Collect(maps.Values(all)), without) {
				names = append(names, member)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// choose decides whose file is taken.
func (r *Restart) choose(all map[string]*offer) {
	r.From = map[string]string{}
	best := map[string]uint64{}
	damaged := map[string]bool{}
	for _, node := range slices.Sorted(maps.Keys(all)) {
		for _, f := range all[node].Files {
			if f.Damaged {
				damaged[f.Profile] = true
			} else if r.From[f.Profile] == "" || f.Seq > best[f.Profile] {
				r.From[f.Profile], best[f.Profile] = node, f.Seq
			}
		}
	}
	for profile := range damaged {
		if r.From[profile] == "" {
			r.Damaged = append(r.Damaged, profile)
		}
	}
	slices.Sort(r.Damaged)
}

// give gives the files that others take from this node.
func give(ctx context.Context, o order.Order, name string, from, files map[string]string) error {
	g := giving{ctx: ctx, order: o, node: name, id: fmt.Sprintf("%s-%d", name, time.Now().UnixNano())}
	for profile, giver := range from {
		if giver != name {
			continue
		}
		if err := g.file(files[profile]); err != nil {
			return err
		}
	}
	return nil
}

// A collecting puts the pieces of files together.
type collecting struct {
	dir   string
	files map[string]string // what is whole, by profile
	parts map[string]*part  // by who gives
	n     int
}

// A part is a file of which not all pieces came yet.
type part struct {
	file *os.File
	last int
}

// take takes a piece; one that came before, or of a file that is whole, is left out, and so is
// what only says that the giver is at it.
func (c *collecting) take(m message, raw []byte) error {
	if m.Profile == "" || c.files[m.Profile] != "" {
		return nil
	}
	key := m.ID + "/" + m.Profile
	p := c.parts[key]
	if p == nil {
		c.n++
		file, err := os.OpenFile(filepath.Join(c.dir, fmt.Sprint(c.n, ".gz")), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if c.parts == nil {
			c.parts = map[string]*part{}
		}
		p = &part{file, m.N - 1}
		c.parts[key] = p
	}
	switch {
	case m.N <= p.last:
		return nil
	case m.N != p.last+1:
		return errors.New("the order lost a piece of a copy")
	}
	p.last = m.N
	if _, err := p.file.Write(raw); err != nil || !m.Ends {
		return err
	}
	path := strings.TrimSuffix(p.file.Name(), ".gz") + ".db"
	err := errors.Join(unzip(p.file, path), p.file.Close(), os.Remove(p.file.Name()))
	delete(c.parts, key)
	c.files[m.Profile] = path
	return err
}

func (c *collecting) close() (err error) {
	for _, p := range c.parts {
		err = errors.Join(err, p.file.Close())
	}
	return err
}

// Install puts a copy in the place of a file, which is kept beside it. The copy is this machine's before that, with its key.
func Install(path, copied string, begins *journal.Beginning) (before string, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	switch key, err := os.ReadFile(path + ".key"); {
	case err == nil:
		if err := os.WriteFile(copied+".key", key, 0o600); err != nil {
			return "", err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if err := journal.Adopt(copied, begins); err != nil {
		return "", fmt.Errorf("the copy for %s: %w", path, err)
	}
	if _, err := os.Lstat(path); err == nil {
		for n := 1; ; n++ {
			before = fmt.Sprintf("%s.before-repair-%d", path, n)
			if _, err := os.Lstat(before); errors.Is(err, fs.ErrNotExist) {
				break
			}
		}
	}
	for _, end := range []string{"-wal", "-shm", ""} { // a log that stays would be applied to the copy
		if err := os.Rename(path+end, before+end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return before, err
		}
	}
	for _, end := range []string{".key", ""} {
		if err := os.Rename(copied+end, path+end); err != nil {
			return before, err
		}
	}
	return before, nil
}
