package caps

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// DefaultLimits hold for grants that have none of their own.
var DefaultLimits = Limits{Calls: 100_000, Bytes: 256 << 20, Max: 8 << 20, Timeout: 30 * time.Second}

// A Grant is a capability that the operator gave the server, bound to what it
// resolved to. Made by [Resolve], it is safe for concurrent use and doesn't
// change, but for being revoked.
//
// Its text has the operator's path; what tools and models see is [Grant.Shown].
type Grant struct {
	Capability
	// ID is the identity: a hash of the canonical text and what it resolved
	// to. Counters, approvals and revocations bind to it.
	ID string
	// Label is what tools and models call its scope: never an absolute path.
	Label string
	// Root is what a Path grant resolved to, open since the server started,
	// and Real its path, for the operator only. File is the name in Root
	// where the grant is one file; Real is then that file's.
	Root *os.File
	Real string
	File string
	// Link says, for the operator, which path was followed where; empty where
	// the path has no links.
	Link string
	// Shared is the name under which each node of a cluster has the same folder, and Node the node
	// whose alone it is, of a cluster; "": neither.
	Shared, Node string
	// Asked is set where a person approves each tool that is to hold it.
	Asked bool
	// Principal is whose it is alone; empty: everybody's.
	Principal string
	Manifest  *Manifest
	// Narrow is what the operator permits of operations' arguments, by their names; see
	// [ResolveOptions].
	Narrow map[string]Schema

	abs    string // of a Path grant: as it was written, absolute
	file   string // of one: what tells it from another that takes its name
	alike  string // the identity that it would have if it were everybody's
	server string // of a server's kind: the identity of what serves it, whatever is granted
	lent   bool   // Root is another's to close
	rates  *rates // those of all that it was lent to together
	state  grantState
}

// ResolveOptions is what [Resolve] needs to know of the server.
type ResolveOptions struct {
	Kinds Kinds
	// Dir is what relative paths are of; empty: the working directory.
	Dir string
	// Protected is paths that no grant may contain or lie inside: the state
	// directory, the policy, the plugin lock, the binaries.
	Protected []string
	// Programs is paths of what is executed, and of folders from which things are:
	// no grant under which something may be changed may contain one, or lie inside.
	Programs []string
	// Linked is set where files with several names may be changed: then no such grant
	// may have another name of a program.
	Linked bool
	// Extra is a part of the identity: the plugin's hash, its command line.
	Extra string
	// Narrow is schemas of arguments by the operations' names, of a server's kind: what doesn't
	// fit is denied. Their texts belong into Extra.
	Narrow map[string]Schema
	// Node is the node of a cluster that the server is; "": of none.
	Node string
	// Asked makes it a grant that a person approves for each tool.
	Asked bool
	// Principal is whose grant it is alone, which is a part of the identity; empty:
	// everybody's.
	Principal string
}

// Resolve makes a grant: of a Path capability the root is opened, once, and its
// real path found. It refuses roots that don't exist and those that touch what
// is protected. The caller closes the grant, or gives it to a [Policy], which
// does.
func Resolve(c Capability, o ResolveOptions) (*Grant, error) {
	c, err := o.Kinds.Check(c)
	if err != nil {
		return nil, err
	}
	if c.Kind == CallKind {
		return nil, fmt.Errorf("%s: calls need no grant; --deny limits them", c)
	}
	m, _ := o.Kinds.Manifest(c.Kind)
	g := &Grant{Capability: c, Manifest: m, Label: c.Scope, Asked: o.Asked, Principal: o.Principal, Narrow: o.Narrow, rates: new(rates)}
	g.state.begin()
	text, resolved := c.String(), ""
	if name := c.Options[optionShared]; name != "" {
		g.Options = maps.Clone(c.Options)
		if delete(g.Options, optionShared); len(g.Options) == 0 {
			g.Options = nil
		}
		g.Shared, g.Name = name, name
		c = g.Capability
	} else if m.Algebra == Path {
		g.Node = o.Node
	}
	if m.Algebra == Path {
		if err := g.open(o); err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		if resolved, err = g.check(o); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", c, err), g.Root.Close())
		}
		g.Label = label(c)
	}
	asked := ""
	if o.Asked {
		asked = "ask"
	}
	if g.Shared != "" {
		// Where it is on this machine is no part of it.
		shared := c
		shared.Name, shared.Scope = "", g.Shared
		text, resolved = shared.String(), optionShared
	}
	parts := []string{text, resolved, o.Extra, asked}
	if g.Node != "" {
		parts = append(parts, optionShared+" by none but", g.Node)
	}
	if defined := m.defined(&c); defined != "" {
		parts = append(parts, defined)
		g.server = identity([]string{c.Kind, o.Extra, o.Principal})
	}
	g.alike = identity(parts)
	if g.ID = g.alike; o.Principal != "" {
		g.ID = identity(append(parts, o.Principal))
	}
	return g, nil
}

