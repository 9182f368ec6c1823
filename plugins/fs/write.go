package fs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	iofs "io/fs"
	"math"
	"os"
	"path"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

type writeArgs struct {
	Path     string  `pif:"path,designates" doc:"the file, relative to the capability's root; its directory must be there"`
	Content  string  `pif:"content" doc:"what it is to hold"`
	Encoding string  `pif:"encoding,optional,enum=utf8|base64" doc:"how the content stands for bytes; utf8 if left out"`
	Create   string  `pif:"create,optional,enum=always|never|only" doc:"never: the file must be there; only: it must not; always if left out"`
	Was      *string `pif:"was" doc:"the SHA-256, in hexadecimal digits, of what it must hold now; anything if left out"`
}

type written struct {
	Bytes int    `pif:"bytes"`
	Hash  string `pif:"hash"`
}

// content decodes what is to be written, and holds it to the limit.
func (c *call) content(path, text, encoding string) ([]byte, error) {
	content := []byte(text)
	if encoding == "base64" {
		var err error
		if content, err = base64.StdEncoding.Strict().DecodeString(text); err != nil {
			return nil, sdk.Fail("invalid", "the content isn't base64: %v", err).
				WithHint("Use the standard alphabet with padding.")
		}
	}
	if int64(len(content)) > c.max {
		return nil, sdk.Fail("too_large", "the content for %s has %d bytes; at most %d are written at once", quote(path), len(content), c.max).
			WithHint("Write the first part and append the others.")
	}
	return content, nil
}

// receipt returns the record of what was written.
func receipt(content []byte) written {
	sum := sha256.Sum256(content)
	return written{len(content), hex.EncodeToString(sum[:])}
}

// change has do change a file's content, and gives the receipt.
func (s *scope) change(ctx context.Context, verb, file, text, encoding string, do func(c *call, p *place, content []byte) error) (written, error) {
	reached := false
	w, err := at(ctx, s, verb, file, false, func(c *call, p *place) (written, error) {
		reached = true
		content, err := c.content(file, text, encoding)
		if err == nil {
			err = do(c, p, content)
		}
		if err != nil {
			return written{}, err
		}
		return receipt(content), nil
	})
	if f, ok := errors.AsType[sdk.Failure](err); ok && !reached && f.Code == "not_found" && f.Hint == "" && path.Dir(file) != "." {
		err = f.WithHint("Make its directory first: !fs.mkdir({path: " + quote(path.Dir(file)) + ", recursive: true}).")
	}
	return w, err
}

func write(ctx context.Context, s *scope, a writeArgs) (written, error) {
	return s.change(ctx, "write", a.Path, a.Content, a.Encoding, func(c *call, p *place, content []byte) error {
		old, err := c.replaceable(p, a.Create)
		if err == nil {
			err = c.check(p, a.Was)
		}
		if err != nil {
			return err
		}
		return c.put(p, content, old, a)
	})
}

// replaceable decides on what has the name now, and gives it; nil where there
// is nothing.
func (c *call) replaceable(p *place, create string) (*info, error) {
	if p.name == "" {
		return nil, sdk.Fail("not_a_file", "%s is a directory", quote(p.path))
	}
	old, err := c.lstat(p)
	switch {
	case isAbsent(err) && create != "never":
		return nil, nil
	case err != nil:
		return nil, err
	case create == "only":
		return nil, iofs.ErrExist
	case old.isLink():
		return nil, errLink
	case old.isDir():
		return nil, sdk.Fail("not_a_file", "%s is a directory", quote(p.path))
	case !old.isRegular():
		return nil, errIrregular
	}
	return &old, c.one(p.path, old)
}

