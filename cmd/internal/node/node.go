// Package node makes a server a node of a cluster: several servers, each with its own
// files, that have one registry, one journal and one authority by an order of proposals.
//
// It decides when a node may act: only while a heartbeat of its own, proposed less than a
// second ago by a clock that goes on while the machine sleeps, has come back applied. What
// is revoked or approved comes by the same order and holds here before a heartbeat that
// comes after it is heard of, so that what holds there holds here, or nothing is begun. It
// keeps the files of the operator's decisions (which [statefile.Change] changes) as the
// cluster's journal of them, the profile ~authority, has them, and listens on a socket for
// the commands of this machine.
//
// It refuses to act where the order is out of reach, and ends for good where a store says
// that the order or a file isn't what it was. How proposals are applied is package
// journal; what an order is, package order.
package node

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/lease"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

const (
	// authority is the profile of what the operator decided.
	authority = "~authority"
	// Lease is how long a node may act after it proposed a heartbeat that came back.
	Lease = lease.Length
	beat  = 300 * time.Millisecond
	// maxSilence is how long a node without a majority still counts as ready, and a write
	// waits for one.
	maxSilence = 15 * time.Second
	// reach is how long a change waits for the other nodes: a node that is silent has no
	// lease any more then.
	reach = Lease + beat
)

// maxSocket is how long the path of a socket may be on any system.
const maxSocket = 100

// files are those that are the cluster's, besides those of profiles: see shared.
var files = []string{"revoked.json", "consent.json"}

// kept are the files of what the model of a profile was shown, and of its schedules, by their
// names in the state directory; and that of what folders hold.
var kept = []string{"profiles/*/flow.json", "profiles/*/tasks/schedules.json", "flow.json"}

// isKept reports whether a file is such a one.
func isKept(name string) bool {
	return slices.ContainsFunc(kept, func(pattern string) bool {
		is, err := path.Match(pattern, name)
		return is && err == nil
	})
}

// shared reports whether a file of the state directory is the cluster's.
func shared(name string) bool { return slices.Contains(files, name) || isKept(name) }

// Options is what a node is made from.
type Options struct {
	Order order.Order // the caller's to close
	Name  string
	Dir   string // the state directory
	Log   *slog.Logger
	// Applied is called after a file of the operator's decisions was changed, and is over
	// when the change holds in this process. On an error it is called again, and nothing acts meanwhile.
	Applied func() error
	// Own is set where the order ends with this process: the files on this machine are
	// what holds.
	Own bool
	// Config is what the state directory says of the cluster; its Socket is the node's.
	Config statefile.Cluster
	// Paths finds the files of profiles that this machine has, and Path where that of a
	// profile is; without them there are those that are open.
	Paths func() ([]string, error)
	Path  func(profile string) (string, error)
	// Given are hashes of what the operator gave this machine, by what it is: that of all
	// nodes should be the same.
	Given map[string]string
	// Keep is how often the order is rid of what all nodes have.
	Keep time.Duration
}

// A Node is one of a cluster. It is safe for concurrent use.
type Node struct {
	o       Options
	store   *journal.Store
	ctx     context.Context
	end     context.CancelFunc
	tasks   sync.WaitGroup
	server  http.Server
	sockets string      // the folder of the socket
	begun   time.Time   // when it had what the cluster decided until then
	holds   atomic.Bool // what comes is put in force

	projecting sync.Mutex        // held until what is projected holds, which may take as long as a write
	projected  map[string]uint64 // event of the authority's journal that each file is

	keeping    sync.Mutex // the file of ended sessions
	endedLines int        // of it

	giving sync.Mutex    // a copy
	hurry  chan struct{} // something was decided that others wait for

	mu       sync.Mutex
	stores   map[*journal.Store]bool
	profiles map[string]bool     // of which something came in the order
	unheard  uint64              // place up to which some may have come before this process
	origin   journal.Point       // up to which nothing came of a profile that has no file here
	stopped  error               // of a store that is closed
	ended    ends                // sessions
	docs     map[string]document // of the cluster's authority
	at       map[string]uint64   // the event that each is
	pools    map[string]*pool    // of rates
	asked    map[string]asked    // for copies, by whom
}