// identity is a hash of what a grant is, the parts apart.
func identity(parts []string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// lend makes the grant as one policy has it: revoked and restored there alone, with
// the same root, which stays the lender's to close, and the same rates.
func (g *Grant) lend() *Grant {
	l := &Grant{
		Capability: g.Capability, ID: g.ID, Label: g.Label, Root: g.Root, Real: g.Real, File: g.File, Link: g.Link, Shared: g.Shared, Node: g.Node,
		Asked: g.Asked, Principal: g.Principal, Manifest: g.Manifest, abs: g.abs, file: g.file, alike: g.alike, server: g.server, Narrow: g.Narrow, lent: true, rates: g.rates,
	}
	l.state.begin()
	return l
}

// label is what tools call a path.
func label(c Capability) string {
	switch {
	case c.Name != "":
		return c.Name
	case !absolute(c.Scope):
		return c.Scope
	}
	if base := filepath.Base(filepath.FromSlash(c.Scope)); base != "" && !strings.ContainsAny(base, `/\:`) {
		return base
	}
	return "root"
}

// open finds the real path and opens the directory there, or the directory that
// has the file.
func (g *Grant) open(o ResolveOptions) error {
	dir := o.Dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return err
		}
	}
	abs, err := absolutePath(dir, g.Scope)
	if err != nil {
		return err
	}
	g.abs = abs
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("it doesn't exist; create it first")
	} else if err != nil {
		return unwrapPath(err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return unwrapPath(err)
	}
	at := real
	switch {
	case info.IsDir():
	case info.Mode().IsRegular():
		at, g.File = filepath.Dir(real), filepath.Base(real)
	default:
		return errors.New("it is neither a directory nor a regular file")
	}
	root, err := openDir(at)
	if err != nil {
		return unwrapPath(err)
	}
	g.Root = root
	if g.Real, err = realPath(root, at); err != nil {
		return errors.Join(err, root.Close())
	}
	if g.File != "" {
		g.Real = filepath.Join(g.Real, g.File)
	}
	if g.Real != abs {
		g.Link = abs + " is " + g.Real
	}
	return nil
}

// absolutePath is a canonical scope as a path of this system.
func absolutePath(dir, scope string) (string, error) {
	p := filepath.FromSlash(scope)
	if !filepath.IsAbs(p) {
		p = filepath.Join(dir, p)
	}
	return filepath.Abs(p)
}

// realPath is the path of an open directory, as the system has it, and
// otherwise the path it was opened by, if that still is the same directory.
func realPath(root *os.File, at string) (string, error) {
	info, err := root.Stat()
	if err != nil {
		return "", err
	}
	if p, err := openPath(root); err == nil && sameFile(p, info) {
		return p, nil
	}
	p, err := filepath.EvalSymlinks(at)
	if err != nil {
		return "", unwrapPath(err)
	}
	if !sameFile(p, info) {
		return "", errors.New("it changed while it was opened")
	}
	return p, nil
}

// openPath is where the system has an open directory now; an error on systems that
// don't tell.
func openPath(root *os.File) (string, error) {
	if runtime.GOOS != "linux" {
		return "", errors.ErrUnsupported
	}
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", root.Fd()))
}

func sameFile(path string, info os.FileInfo) bool {
	got, err := os.Lstat(path)
	return err == nil && os.SameFile(got, info)
}

// check refuses protected paths and those that the system makes up, and gives what the identity has besides the
// text.
func (g *Grant) check(o ResolveOptions) (string, error) {
	if err := apart([]string{g.Real, g.abs}, o.Protected); err != nil {
		return "", err
	}
	if !g.Flags().ReadOnly {
		if err := keepsPrograms([]string{g.Real, g.abs}, o.Programs); err != nil {
			return "", err
		}
		if o.Linked {
			if err := keepsNames(g.Real, o.Programs); err != nil {
				return "", err
			}
		}
	}
	info, err := g.Root.Stat()
	if err != nil {
		return "", err
	}
	if g.File != "" {
		if info, err = os.Lstat(g.Real); err != nil {
			return "", err
		}
		if !info.Mode().IsRegular() {
			return "", errors.New("it changed while it was opened")
		}
	}
	g.file = fileNumber(info)
	return g.Real + "\x00" + g.file, nil
}

// madeUp is the directories that hold Linux's view of itself: memory and descriptors of
// processes, devices, settings. A path in them can lead anywhere. Elsewhere no list is complete.
var madeUp = map[string][]string{"linux": {"/proc", "/sys", "/dev"}}[runtime.GOOS]

