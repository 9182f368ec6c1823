package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// A taskOwner is a server among those that do tasks of one journal. Each has a file that is
// locked as long as its process lives, so that others know what they may take up. A nil one
// has no tasks but its own.
type taskOwner struct {
	dir, name string
	node      Node // nil: it is in no cluster
	lock      *os.File
	schedules *os.File // locked by the server that starts what is scheduled; nil: another
}

const ownerEnding = ".owner"

// ownTasks makes a server's file in a folder.
func ownTasks(dir, name string, node Node) (*taskOwner, error) {
	if node != nil {
		name += "@" + node.Name()
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := statefile.CheckDir(dir); err != nil {
		return nil, err
	}
	o := &taskOwner{dir: dir, name: name, node: node}
	var err error
	if o.lock, err = os.OpenFile(o.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	if locked, err := statefile.TryLock(o.lock); err != nil || !locked {
		return nil, errors.Join(err, errors.New("this system has no lock that ends with a process, so nobody goes on with tasks"), o.close())
	}
	return o, nil
}

func (o *taskOwner) path(name string) string { return filepath.Join(o.dir, name+ownerEnding) }

// word is what a task's record says of its owner.
func (o *taskOwner) word() string {
	if o == nil {
		return ""
	}
	return o.name
}

// lives reports whether the server of a name runs.
func (o *taskOwner) lives(name string) bool {
	if o == nil {
		return false
	}
	if o.elsewhere(name) {
		_, node, _ := strings.Cut(name, "@")
		return o.node.Alive(node)
	}
	return name == o.name || OwnerLives(o.dir, name)
}

// elsewhere reports whether a server is, or was, another node of the cluster.
func (o *taskOwner) elsewhere(name string) bool {
	_, node, of := strings.Cut(name, "@")
	return of && o.node != nil && node != o.node.Name()
}

// left reports whether the server of a name, which doesn't run any more, left its tasks in order: then its file is gone.
func (o *taskOwner) left(name string) bool {
	if name == "" || o.elsewhere(name) {
		return false
	}
	_, err := os.Stat(o.path(name))
	return errors.Is(err, fs.ErrNotExist)
}

// OwnerLives reports whether the server that a task's record names runs. dir is the
// [Options.TaskDir] of its journal.
func OwnerLives(dir, name string) bool {
	if name == "" || strings.ContainsAny(name, `/\`) {
		return false
	}
	f, err := os.OpenFile(filepath.Join(dir, name+ownerEnding), os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	locked, err := statefile.TryLock(f)
	return err != nil || !locked
}

// alone does something while no other server of the journal does the like, and afterwards
// removes the files of those that are gone, but of those of which tasks wait still.
func (o *taskOwner) alone(do func() (waiting map[string]bool, err error)) error {
	unlock, err := statefile.Lock(filepath.Join(o.dir, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	waiting, err := do()
	if err != nil {
		return err
	}
	entries, _ := os.ReadDir(o.dir)
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ownerEnding); ok && !waiting[name] && !o.lives(name) {
			err = errors.Join(err, os.Remove(o.path(name)))
		}
	}
	return err
}

// startsSchedules reports whether it is this server that starts what is scheduled: one at a
// time does.
func (o *taskOwner) startsSchedules() bool {
	if o.schedules != nil {
		return true
	}
	f, err := os.OpenFile(filepath.Join(o.dir, "schedules.owner-lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false
	}
	if locked, err := statefile.TryLock(f); err != nil || !locked {
		f.Close()
		return false
	}
	o.schedules = f
	return true
}

func (o *taskOwner) close() error {
	err := errors.Join(os.Remove(o.path(o.name)), o.lock.Close())
	if o.schedules != nil {
		err = errors.Join(err, o.schedules.Close())
	}
	return err
}
