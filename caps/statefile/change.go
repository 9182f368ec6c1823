package statefile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-pif/mcp-pif/core/display"
)

// ClusterFile is the file that a state directory has whose machine is a node of a cluster:
// what is changed there with [Change] is changed on all nodes, or not at all.
const ClusterFile = "cluster.json"

// A Cluster is its content.
type Cluster struct {
	Order string `json:"order"` // where the cluster's order is
	Node  string `json:"node"`  // the name of this one
	// Socket is where the node listens while it runs.
	Socket string `json:"socket,omitempty"`
}

// ReadCluster reads it; there is none where the error is [fs.ErrNotExist].
func ReadCluster(dir string) (c Cluster, err error) {
	data, err := Read(filepath.Join(dir, ClusterFile))
	if err == nil {
		err = Decode(data, &c)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: %w", filepath.Join(dir, ClusterFile), err)
	}
	return c, err
}

// ErrMoved means that a file isn't what it was when it was read.
var ErrMoved = errors.New("it was changed meanwhile")

// A Replacement is a file of a state directory by its name there, what it is to be, and what it
// must have been; nil: there was none.
type Replacement struct {
	Name          string
	Before, After []byte
}

// maxTries is how often a change is made anew beside others of a cluster.
const maxTries = 50

// profilesFolder is that of the profiles in a state directory.
const profilesFolder = "profiles"

// inCluster finds the cluster that a file is changed through, which is in a state directory or
// in the folder of a profile there, or one in that, and the file's name there.
func inCluster(path string) (c Cluster, name string, err error) {
	for dir, name := filepath.Dir(path), filepath.Base(path); strings.Count(name, "/") < 4; dir, name = filepath.Dir(dir), filepath.Base(dir)+"/"+name {
		if strings.Contains(name, "/") && !strings.HasPrefix(name, profilesFolder+"/") {
			continue
		}
		if c, err := ReadCluster(dir); !errors.Is(err, fs.ErrNotExist) {
			return c, name, err
		}
	}
	return c, "", fs.ErrNotExist
}

// Change replaces a file of the state directory, or of a profile in it, by what edit makes of it (nil: there is
// none), alone among the processes that do, on every node where the machine is one of a
// cluster. edit may be called again. On an error nothing has changed, unless the cluster
// didn't answer.
func Change(path string, edit func(before []byte) (after []byte, err error)) error {
	if err := CheckDir(filepath.Dir(path)); err != nil {
		return err
	}
	read := func() (before, after []byte, err error) {
		if before, err = Read(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		after, err = edit(before)
		return before, after, err
	}
	c, name, err := inCluster(path)
	if err == nil {
		for tries := range maxTries {
			time.Sleep(time.Duration(min(tries, 20)) * time.Millisecond) // the file comes to be what the cluster has
			before, after, err := read()
			if err != nil {
				return err
			}
			if err := c.Ask(context.Background(), "replace", Replacement{name, before, after}, nil); !errors.Is(err, ErrMoved) {
				return err
			}
		}
		return ErrMoved
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unlock, err := Lock(path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	_, after, err := read()
	if err != nil {
		return err
	}
	return Replace(path, after, 0o600)
}

// A Document is a file that is one JSON document: state that [Document.Change] changes. A T that
// embeds [Format] has a format on file, which it is held to.
type Document[T any] struct {
	Path   string
	Name   string // of what it is, before errors
	Format string
}

// Format is the member of a document that names its format.
type Format struct {
	Format string `json:"format"`
}

func (f *Format) format() *string { return &f.Format }

// ErrSame is the error of an edit that changes nothing.
var ErrSame = errors.New("nothing changes")

// Read reads the document; the zero value where there is no file. A file that can't be read is an
// error: nothing may be assumed to hold then.
func (d Document[T]) Read() (*T, error) {
	data, err := Read(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return new(T), nil
	}
	v := new(T)
	if err == nil {
		v, err = d.decode(data)
	}
	return v, d.failed(err)
}

func (d Document[T]) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", d.Name, d.Path, err)
}

func (d Document[T]) decode(data []byte) (*T, error) {
	v := new(T)
	if data == nil {
		return v, nil
	}
	if err := Decode(data, v); err != nil {
		return nil, err
	}
	if f, ok := any(v).(interface{ format() *string }); ok && *f.format() != d.Format {
		return nil, fmt.Errorf("it has the format %q, not %q", display.Truncate(*f.format(), 80), d.Format)
	}
	return v, nil
}

// Change is [Change] of the document. An error of edit is returned as it is, but that [ErrSame] is none.
func (d Document[T]) Change(edit func(*T) error) error {
	var refused error // by edit
	err := os.MkdirAll(filepath.Dir(d.Path), 0o700)
	if err == nil {
		err = Change(d.Path, func(before []byte) (after []byte, err error) {
			v, err := d.decode(before)
			if err != nil {
				return nil, err
			}
			if refused = edit(v); refused != nil {
				return nil, refused
			}
			if f, ok := any(v).(interface{ format() *string }); ok {
				*f.format() = d.Format
			}
			return EncodeJSON(v)
		})
	}
	switch {
	case errors.Is(refused, ErrSame):
		return nil
	case refused != nil:
		return refused
	}
	return d.failed(err)
}

// Runs reports whether the node runs on this machine, also where it is stopped, or too busy to answer.
func (c *Cluster) Runs() bool {
	conn, err := net.Dial("unix", c.Socket)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil || errors.Is(err, syscall.EAGAIN) // as many wait as may
}

// Ask asks the node that runs on this machine.
func (c *Cluster) Ask(ctx context.Context, what string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var dialer net.Dialer
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", c.Socket)
	}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://node/"+what, bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" && !c.Runs() {
		return fmt.Errorf("this machine is the node %q of a cluster, and no server with --cluster runs here, which this takes: start it", c.Node)
	} else if err != nil {
		return fmt.Errorf("the node %q of this machine doesn't answer, so that nobody knows whether it did this: %w", c.Node, cmp.Or(context.Cause(ctx), err))
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	switch {
	case err != nil:
		return err
	case res.StatusCode == http.StatusConflict:
		return ErrMoved
	case res.StatusCode != http.StatusOK:
		return errors.New(string(bytes.TrimSpace(data)))
	case answer == nil:
		return nil
	}
	return json.Unmarshal(data, answer)
}

// WriteCluster writes it.
func WriteCluster(dir string, c Cluster) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return ReplaceJSON(filepath.Join(dir, ClusterFile), c)
}