// Open makes a node, which beats until it is closed. It returns when it has what the
// cluster decided until then, or the context ends.
func Open(ctx context.Context, o Options) (_ *Node, err error) {
	n := &Node{o: o, stores: map[*journal.Store]bool{}, profiles: map[string]bool{}, ended: ends{keys: map[string]bool{}, of: map[string][]string{}}, projected: map[string]uint64{}, docs: map[string]document{}, at: map[string]uint64{}, pools: map[string]*pool{}, asked: map[string]asked{}, hurry: make(chan struct{}, 1)}
	if n.o.Applied == nil {
		n.o.Applied = func() error { return nil }
	}
	n.ctx, n.end = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	dir := filepath.Join(o.Dir, "cluster")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := n.readEnded(); err != nil {
		return nil, err
	}
	options := journal.Options{Log: o.Log}
	n.Join(&options, authority)
	options.Heard = n.hears
	options.Applied = func(events []*journal.Event) error {
		if !n.holds.Load() {
			return nil
		}
		docs, at := map[string]document{}, map[string]uint64{}
		for _, e := range events {
			if err := read(docs, at, e); err != nil {
				return err
			}
		}
		n.learn(docs, at)
		if !slices.ContainsFunc(slices.Collect(maps.Keys(docs)), shared) {
			return nil
		}
		select {
		case n.hurry <- struct{}{}:
		default:
		}
		return n.project(docs, at)
	}
	if n.store, err = journal.Open(filepath.Join(dir, "authority.db"), options); err != nil {
		return nil, err
	}
	n.stores[n.store] = true
	c, _ := n.store.Cluster()
	n.unheard = c.Place
	if err := n.store.Barrier(ctx); err != nil {
		return nil, err
	}
	if err := n.readOrigin(); err != nil {
		return nil, err
	}
	n.begun = time.Now()
	if err := errors.Join(n.begin(), n.agree()); err != nil {
		return nil, err
	}
	if err := n.listen(); err != nil {
		return nil, err
	}
	n.tasks.Go(n.beats)
	if n.o.Keep > 0 && !n.o.Own {
		n.tasks.Go(n.trims)
	}
	return n, nil
}

// Join has a store written through the cluster's order.
func (n *Node) Join(o *journal.Options, profile string) {
	o.Order, o.Profile, o.Node, o.NewOrder, o.Patience = n.o.Order, profile, n.o.Name, n.o.Own, maxSilence
	n.mu.Lock()
	defer n.mu.Unlock()
	o.Begins = n.origin
}

// Watch counts a store among those that the node depends on, until forget is called.
func (n *Node) Watch(s *journal.Store) (forget func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stores[s] = true
	return func() {
		c, _ := s.Cluster()
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.stores, s)
		n.stopped = cmp.Or(n.stopped, c.Stopped)
	}
}

// Fail has the node be unfit for good, since a file of the cluster's can't be used.
func (n *Node) Fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopped = cmp.Or(n.stopped, error(fmt.Errorf("%w; in a cluster 'mcp-pif cluster repair' does that", err)))
}

// beats proposes heartbeats.
func (n *Node) beats() {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for told := ""; ; {
		if told = n.tellRules(told); told != "" {
			_ = n.agree() // tried again
		}
		select {
		case <-n.ctx.Done():
			return
		case <-tick.C:
		case <-n.hurry: // what is applied then the next one tells
			_ = n.store.Barrier(n.ctx)
		}
		_ = n.store.Barrier(n.ctx) // where it fails the lease ends
	}
}

// A document is a file of the operator's decisions as the journal has it: as a version of
// a tool of its name.
type document struct {
	Tool    string `json:"tool"`
	Version int    `json:"version"`
	Content []byte `json:"content"`
	learned lease.Time
}