// apart refuses paths that the system makes up, and that touch a protected one.
func apart(roots, protected []string) error {
	for _, p := range madeUp {
		for _, root := range roots {
			if _, in := inside(p, root); in {
				return fmt.Errorf("it lies in %s, where the system shows itself: no tool may reach that", p)
			}
		}
	}
	for _, p := range protected {
		abs, err := filepath.Abs(p)
		if err != nil {
			return err
		}
		for _, p := range []string{abs, realPrefix(abs)} {
			for _, root := range roots {
				if _, in := inside(p, root); in {
					return fmt.Errorf("it lies inside %s, which no tool may reach", p)
				}
				if _, in := inside(root, p); in {
					return fmt.Errorf("it contains %s, which no tool may reach", p)
				}
			}
		}
	}
	return nil
}

// realBelow is realOf with links resolved. Most paths have none on the way, which a look at each name tells.
func (g *Grant) realBelow(within string) string {
	whole := g.realOf(within)
	if g.File != "" || runtime.GOOS == "windows" { // names have other spellings there
		return realPrefix(whole)
	}
	at := g.Real
	for name := range strings.SplitSeq(within, "/") {
		at = filepath.Join(at, name)
		switch info, err := os.Lstat(at); {
		case errors.Is(err, fs.ErrNotExist):
			return whole
		case err != nil || !info.IsDir() && !info.Mode().IsRegular():
			return realPrefix(whole)
		}
	}
	return whole
}

// realPrefix resolves the links of as much of a path as exists.
func realPrefix(p string) string {
	rest := ""
	for dir := p; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return p
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// unwrapPath leaves the path out of an error, which names the scope already.
func unwrapPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// Close closes the root. A policy that has the grant closes it when it is
// replaced.
func (g *Grant) Close() error {
	if g.Root == nil || g.lent {
		return nil
	}
	if err := g.Root.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Shown is the capability as tools and models see it, and can declare it: with
// the label for the scope.
func (g *Grant) Shown() Capability {
	c := g.Capability
	c.Name, c.Scope = "", g.Label
	return c
}

// Limit is the limits that hold, the default ones among them.
func (g *Grant) Limit() Limits {
	l := g.Limits
	l.Calls = cmp.Or(l.Calls, DefaultLimits.Calls)
	l.Bytes = cmp.Or(l.Bytes, DefaultLimits.Bytes)
	l.Max = cmp.Or(l.Max, DefaultLimits.Max)
	l.Timeout = cmp.Or(l.Timeout, DefaultLimits.Timeout)
	return l
}

// A Held capability is what a tool version has: narrower than a grant, or a
// call of another tool (Grant is nil then). Its text is what tools and models
// see.
type Held struct {
	Capability
	Grant *Grant
	// Within is the scope relative to the grant's: for Path the path below
	// Root ("." for all of it), else the pattern itself.
	Within string
	// Declared is the scope as the tool declared it, which may be wider.
	Declared string
}

// Limit is the limits that hold: those of the grant, default ones too, and the
// tool's own.
func (h *Held) Limit() Limits {
	if h.Grant == nil {
		return h.Limits
	}
	return h.Grant.Limit().and(h.Limits)
}

// grantState is what changes: whether the grant holds.
type grantState struct {
	mu      sync.Mutex
	ctx     context.Context
	cancel  context.CancelCauseFunc
	revoked bool
	told    bool // what was last said of it, where that was that it is revoked
}

// ErrRevoked is the cause with which a revoked grant's context ends.
var ErrRevoked = errors.New("the capability was revoked by the operator")

// begin makes a context in which the grant holds; mu is held, or nobody has the
// grant yet.
func (s *grantState) begin() {
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
}

// Context ends with the cause [ErrRevoked] when the grant is revoked. After it
// was restored it is another one.
func (g *Grant) Context() context.Context {
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	return g.state.ctx
}

// Revoked reports whether it was taken back.
func (g *Grant) Revoked() bool {
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	return g.state.revoked
}

func (g *Grant) revoke() { g.set(true) }

func (g *Grant) restore() { g.set(false) }

func (g *Grant) set(revoked bool) {
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	g.state.set(revoked)
}

// set revokes or restores, and tells whether it was otherwise; mu is held.
func (s *grantState) set(revoked bool) bool {
	if s.revoked == revoked {
		return false
	}
	if s.revoked = revoked; revoked {
		s.cancel(ErrRevoked)
	} else {
		s.begin()
	}
	return true
}

// tell revokes or restores it, and tells whether that is something new to say.
func (g *Grant) tell(revoked bool) bool {
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	changed := g.state.set(revoked)
	told := g.state.told
	g.state.told = revoked
	return changed || revoked != told
}
