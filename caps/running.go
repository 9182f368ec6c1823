package caps

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// A Running is what a running server says of itself in a folder of the state
// directory, for who takes something back from it: which revocations it has applied,
// and what they hit. It decides nothing.
type Running struct {
	PID int `json:"pid"`
	// Client is whose server it is, in words.
	Client string `json:"client"`
	// Applied is the [Revision] of the revocations that it has applied.
	Applied string `json:"applied"`
	Hits    []Hit  `json:"hits,omitempty"`
	// Grants is what it has, without options, whoever has it; paths are absolute.
	Grants []string `json:"grants,omitempty"`
}

// A Hit is a grant of a server that a revocation takes, whole or in part.
type Hit struct {
	By        string `json:"by"`    // the revocation's ID
	Grant     string `json:"grant"` // its identity
	Principal string `json:"principal,omitempty"`
	Part      bool   `json:"part,omitempty"`
	// Shared is what other nodes of a cluster call a folder that the revocation names by its place here.
	Shared string `json:"shared,omitempty"`
	// Named is set where the revocation names such a folder as they do.
	Named bool `json:"named,omitempty"`
}

// Revision is the same for the same revocations.
func Revision(entries []Revocation) string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(entries) // strings, to a hash: neither fails
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Hits is the grants that revocations take, from everybody or from a principal who
// has them. Without named there are no principals but everybody.
func (p *Principals) Hits(entries []Revocation, named bool) (hits []Hit) {
	for _, g := range p.Grants() {
		for _, e := range entries {
			if e.Principal != "" && (!named || g.Principal != "" && g.Principal != e.Principal) {
				continue
			}
			of := Policy{kinds: p.kinds, principal: e.Principal}
			_, part := of.part(e, g)
			if part || of.names(e, g) {
				h := Hit{By: e.ID, Grant: g.ID, Principal: g.Principal, Part: part}
				if _, h.Named = g.sharedAt(e.scope(p.kinds)); g.Shared != "" && !h.Named {
					h.Shared = Capability{Kind: g.Kind, Scope: g.Shared}.String()
				}
				hits = append(hits, h)
			}
		}
	}
	return hits
}

// An Announcement is a server's own file among those of [AllRunning]. It is not safe
// for concurrent use.
type Announcement struct {
	path string // without what tells the two files apart
	lock *os.File
	said []byte
}

// Its files: one that is locked as long as the server runs, what it says, and what is
// to take that one's place.
const (
	runningLock = ".lock"
	runningSays = ".json"
	runningNew  = ".new"
)

// Announce makes a server's file in a folder, and removes those of servers that are
// gone.
func Announce(dir string) (*Announcement, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := statefile.CheckDir(dir); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	unlock, err := statefile.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if _, err := runningFiles(dir, true); err != nil {
		return nil, err
	}
	var random [8]byte
	rand.Read(random[:]) // never fails
	a := &Announcement{path: filepath.Join(dir, fmt.Sprintf("%d-%x", os.Getpid(), random))}
	if a.lock, err = os.OpenFile(a.path+runningLock, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	if _, err := statefile.TryLock(a.lock); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Say writes what the server says now, if that is something new.
func (a *Announcement) Say(r Running) error {
	text, err := json.Marshal(r)
	if err != nil || string(text) == string(a.said) {
		return err
	}
	// Not synced: it is of no use after the machine went down.
	if err := os.WriteFile(a.path+runningNew, text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(a.path+runningNew, a.path+runningSays); err != nil {
		return err
	}
	a.said = text
	return nil
}

// Close takes the server out.
func (a *Announcement) Close() error {
	return errors.Join(removeRunning(a.path), a.lock.Close())
}

// removeRunning removes a server's files, as many as there are.
func removeRunning(path string) (err error) {
	for _, ending := range []string{runningNew, runningSays, runningLock} {
		if e := os.Remove(path + ending); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// AllRunning is what the servers say that are running. One that hasn't said anything
// yet has applied nothing.
func AllRunning(dir string) ([]Running, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	unlock, err := statefile.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	paths, err := runningFiles(dir, false)
	if err != nil {
		return nil, err
	}
	all := make([]Running, len(paths))
	for i, path := range paths {
		_, _ = fmt.Sscanf(filepath.Base(path), "%d-", &all[i].PID) // of one that hasn't said it yet
		text, err := statefile.Read(path + runningSays)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = json.Unmarshal(text, &all[i]) // a newer server may say more
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path+runningSays, err)
		}
	}
	return all, nil
}

// runningFiles is the paths of the servers that run, without the endings; those of
// others are removed if that is wanted. The folder is locked.
func runningFiles(dir string, sweep bool) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), runningLock)
		if !ok {
			continue
		}
		path := filepath.Join(dir, name)
		f, err := os.OpenFile(path+runningLock, os.O_RDWR, 0)
		if err != nil {
			continue // its server has ended meanwhile
		}
		gone, err := statefile.TryLock(f)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if !gone {
			paths = append(paths, path)
		} else if sweep {
			err = removeRunning(path)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
	slices.Sort(paths)
	return paths, nil
}