// documents is the newest of each file, and the number of the event that it is.
func (n *Node) documents() (docs map[string]document, at map[string]uint64, err error) {
	if n.holds.Load() {
		n.mu.Lock()
		defer n.mu.Unlock()
		return maps.Clone(n.docs), maps.Clone(n.at), nil
	}
	return recorded(n.store)
}

// recorded is the same by the file.
func recorded(s *journal.Store) (docs map[string]document, at map[string]uint64, err error) {
	docs, at = map[string]document{}, map[string]uint64{}
	err = s.EachNewest(0, func(e *journal.Event) error { return read(docs, at, e) })
	return docs, at, err
}

// learn keeps the newest of each.
func (n *Node) learn(docs map[string]document, at map[string]uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, d := range docs {
		if at[name] > n.at[name] {
			d.learned = lease.Now()
			n.docs[name], n.at[name] = d, at[name]
		}
	}
}

func read(docs map[string]document, at map[string]uint64, e *journal.Event) error {
	var d document
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return fmt.Errorf("event %d of the cluster's authority: %w", e.Seq, err)
	}
	docs[d.Tool], at[d.Tool] = d, e.Seq
	return nil
}

// begin brings the files of this machine into the cluster where it has none yet.
func (n *Node) begin() error {
	docs, at, err := n.documents()
	if err != nil {
		return err
	}
	_, err = os.Stat(n.mark())
	begun := err == nil && !n.o.Own
	names := slices.Clone(files)
	for _, pattern := range kept {
		there, err := fs.Glob(os.DirFS(n.o.Dir), pattern)
		if err != nil {
			return err
		}
		names = append(names, there...)
	}
	for _, name := range names {
		here, err := statefile.Read(filepath.Join(n.o.Dir, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		there, known := docs[name]
		switch {
		case here == nil || known && (bytes.Equal(here, there.Content) || within(here, there.Content)) || begun && (known || !isKept(name)):
		case known && !n.o.Own:
			return fmt.Errorf("%s of this machine isn't the cluster's: do there what it has and the cluster lacks, then move it away", filepath.Join(n.o.Dir, name))
		default:
			if err := n.write(name, there.Version+1, at[name], here); err != nil {
				return err
			}
		}
	}
	n.holds.Store(true)
	if docs, at, err = recorded(n.store); err == nil {
		n.learn(docs, at)
		err = n.project(docs, at)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(n.mark(), nil, 0o600)
}

// within reports whether the cluster's revocations have all of a file's.
func within(file, cluster []byte) bool {
	var here, there struct {
		Revoked *[]any `json:"revoked"`
	}
	if json.Unmarshal(file, &here) != nil || json.Unmarshal(cluster, &there) != nil || here.Revoked == nil || there.Revoked == nil {
		return false
	}
	return !slices.ContainsFunc(*here.Revoked, func(r any) bool {
		return !slices.ContainsFunc(*there.Revoked, func(o any) bool { return reflect.DeepEqual(o, r) })
	})
}

// mark says that the files of this machine are the cluster's.
func (n *Node) mark() string { return filepath.Join(n.o.Dir, "cluster", "begun") }

func (n *Node) write(name string, version int, after uint64, content []byte) error {
	data, err := json.Marshal(document{Tool: name, Version: version, Content: content})
	if err != nil {
		return err
	}
	_, err = n.store.Change(after, journal.ToolEvolved, data, name)
	if errors.Is(err, journal.ErrBehind) {
		return statefile.ErrMoved
	}
	return err
}

// project makes the files what the cluster decided, and what they say hold here.
func (n *Node) project(docs map[string]document, at map[string]uint64) error {
	n.projecting.Lock()
	defer n.projecting.Unlock()
	for name := range docs {
		if !shared(name) || at[name] <= n.projected[name] {
			continue
		}
		path := filepath.Join(n.o.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if here, err := statefile.Read(path); err != nil || !bytes.Equal(here, docs[name].Content) {
			if err := statefile.Replace(path, docs[name].Content, 0o600); err != nil {
				return err
			}
		}
		n.projected[name] = at[name]
	}
	return n.o.Applied()
}

// replace is [statefile.Change] on all nodes. It returns when every node has applied it, or
// has lost its lease.
func (n *Node) replace(ctx context.Context, r statefile.Replacement) error {
	if !shared(r.Name) {
		return fmt.Errorf("%q isn't the cluster's", r.Name)
	}
	docs, at, err := n.documents()
	if err != nil {
		return err
	}
	d, known := docs[r.Name]
	if known != (r.Before != nil) || !bytes.Equal(d.Content, r.Before) {
		n.projecting.Lock() // who asked has read an older file: it reads again once the newer is written
		defer n.projecting.Unlock()
		return statefile.ErrMoved
	}
	if err = n.write(r.Name, d.Version+1, at[r.Name], r.After); err != nil {
		return err
	}
	return n.everywhere(ctx)
}

// everywhere waits until every node that has a lease has applied what is applied here. A
// node that has just begun doesn't know yet which others there are, so it waits until
// each that may act has shown itself.
func (n *Node) everywhere(ctx context.Context) error {
	begun := time.Now()
	c, _ := n.store.Cluster()
	for place := c.Place; ; {
		c, _ = n.store.Cluster()
		waits, late := !n.o.Own && time.Since(n.begun) < reach, ""
		for name, p := range c.Peers {
			if p.Place < place && time.Since(p.Seen) < reach {
				waits, late = true, name
			}
		}
		switch {
		case !waits:
			return nil
		case time.Since(begun) > 10*reach:
			return fmt.Errorf("this is decided and holds here, but the node %s still acts without it after %v", late, 10*reach)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// errStopped is what a model may see of why a node has stopped: no path.
var errStopped = fmt.Errorf("%w: this node has stopped; 'mcp-pif cluster status' on its machine says why", journal.ErrCluster)

// Act waits until the node may act, or the context ends, and gives until when. A model sees
// its error.
func (n *Node) Act(ctx context.Context) (until lease.Time, err error) {
	for {
		c, _ := n.store.Cluster()
		if c.Stopped != nil {
			return 0, errStopped
		}
		if unlike := n.Unlike(); unlike != nil {
			return 0, errUnlike(unlike)
		}
		if until = c.Fresh.Add(Lease); c.Fresh != 0 && !until.Over() {
			return until, nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("this node of the cluster has had no majority for %v; 'mcp-pif cluster status' on its machine says more", lease.Since(c.Fresh).Round(time.Second))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Fresh waits until it has what other nodes acknowledged before it was called.
func (n *Node) Fresh(ctx context.Context) error {
	_, err := n.store.Fresh(ctx)
	return err
}

// CanAct reports whether it may act now.
func (n *Node) CanAct() bool {
	c, _ := n.store.Cluster()
	return c.Stopped == nil && n.Unlike() == nil && c.Fresh != 0 && !c.Fresh.Add(Lease).Over()
}

// Ready returns why the node should get no requests: it has stopped, or has had no majority
// for a while.
func (n *Node) Ready() error {
	n.mu.Lock()
	stopped := n.stopped
	n.mu.Unlock()
	for _, c := range n.clusters() {
		stopped = cmp.Or(stopped, c.Stopped)
	}
	if stopped != nil {
		return stopped
	}
	if c, _ := n.store.Cluster(); lease.Since(c.Fresh) > maxSilence {
		return errors.New("the cluster's order doesn't answer")
	}
	return nil
}

func (n *Node) clusters() (list []journal.Cluster) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range n.stores {
		if c, ok := s.Cluster(); ok {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b journal.Cluster) int { return bytes.Compare([]byte(a.Profile), []byte(b.Profile)) })
	return list
}

// A Status is what the command line shows of a node.
type Status struct {
	Node     string    `json:"node"`
	Order    string    `json:"order"`
	Identity string    `json:"identity"`
	CanAct   bool      `json:"can_act"`
	Stopped  string    `json:"stopped,omitempty"`
	Unlike   []string  `json:"unlike,omitempty"` // what it was given otherwise than the cluster
	Profiles []Profile `json:"profiles"`
	Nodes    []Peer    `json:"nodes"`
}

// A Profile is one that the node has open.
type Profile struct {
	Name  string       `json:"profile"`
	Place uint64       `json:"place"`
	Event uint64       `json:"event"`
	Hash  journal.Hash `json:"hash"`
}

// A Peer is another node, as this one sees it.
type Peer struct {
	Name    string `json:"node"`
	Silent  int64  `json:"silent_ms"` // since it last proposed something
	Place   uint64 `json:"place"`
	Differs bool   `json:"differs,omitempty"`
	// Unlike is what its operator gave it otherwise than this one: plugins, grants, flow rules.
	Unlike []string `json:"unlike,omitempty"`
}

// Status returns what is so now.
func (n *Node) Status() Status {
	c, _ := n.store.Cluster()
	st := Status{Node: n.o.Name, Order: PrintedOrder(n.o.Config.Order), Identity: c.Identity, CanAct: n.CanAct(), Unlike: n.Unlike(), Profiles: []Profile{}, Nodes: []Peer{}}
	if err := n.Ready(); err != nil {
		st.Stopped = err.Error()
	}
	for _, c := range n.clusters() {
		st.Profiles = append(st.Profiles, Profile{c.Profile, c.Place, c.Seq, c.Hash})
	}
	docs, _, _ := n.documents() // where they can't be read the node has stopped
	all := n.members(docs)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p, heard := c.Peers[name]
		r := all[name]
		if name == n.o.Name || r.Left && (!heard || !n.Alive(name)) {
			continue
		}
		if p.Seen.IsZero() {
			p.Seen, p.Place = n.begun, r.Place // silent since then at least
		}
		st.Nodes = append(st.Nodes, Peer{name, time.Since(p.Seen).Milliseconds(), p.Place, p.Differs, n.unlike(r)})
	}
	return st
}

// PrintedOrder is where an order is, without a password.
func PrintedOrder(target string) string {
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok {
		return target
	}
	rest, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		user, _, _ := strings.Cut(rest[:at], ":")
		rest = user + rest[at:]
	} else if strings.Contains(query, "@") { // it may be a password's
		query = ""
		rest, _, _ = strings.Cut(rest, ":")
	}
	parts := slices.DeleteFunc(strings.Split(query, "&"), func(part string) bool {
		name, _, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(name)
		return err != nil || strings.Contains(strings.ToLower(name), "password")
	})
	if query = strings.Join(parts, "&"); query != "" {
		rest += "?" + query
	}
	return scheme + "://" + rest
}

// listen answers the commands of this machine. The socket's path must be short: where that of
// the state directory isn't, it is in a folder of its own.
func (n *Node) listen() (err error) {
	// A node that was killed left its own.
	if before, _ := statefile.ReadCluster(n.o.Dir); strings.HasPrefix(filepath.Base(filepath.Dir(before.Socket)), "pif-node-") {
		_ = os.RemoveAll(filepath.Dir(before.Socket))
	}
	path := filepath.Join(n.o.Dir, "cluster", "s")
	if _ = os.Remove(path); len(path) > maxSocket {
		if n.sockets, err = os.MkdirTemp("", "pif-node-"); err != nil {
			return err
		}
		path = filepath.Join(n.sockets, "s")
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /replace", answer(func(ctx context.Context, r statefile.Replacement) (any, error) { return nil, n.replace(ctx, r) }))
	mux.HandleFunc("POST /append", answer(func(_ context.Context, a Append) (any, error) { return n.append(a) }))
	mux.HandleFunc("POST /alive", answer(func(_ context.Context, name string) (any, error) { return n.Alive(name), nil }))
	mux.HandleFunc("POST /status", answer(func(context.Context, any) (any, error) { return n.Status(), nil }))
	n.server = http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	n.tasks.Go(func() { _ = n.server.Serve(l) })
	n.o.Config.Node, n.o.Config.Socket = n.o.Name, path
	return statefile.WriteCluster(n.o.Dir, n.o.Config)
}

// answer answers a command by what do makes of its question.
func answer[Q any](do func(context.Context, Q) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var question Q
		var answer any
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<20)).Decode(&question)
		if err == nil {
			answer, err = do(r.Context(), question)
		}
		switch {
		case errors.Is(err, statefile.ErrMoved), errors.Is(err, journal.ErrBehind):
			w.WriteHeader(http.StatusConflict)
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			_ = json.NewEncoder(w).Encode(answer)
		}
	}
}

// An Append is what a command records in the file of a profile; see [journal.Options].
type Append struct {
	Path    string // of the file
	Content []byte
}

// append records what a command does, in a file that a server has open or none has.
func (n *Node) append(a Append) (seq uint64, err error) {
	n.mu.Lock()
	for s := range n.stores {
		if s != n.store && s.Path() == a.Path {
			n.mu.Unlock()
			return s.Take(a.Content)
		}
	}
	n.mu.Unlock()
	m, err := journal.Member(a.Path)
	if err != nil || m == nil {
		return 0, errors.Join(err, fmt.Errorf("%s is no file of the cluster's", a.Path))
	}
	o := journal.Options{Log: n.o.Log}
	n.Join(&o, m.Profile)
	s, err := journal.Open(a.Path, o)
	if err != nil {
		return 0, err
	}
	seq, err = s.Take(a.Content)
	return seq, errors.Join(err, s.Close())
}

// Name is the node's.
func (n *Node) Name() string { return n.o.Name }

// gone is how many heartbeats of this node come back until another that sent none is gone.
// Where the order is slow for all, none come back.
const gone = 15

// Alive reports whether a node still counts as one that acts.
func (n *Node) Alive(name string) bool {
	c, _ := n.store.Cluster()
	p, seen := c.Peers[name]
	return name == n.o.Name || seen && p.Missed < gone || !seen && time.Since(n.begun) < gone*beat
}

// farewell is how long others look for the tasks of a node that left: as long as one lives.
const farewell = 24 * time.Hour

// Lost is how many other nodes are gone, those that left lately too.
func (n *Node) Lost() (lost int) {
	docs, _, _ := n.documents()
	for name, r := range n.members(docs) {
		if !n.Alive(name) && !(r.Left && lease.Since(r.learned) > farewell) {
			lost++
		}
	}
	return lost
}

// Close ends it. The stores of others are closed before.
func (n *Node) Close() error {
	n.end()
	err := n.server.Close()
	n.tasks.Wait()
	if n.store != nil {
		err = errors.Join(err, n.store.Close())
	}
	if n.sockets != "" {
		err = errors.Join(err, os.RemoveAll(n.sockets))
	}
	if n.o.Own {
		err = errors.Join(err, os.RemoveAll(filepath.Join(n.o.Dir, statefile.ClusterFile)))
	}
	return err
}

// What those call themselves who only look, before they are nodes.
const (
	joins = "/joins"
	inits = "/inits" // it is to be the first
)

// Nodes returns the names that nodes of a cluster have had, as an order shows them, to one
// that isn't one yet; and of those that are to be the first, which is said of this one with
// first.
func Nodes(ctx context.Context, o order.Order, name string, first bool) (names, begun map[string]bool, err error) {
	if name += joins; first {
		name = strings.TrimSuffix(name, joins) + inits
	}
	dir, err := os.MkdirTemp("", "pif-join-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := journal.Open(filepath.Join(dir, "authority.db"), journal.Options{Order: o, Profile: authority, Node: name})
	if err != nil {
		return nil, nil, err
	}
	err = s.Barrier(ctx)
	c, _ := s.Cluster()
	names, begun = map[string]bool{}, map[string]bool{}
	for peer := range c.Peers {
		if first, ok := strings.CutSuffix(peer, inits); ok {
			begun[first] = true
		} else if !strings.Contains(peer, "/") {
			names[peer] = true
		}
	}
	return names, begun, errors.Join(err, s.Close())
}
