package fs

import (
	"cmp"
	"context"
	"errors"
	iofs "io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// defaultMax is the bytes of one outcome or content where the capability says nothing.
const defaultMax = 16 << 20

// A scope is an open capability: the grant's directory and what may be done
// below it. It may be used by several goroutines; Close waits for them.
type scope struct {
	mu        sync.RWMutex // held for reading by each operation
	closed    bool
	root      dir      // the grant's
	shown     string   // the capability's root as people write it
	within    []string // the capability's root below it
	file      bool     // which is one file
	follow    bool     // links inside may be followed
	hardLinks bool
	readOnly  bool
	max       int64
	verbs     []string // nil: all
	denials   []denial
}

var errClosed = errors.New("the capability is closed")

// open makes a scope of a capability with one of the two kinds of directories.
func open(c sdk.Capability, root dir) (_ *scope, err error) {
	_, shown, _ := strings.Cut(c.Text, ":")
	shown, _, _ = strings.Cut(shown, ",")
	s := &scope{root: root, shown: strings.TrimPrefix(shown, "./"), max: defaultMax, verbs: c.Verbs, hardLinks: c.Options["links"] == "ok"}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if c.Max > 0 {
		s.max = c.Max
	}
	_, s.readOnly = c.Options["ro"]
	if s.within, err = below(c.Within); err != nil {
		return nil, err
	}
	if c.File != "" {
		s.file = true
		switch {
		case len(s.within) == 0:
			s.within = []string{c.File}
		case len(s.within) > 1 || s.within[0] != c.File:
			return nil, sdk.Fail("invalid", "the capability is for the file %s only", quote(c.File))
		}
	}
	for _, d := range c.Denies {
		names, err := below(d.Within)
		if err != nil {
			return nil, err
		}
		s.denials = append(s.denials, denial{verbs: d.Verbs, names: names})
	}
	for i := range s.denials {
		if err := s.hold(&s.denials[i]); err != nil {
			return nil, because(strings.Join(s.denials[i].names, "/"), err)
		}
	}
	s.follow = len(s.within) == 0 && len(s.denials) == 0
	return s, nil
}

// below takes a path of the host's apart; it says "" for "." also.
func below(within string) ([]string, error) {
	if within == "" {
		return nil, nil
	}
	return split(within)
}

// Close gives the directory back after the operations under way.
func (s *scope) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.root.close()
	for _, d := range s.denials {
		for _, unpin := range d.unpins {
			unpin()
		}
	}
	return nil
}

// A call is one operation under way.
type call struct {
	*scope
	ctx   context.Context
	guard guard
}

// flags is what the operations can do at worst, by verb: there is one for each.
var flags = map[string]sdk.Flags{
	"read": {ReadOnly: true, Idempotent: true},
	"list": {ReadOnly: true, Idempotent: true},
	"glob": {ReadOnly: true, Idempotent: true},
	"stat": {ReadOnly: true, Idempotent: true},
	// A second write of the same content changes nothing more.
	"write":  {Destructive: true, Idempotent: true},
	"append": {},
	"mkdir":  {},
	"move":   {Destructive: true},
	"remove": {Destructive: true},
}

// begin starts an operation on a path, if the capability has its verb. The
// caller ends it.
func (s *scope) begin(ctx context.Context, verb, path string) (*call, error) {
	if s.verbs != nil && !slices.Contains(s.verbs, verb) || s.readOnly && !flags[verb].ReadOnly {
		return nil, sdk.Fail("denied", "the capability doesn't permit %s", verb).
			WithHint("Only the operator can change that; don't try again.")
	}
	if err := ctx.Err(); err != nil {
		return nil, because(path, err)
	}
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return nil, because(path, errClosed)
	}
	g, err := s.guardOf(verb)
	if err != nil {
		s.mu.RUnlock()
		return nil, err
	}
	g.subject = path
	return &call{scope: s, ctx: ctx, guard: g}, nil
}

func (c *call) end() { c.mu.RUnlock() }

// at performs an operation at the place of a path: do gives the result. Links are
// followed at the path's end if last is set.
func at[T any](ctx context.Context, s *scope, verb, path string, last bool, do func(c *call, p *place) (T, error)) (result T, err error) {
	c, err := s.begin(ctx, verb, path)
	if err != nil {
		return result, err
	}
	defer c.end()
	p, err := c.find(path, last)
	if err != nil {
		return result, c.again(path, err)
	}
	defer p.release()
	if result, err = do(c, p); err != nil {
		var none T
		return none, c.again(path, because(path, err))
	}
	return result, nil
}