// put writes the content beside the place and renames it there.
func (c *call) put(p *place, content []byte, old *info, a writeArgs) (err error) {
	perm := newFile
	if old != nil {
		perm = 0o600 // until it has the permissions of what it replaces
	}
	f, name, release, err := temporary(p.dir, perm)
	if err != nil {
		return err
	}
	defer release() // it has its name then, or none
	defer func() {
		if err != nil {
			_ = p.dir.unlink(name) // the first error is the one to tell
		}
	}()
	if err = c.fill(f, content, old); err != nil {
		f.Close()
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = c.ctx.Err(); err != nil {
		return err
	}
	if err = c.swap(p, name, a); err != nil {
		return err
	}
	if err := p.dir.sync(); err != nil {
		return sdk.Fail("unknown", "%s was written but not synced to disk", quote(p.path))
	}
	return nil
}

// swap renames a temporary file to the place, if what is there is what it must be.
func (c *call) swap(p *place, name string, a writeArgs) error {
	if a.Was != nil {
		unlock, err := lock(c.ctx, p.dir)
		if err != nil {
			return err
		}
		defer unlock()
	}
	end, err := takeTurn(c.ctx, p.dir)
	if err != nil {
		return err
	}
	defer end()
	if err := c.check(p, a.Was); err != nil {
		return err
	}
	return p.dir.rename(info{}, name, p.dir, p.name, a.Create != "only")
}

// check fails if a file isn't what the program saw. What may not be read isn't compared.
func (c *call) check(p *place, was *string) error {
	if was == nil {
		return nil
	}
	want, err := hex.DecodeString(*was)
	if err != nil || len(want) != sha256.Size {
		return sdk.Fail("invalid", "was is no SHA-256 in hexadecimal digits").WithHint("Write was: sha256(text) of the text that was read.")
	}
	r := *c
	if r.guard, err = c.guardOf("read"); err != nil {
		return err
	}
	read, err := r.find(p.path, true) // past each folder on the way
	if err != nil {
		return err
	}
	defer read.release()
	f, err := r.open(read, reading)
	if err != nil {
		return err
	}
	defer f.Close()
	content, err := (&reader{file: f, path: p.path, ctx: c.ctx, limit: c.max, length: math.MaxInt64}).bytes()
	if err != nil {
		return err
	}
	if receipt([]byte(content)).Hash != hex.EncodeToString(want) {
		return sdk.Fail("conflict", "%s was changed meanwhile", quote(p.path)).WithHint("Read it again, and change what it holds now.")
	}
	return nil
}

// fill writes a temporary file, with the owner and permissions of what it
// replaces, as far as the system lets us.
func (c *call) fill(f *os.File, content []byte, old *info) error {
	if old != nil && old.uid >= 0 {
		if err := c.inherit(f, old); err != nil {
			return err
		}
	}
	const piece = 1 << 20
	for len(content) > 0 {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		n, err := f.Write(content[:min(piece, len(content))])
		if err != nil {
			return err
		}
		content = content[n:]
	}
	return f.Sync()
}

func (c *call) inherit(f *os.File, old *info) error {
	perm := old.mode.Perm()
	if now, err := f.Stat(); err == nil {
		if _, uid, gid := ownership(now, f); uid != old.uid || gid != old.gid {
			if f.Chown(old.uid, old.gid) != nil && gid != old.gid {
				// What the old group could do isn't for the new one.
				perm &^= 0o070
			}
		}
	}
	err := f.Chmod(perm)
	if errors.Is(err, iofs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		return nil // a file system without permissions
	}
	return err
}

type appendArgs struct {
	Path     string `pif:"path,designates" doc:"the file, relative to the capability's root; its directory must be there"`
	Content  string `pif:"content" doc:"what to add at its end"`
	Encoding string `pif:"encoding,optional,enum=utf8|base64" doc:"how the content stands for bytes; utf8 if left out"`
	Create   string `pif:"create,optional,enum=always|never|only" doc:"never: the file must be there; only: it must not; always if left out"`
}

// appendTo gives the bytes and hash of what was added.
func appendTo(ctx context.Context, s *scope, a appendArgs) (written, error) {
	return s.change(ctx, "append", a.Path, a.Content, a.Encoding, func(c *call, p *place, content []byte) error {
		end, err := takeTurn(ctx, p.dir)
		if err != nil {
			return err
		}
		f, isNew, err := c.openToAppend(p, a.Create)
		if err != nil {
			end()
			return err
		}
		defer f.Close()
		// One call of the system, so that appends at the same time don't mix.
		n, err := f.Write(content)
		end()
		if err == nil {
			err = f.Sync()
		}
		if err == nil && isNew {
			err = p.dir.sync()
		}
		return inPart(a.Path, err, n > 0 || isNew, "; the file is there, and %d of %d bytes were added", n, len(content))
	})
}

// openToAppend opens what is there, or makes it.
func (c *call) openToAppend(p *place, create string) (f *os.File, isNew bool, err error) {
	// Again where it came or went between the two looks.
	for range 10 {
		if create != "only" {
			opened, err := c.open(p, appending)
			if err == nil {
				return opened.File, false, nil
			}
			if !isAbsent(err) || create == "never" {
				return nil, false, err
			}
		}
		f, err = p.dir.create(p.name, newFile)
		if err == nil || !errors.Is(err, iofs.ErrExist) || create == "only" {
			return f, true, err
		}
	}
	return nil, false, err
}

// Temporary files are called prefix, 32 hexadecimal digits, suffix. A crash of
// the machine or the process may leave one; programs neither see nor name them.
const (
	temporaryPrefix = ".pif-"
	temporarySuffix = ".tmp"
	temporaryDigits = 32
)

// staleAge is the age from which a temporary file is taken to be left over where locks
// can't tell.
const staleAge = time.Hour

func isTemporary(name string) bool {
	if len(name) != len(temporaryPrefix)+temporaryDigits+len(temporarySuffix) {
		return false
	}
	// Letters' case is no difference on some file systems.
	name = strings.ToLower(name)
	digits, ok := strings.CutPrefix(name, temporaryPrefix)
	digits, ok2 := strings.CutSuffix(digits, temporarySuffix)
	_, err := hex.DecodeString(digits)
	return ok && ok2 && err == nil
}

// temporary makes a file beside those of a directory, of a name that nobody can guess.
// It is locked until release is called, so that who sweeps knows that its writer lives.
func temporary(d dir, perm iofs.FileMode) (f *os.File, name string, release func(), err error) {
	for range maxLookups {
		var random [temporaryDigits / 2]byte
		rand.Read(random[:])
		name = temporaryPrefix + hex.EncodeToString(random[:]) + temporarySuffix
		if f, err = d.create(name, perm); err != nil {
			return nil, "", nil, err
		}
		if release, err = hold(f); err == nil {
			return f, name, release, nil
		}
		f.Close() // who sweeps was quicker, and has removed it
	}
	return nil, "", nil, err
}

// sweep removes the temporary files that a crash left in a directory, so that it
// is as empty as it looks.
func sweep(d dir) {
	f, err := d.names()
	if err != nil {
		return
	}
	defer f.Close()
	all, _ := f.Readdirnames(1000)
	for _, name := range all {
		removeLeft(d, name)
	}
}

// removeLeft removes a temporary file of this user's whose writer has ended: it has the
// name of one, and no other, and nobody has it locked. What stays makes the removal of its
// directory fail, which says so.
func removeLeft(d dir, name string) {
	if !isTemporary(name) {
		return
	}
	f, i, err := d.open(name, reading)
	if err != nil {
		return
	}
	defer f.Close()
	if i.links > 1 || i.uid >= 0 && os.Geteuid() > 0 && i.uid != os.Geteuid() {
		return
	}
	if free, known := unlocked(f); known && !free || !known && time.Since(i.modified) <= staleAge {
		return
	}
	if now, err := d.lstat(name); err == nil && now.is(i.identity) {
		_ = d.unlink(name)
	}
}

// How much of a grant is looked through for what was left.
const (
	maxSwept      = 100_000 // names
	maxSweptDepth = 64      // each has an open directory
)

// sweepAll removes what a crash left below a directory, as far as that is looked
// through. No link is followed.
func sweepAll(d dir) {
	left := maxSwept
	sweepBelow(d, &left, maxSweptDepth)
}

func sweepBelow(d dir, left *int, depth int) {
	f, err := d.names()
	if err != nil {
		return
	}
	defer f.Close()
	for *left > 0 {
		some, err := f.ReadDir(min(*left, 1000))
		*left -= len(some)
		for _, e := range some {
			removeLeft(d, e.Name())
			if !e.IsDir() || depth == 0 {
				continue
			}
			if below, err := d.sub(e.Name()); err == nil {
				sweepBelow(below, left, depth-1)
				below.close()
			}
		}
		if err != nil {
			return
		}
	}
}
