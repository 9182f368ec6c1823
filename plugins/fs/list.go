package fs

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

const (
	defaultLimit = 1000
	maxLimit     = 100_000
)

type listArgs struct {
	Path      string `pif:"path,main,designates,optional" doc:"the directory, relative to the capability's root; the root itself if left out"`
	Recursive bool   `pif:"recursive,optional" doc:"also what is in the directories below; links aren't followed"`
	Limit     int    `pif:"limit,optional" doc:"how many entries at most, the first by path; if left out, more than 1000 are a failure"`
}

type entry struct {
	Path string `pif:"path" doc:"relative to the capability's root"`
	Kind string `pif:"kind" doc:"file, directory, link or other"`
	Size int64  `pif:"size" doc:"bytes of a file, else 0"`
}

func list(ctx context.Context, s *scope, a listArgs) ([]entry, error) {
	a.Path = cmp.Or(a.Path, ".")
	return at(ctx, s, "list", a.Path, true, func(c *call, p *place) ([]entry, error) {
		l, err := c.newListing(a.Limit)
		if err != nil {
			return nil, err
		}
		d, err := c.directory(p)
		if err != nil {
			return nil, err
		}
		defer d.close()
		given, err := split(a.Path)
		if err != nil {
			return nil, err
		}
		if err := l.below(d, strings.Join(given, "/"), a.Recursive, 0); err != nil {
			return nil, err
		}
		return l.end(), nil
	})
}

// A listing collects entries in the order of their paths, names before names,
// up to one more than are wanted.
type listing struct {
	*call
	wanted  int
	given   bool // by the program, so it isn't surprised when there are more
	bytes   int64
	entries []entry
	unsaid  int  // names that no program can say
	done    bool // there is what is wanted, and more
}

func (c *call) newListing(limit int) (*listing, error) {
	l := &listing{call: c, wanted: limit, given: limit != 0, entries: []entry{}}
	switch {
	case limit < 0 || limit > maxLimit:
		return nil, sdk.Fail("invalid", "limit is %d: 1 to %d are possible", limit, maxLimit)
	case limit == 0:
		l.wanted = defaultLimit
	}
	return l, nil
}

// add takes an entry, or sets done where no more are wanted.
func (l *listing) add(path string, i info) error {
	if len(l.entries) == l.wanted {
		if l.given {
			sdk.Progress(l.ctx, "there are more than %d entries", l.wanted)
			l.done = true
			return nil
		}
		return sdk.Fail("too_large", "there are more than %d entries below %s", l.wanted, quote(l.guard.subject)).
			WithHint("Say with limit how many of them you want, or ask for a part.")
	}
	const overhead = 32
	if l.bytes += int64(len(path)) + overhead; l.bytes > l.max {
		return sdk.Fail("too_large", "the entries below %s take more than %d bytes", quote(l.guard.subject), l.max).
			WithHint("Say with limit how many of them you want, or ask for a part.")
	}
	l.entries = append(l.entries, entry{path, i.kind(), i.length()})
	return nil
}

func (l *listing) end() []entry {
	if l.unsaid > 0 {
		sdk.Progress(l.ctx, "%d names are left out: they aren't UTF-8 or have control characters", l.unsaid)
	}
	return l.entries
}

func (l *listing) below(d dir, prefix string, recursive bool, depth int) error {
	if depth > maxDepth {
		return tooDeep(prefix)
	}
	// Each name is at least one entry, so the first of them are enough.
	names, err := l.names(d, l.wanted-len(l.entries)+1, nil)
	if isAbsent(err) && depth > 0 {
		return nil // gone meanwhile
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		i, err := d.lstat(name)
		switch {
		case isAbsent(err), err == nil && l.guard.permit(i) != nil:
			continue // gone meanwhile, or denied
		case err != nil:
			return because(join(prefix, name), err)
		}
		path := join(prefix, name)
		if err := l.add(path, i); err != nil || l.done {
			return err
		}
		if !recursive || !i.isDir() {
			continue
		}
		sub, err := l.enter(d, name)
		if err == nil && sub != nil {
			err = l.below(sub, path, true, depth+1)
			sub.close()
		}
		if err != nil || l.done {
			return because(path, err)
		}
	}
	return nil
}

// enter opens a directory that was listed: nil where it is none any more.
func (l *listing) enter(d dir, name string) (dir, error) {
	sub, err := d.sub(name)
	if err != nil {
		if isAbsent(err) || err == errLink {
			return nil, nil
		}
		return nil, err
	}
	i, err := sub.stat()
	if err != nil || l.guard.permit(i) != nil {
		sub.close()
		return nil, err
	}
	return sub, nil
}

// names gives the first names of a directory in order, at most as many as are
// asked for, of those that programs can say, that aren't denied by their path
// and that keep, if it isn't nil, accepts.
func (l *listing) names(d dir, most int, keep func(name string) bool) ([]string, error) {
	f, err := d.names()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var first []string
	for {
		batch, err := f.Readdirnames(1024)
		for _, name := range batch {
			switch {
			case isTemporary(name):
				continue
			case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl): // a program couldn't say it
				l.unsaid++
				continue
			case keep != nil && !keep(name), l.hidden(d, name):
				continue
			}
			first = append(first, name)
		}
		if len(first) >= 2*most {
			slices.Sort(first)
			first = first[:min(len(first), most)]
		}
		if err == nil {
			err = l.ctx.Err()
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(first)
	return first[:min(len(first), most)], nil
}

// hidden reports whether a name is denied. It is asked before the first names
// are chosen, so that what is denied takes nothing from the limit.
func (l *listing) hidden(d dir, name string) bool {
	if len(l.guard.denied) == 0 {
		return false
	}
	i, err := d.lstat(name)
	return err == nil && l.guard.permit(i) != nil
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "/" + name
}

func tooDeep(path string) error {
	return sdk.Fail("too_large", "%s is more than %d directories deep", quote(path), maxDepth).
		WithHint("Ask for a part further down.")
}