// again tells who names the capability's root once more, in a path that leads nowhere.
func (c *call) again(file string, err error) error {
	f, ok := errors.AsType[sdk.Failure](err)
	if !ok || f.Code != "not_found" {
		return err
	}
	for _, root := range []string{c.shown, path.Base(c.shown)} {
		rest, found := strings.CutPrefix(strings.TrimPrefix(file, "./")+"/", root+"/")
		if !found {
			continue
		}
		first, _, _ := strings.Cut(root, "/")
		if p, err := c.find(first, false); err == nil {
			_, err = c.lstat(p)
			p.release()
			if err == nil {
				return f
			}
		}
		return f.WithHint("Paths are relative to " + c.shown + ": write " + quote(cmp.Or(strings.TrimSuffix(rest, "/"), ".")) + ".")
	}
	return f
}

// A place is where a path leads: a name in an open directory, whether there is
// something or not, or with an empty name the directory itself. Close it.
type place struct {
	dir
	name  string
	names []string // below the grant's root
	path  string   // as the program said it
	owned bool
}

func (p *place) release() {
	if p.owned {
		p.close()
	}
}

// find goes to the place of a path. Links are followed on the way where the
// capability follows any, and at its end if last is set, too.
func (c *call) find(path string, last bool) (*place, error) {
	given, err := split(path)
	if err != nil {
		return nil, err
	}
	c.guard.subject = path
	full := append(slices.Clip(slices.Clone(c.within)), given...)
	if len(c.within) > 0 {
		single, err := c.single(path, given)
		if err != nil {
			return nil, err
		}
		if single {
			full = c.within
		}
	}
	if err := c.guard.pass(full); err != nil {
		return nil, err
	}
	p := &place{dir: c.root, names: full, path: path}
	if len(full) == 0 {
		return p, nil
	}
	w := &walk{root: c.root, follow: c.follow, last: last}
	if c.guard.strict {
		top, err := c.root.stat()
		if err == nil {
			err = c.guard.permit(top)
		}
		if err != nil {
			return nil, because(path, err)
		}
		w.permit = c.guard.permit
	}
	p.dir, p.name, err = w.to(full)
	if err != nil {
		return nil, because(path, err)
	}
	p.owned = p.dir != c.root
	return p, nil
}

// single finds out whether the capability's root, which isn't the grant's, is
// to be taken for one file that the path names, "." or its own name: it is one,
// or there is nothing yet.
func (c *call) single(path string, given []string) (bool, error) {
	named := len(given) == 0 || len(given) == 1 && given[0] == c.within[len(c.within)-1]
	w := &walk{root: c.root}
	d, name, err := w.to(c.within)
	if err != nil {
		return false, because(path, err)
	}
	defer w.release(d)
	i, err := d.lstat(name)
	switch {
	case err == nil && i.isDir() && !c.file:
		return false, nil
	case err == nil && i.isLink():
		return false, because(path, errLink)
	case named && (err == nil || isAbsent(err)):
		return true, nil
	case err == nil || isAbsent(err) && c.file:
		return false, sdk.Fail("not_a_directory", "%s: the capability is for one file, %s", quote(path), quote(name)).
			WithHint(`Its path is ".".`)
	case isAbsent(err):
		return false, sdk.Fail("not_found", "%s: the capability's root isn't there", quote(path))
	}
	return false, because(path, err)
}

// isAbsent reports the error of a name that nothing has.
func isAbsent(err error) bool { return errors.Is(err, iofs.ErrNotExist) }

// lstat looks at the place itself, and refuses what is denied.
func (c *call) lstat(p *place) (i info, err error) {
	if p.name == "" {
		i, err = p.dir.stat()
	} else {
		i, err = p.dir.lstat(p.name)
	}
	if err == nil {
		err = c.guard.permit(i)
	}
	return i, err
}

// directory opens the place as a directory, which the caller closes.
func (c *call) directory(p *place) (dir, error) {
	name := cmp.Or(p.name, ".")
	d, err := p.dir.sub(name)
	if err != nil {
		return nil, err
	}
	i, err := d.stat()
	if err == nil {
		err = c.guard.permit(i)
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// one refuses a file that has more names than one: the others may be anywhere.
// With denials it does so whatever the capability says, since what is denied
// may be such a name.
func (c *call) one(path string, i info) error {
	if i.links <= 1 || c.hardLinks && !c.guard.strict || !i.isRegular() {
		return nil
	}
	return sdk.Fail("denied", "%s is one of %d names (hard links) of a file, and the others may be anywhere", quote(path), i.links).
		WithHint("The operator can allow such files with the option links=ok, where nothing is denied.")
}

// open opens a file that exists, if it may be.
func (c *call) open(p *place, to purpose) (*openFile, error) {
	if p.name == "" {
		return nil, sdk.Fail("not_a_file", "%s is a directory", quote(p.path))
	}
	f, i, err := p.dir.open(p.name, to)
	if err != nil {
		if i, e := p.dir.lstat(p.name); e == nil && c.guard.permit(i) != nil {
			err = c.guard.permit(i) // whatever else it is
		}
		return nil, err
	}
	if err = c.guard.permit(i); err == nil {
		err = c.one(p.path, i)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &openFile{f, i}, nil
}
