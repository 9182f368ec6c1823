package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/cmd/internal/node"
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
