package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/node"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/remote"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestTakeFails: a copy that can't take a file's place leaves the file where it is, and what only that had was listed
// before; the next try has the copy follow what it should.
func TestTakeFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "j.db"), filepath.Join(dir, "copy.db")
	write := func(path string, o journal.Options, tools ...string) {
		s, err := journal.Open(path, o)
		must.NoError(t, err)
		for _, tool := range tools {
			_, err := s.Append(journal.Written, journal.ToolEvolved, "", "", []byte(`{"tool":"`+tool+`","version":1}`))
			must.NoError(t, err)
		}
		must.NoError(t, s.Close())
	}
	write(path, journal.Options{}, "both")
	data, err := os.ReadFile(path)
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(copied, data, 0o600))
	must.NoError(t, os.Rename(path+".key", copied+".key"))
	in := func(node string) journal.Options {
		return journal.Options{Order: order.NewMemory(order.MemoryOptions{}).Open(), Profile: "p", Node: node}
	}
	write(copied, in("b"), "theirs")
	must.NoError(t, os.Rename(copied+".key", path+".key"))
	write(path, in("a"), "ours")
	key, err := os.ReadFile(path + ".key")
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(path+".key", []byte("x"), 0o600))
	before, err := os.ReadFile(path)
	must.NoError(t, err)

	cmd, out := &cobra.Command{}, &bytes.Buffer{}
	cmd.SetOut(out)
	r := repairing{cmd: cmd, files: map[string]string{"p": path}, name: "a"}
	begins := &journal.Beginning{Identity: "another", Place: 7}
	take := func() error {
		return r.take(t.Context(), node.Copies{From: "b", Files: map[string]string{"p": copied}}, begins)
	}
	if err := take(); err == nil || !strings.Contains(out.String(), "tool.evolved ours") {
		t.Errorf("%v: %s", err, out)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file is another one: %v", err)
	}
	must.NoError(t, os.WriteFile(path+".key", key, 0o600))
	must.NoError(t, take())
	m, err := journal.Member(path)
	must.NoError(t, err)
	if now, err := os.ReadFile(path + ".key"); m.Identity != "another" || m.Place != 7 || m.Seq != 2 || err != nil || !bytes.Equal(now, key) {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestJoins: a machine that is refused since it has a profile of its own is left as it was, and so is one whose files can't
// all be written; one that joins has a profile that is new since it was given copies, where the order doesn't keep what was
// before.
func TestJoins(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	m, theirs := order.NewMemory(order.MemoryOptions{}), t.TempDir()
	a, err := node.Open(t.Context(), node.Options{
		Order: m.Open(), Name: "a", Dir: theirs, Log: slog.New(slog.DiscardHandler),
		Paths: func() ([]string, error) { return filepath.Glob(filepath.Join(theirs, "*.db")) },
		Path:  func(profile string) (string, error) { return filepath.Join(theirs, profile+".db"), nil },
	})
	must.NoError(t, err)
	t.Cleanup(func() { _ = a.Close() })
	makes := func(profile string) {
		t.Helper()
		var o journal.Options
		a.Join(&o, profile)
		s, err := journal.Open(filepath.Join(theirs, profile+".db"), o)
		must.NoError(t, err)
		_, err = s.Change(0, journal.ToolEvolved, []byte(`{"tool":"x","version":1}`), "x")
		must.NoError(t, errors.Join(err, s.Close()))
	}
	profiles := []string{"p1", "p2", "p3", "p4", "p5", "p6"}
	for _, profile := range profiles {
		makes(profile)
	}
	dir, err := app.StateDir()
	must.NoError(t, err)
	copied := func() node.Copies {
		t.Helper()
		c, end, err := copyFiles(t.Context(), m.Open(), dir, "b", "", false)
		must.NoError(t, err)
		t.Cleanup(func() { must.NoError(t, end()) })
		return c
	}
	config := statefile.Cluster{Order: "memory", Node: "b"}
	last, err := profilePath("p6")
	must.NoError(t, err)
	must.NoError(t, os.MkdirAll(last+".key", 0o700))
	if err := takeCopies(t.Context(), dir, copied(), config); err == nil {
		t.Error("a file without its key is a node's")
	}
	left := func() (names []string) {
		for _, pattern := range []string{"cluster*", "profiles/*", "profiles/*/*"} {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			must.NoError(t, err)
			names = append(names, found...)
		}
		return names
	}
	if files := left(); !slices.Equal(files, []string{filepath.Dir(last), last + ".key"}) {
		t.Errorf("a join that failed halfway leaves %v", files)
	}
	must.NoError(t, os.RemoveAll(filepath.Dir(last)))
	c := copied()
	authority, err := journal.Member(c.Files[node.AuthorityProfile])
	must.NoError(t, err)
	must.NoError(t, m.Open().Trim(t.Context(), authority.Place))
	makes("new")

	own, err := profilePath("p3")
	must.NoError(t, err)
	must.NoError(t, os.MkdirAll(filepath.Dir(own), 0o700))
	must.NoError(t, os.WriteFile(own, nil, 0o600))
	if err := takeCopies(t.Context(), dir, c, config); err == nil || !strings.Contains(err.Error(), "a profile \"p3\" of its own") {
		t.Error(err)
	}
	if paths, err := profilePaths(); err != nil || len(paths) != 1 {
		t.Errorf("%v, %v", paths, err)
	}
	must.NoError(t, os.RemoveAll(filepath.Dir(own)))
	must.NoError(t, takeCopies(t.Context(), dir, c, config))
	must.NoError(t, asNode(t.Context(), m.Open(), config, slog.New(slog.DiscardHandler), func(n *node.Node) error {
		return n.Report(t.Context(), false)
	}))
	for _, profile := range append(profiles, "new") {
		path, err := profilePath(profile)
		must.NoError(t, err)
		if file, err := journal.Member(path); err != nil || file == nil || file.Seq != 1 {
			t.Errorf("of the profile %s: %+v, %v", profile, file, err)
		}
	}
}

// unfollowed is an order that is another one for who follows it from a place on, as a node does.
type unfollowed struct{ order.Order }

func (o unfollowed) Follow(ctx context.Context, from uint64, fn func(uint64, []byte) error) error {
	if from > 0 {
		return order.ErrOther
	}
	return o.Order.Follow(ctx, from, fn)
}

// TestJoinUntold: a machine that has all and can't tell the others that it joined is told what it is and what to do.
func TestJoinUntold(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	m := order.NewMemory(order.MemoryOptions{})
	a, err := node.Open(t.Context(), node.Options{Order: m.Open(), Name: "a", Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	must.NoError(t, err)
	t.Cleanup(func() { _ = a.Close() })
	folder, err := os.MkdirTemp("", "o") // short enough for a socket's path
	must.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	at := "unix:" + filepath.Join(folder, "s")
	l, err := remote.Listen(at, false)
	must.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = remote.Serve(ctx, l, unfollowed{m.Open()}, nil) })
	t.Cleanup(func() { stop(); serving.Wait() })

	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	if err := joinCluster(cmd, at, "b", false); err == nil || !strings.Contains(err.Error(), "this machine is the node b") || !strings.Contains(err.Error(), "'mcp-pif cluster leave --offline'") {
		t.Error(err)
	}
	if _, config, err := clusterOf(); err != nil || config.Node != "b" {
		t.Error(config, err)
	}
	must.NoError(t, leaveCluster(cmd, true))
	if _, config, err := clusterOf(); err != nil || config.Node != "" {
		t.Error(config, err)
	}
}

// TestHalfway: a repair whose order has some of a machine's files, and not all, says so.
func TestHalfway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := repairing{at: order.NewMemory(order.MemoryOptions{}).Open(), files: map[string]string{}, name: "a"}
	for i, o := range []order.Order{r.at, r.at, order.NewMemory(order.MemoryOptions{}).Open()} {
		profile := string(rune('a' + i))
		path := filepath.Join(dir, profile)
		s, err := journal.Open(path, journal.Options{Order: o, Profile: profile, Node: "a"})
		must.NoError(t, err)
		must.NoError(t, errors.Join(s.Barrier(t.Context()), s.Close()))
		r.files[profile] = path
		if lost, err := r.lost(t.Context()); lost || err != nil || r.others != (i == 2) {
			t.Errorf("%d files: %v, %v, others: %v", i+1, lost, err, r.others)
		}
	}
}
