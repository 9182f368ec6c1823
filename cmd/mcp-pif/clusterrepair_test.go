//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/postgres"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/postgres/pgtest"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// A clusterNode is a machine of a cluster, whose server comes and goes.
type clusterNode struct {
	t     *testing.T
	name  string
	state string
	flags []string
	s     *webServer
}

func (n *clusterNode) start() {
	n.t.Helper()
	n.s = startWeb(n.t, n.state, append(n.flags, "--cluster")...)
	wait.Until(n.t, "node "+n.name+" is ready", func() bool { return n.s.readyz() == http.StatusOK })
}

// joined makes a machine a node, whose server keeps in the order what others lack only.
func joined(t *testing.T, verb, name, url string) *clusterNode {
	t.Helper()
	n := &clusterNode{t: t, name: name, state: t.TempDir(), flags: []string{"--cluster-keep=100ms"}}
	if name == "n2" {
		n.flags = append(n.flags, "--deny=kv:notes")
	}
	says(t, n.state, [2]string{"cluster " + verb + " --name " + name + " " + url, "this machine is the node " + name})
	n.start()
	return n
}

// file is that of the node's profile.
func (n *clusterNode) file() string {
	return filepath.Join(n.state, "mcp-pif", "profiles", "http", app.JournalFile)
}

// has makes sure that a node has tools.
func (n *clusterNode) has(tools ...string) {
	n.t.Helper()
	names := n.s.connect("", eras[1]).names()
	for _, tool := range tools {
		if !slices.Contains(names, tool) {
			n.t.Errorf("node %s lacks %s: %v", n.name, tool, names)
		}
	}
}

// stops has a server start that serves nothing, or ends, and returns its log.
func (n *clusterNode) stops() string {
	n.t.Helper()
	cmd := self("mcp-pif", "--http", "127.0.0.1:0", "--cluster")
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "XDG_STATE_HOME=") }), "XDG_STATE_HOME="+n.state)
	out, err := cmd.CombinedOutput()
	if err == nil {
		n.t.Errorf("node %s ended well: %s", n.name, out)
	}
	return string(out)
}

var newestEvent = regexp.MustCompile(`\d+:[0-9a-f]{64}`)

// TestClusterRepair: the order is rid of what all nodes have, and who joins then has all; a
// node whose file was damaged, or that another program wrote, or that was away for too long
// has what the others have after 'cluster repair', which says what only it had; and so have
// all of them after the database is lost, and after its end is.
func TestClusterRepair(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t)
	url := pg.URL()
	nodes := []*clusterNode{joined(t, "init", "n1", url), joined(t, "join", "n2", url)}
	nodes[0].s.connect("", eras[1]).makes("first", "1")
	at, err := postgres.Open(t.Context(), url, nil)
	must.NoError(t, err)
	defer at.Close()
	// What the order had when first was made.
	trimmed := func(what string, place uint64) {
		t.Helper()
		wait.Until(t, what, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
			defer cancel()
			return errors.Is((&journal.Membership{Point: journal.Point{Place: place}}).Follows(ctx, at), order.ErrTrimmed)
		})
	}
	trimmed("the order begins later", 0)
	wait.Until(t, "n1 tells that n2 was given something else", func() bool {
		return strings.Contains(onMachine(t, nodes[0].state, "cluster status"), "has other grants\n")
	})
	n3 := joined(t, "join", "n3", url)
	nodes = append(nodes, n3)
	n3.has("first")
	nodes[1].s.connect("", eras[1]).makes("second", "1")
	n3.has("first", "second")

	must.NoError(t, n3.s.cmd.Process.Signal(syscall.SIGSTOP)) // it can't answer, and goes on later
	says(t, n3.state, [2]string{"cluster repair", "end it first"})
	must.NoError(t, n3.s.cmd.Process.Signal(syscall.SIGCONT))

	// Damage to its file.
	n3.s.stop()
	says(t, n3.state, [2]string{"cluster repair", "http: whole"})
	f, err := os.OpenFile(n3.file(), os.O_RDWR, 0)
	must.NoError(t, err)
	info, err := f.Stat()
	must.NoError(t, err)
	for at := int64(4096 + 3000); at < info.Size(); at += 4096 {
		_, err := f.WriteAt([]byte(strings.Repeat("\xff", 800)), at)
		must.NoError(t, err)
	}
	must.NoError(t, f.Close())
	says(t, n3.state, [2]string{"cluster repair", "http: was damaged: "})
	n3.start()
	n3.has("first", "second")

	n3.s.stop()
	if os.Getenv("PIF_FULL") != "" {
		writtenByAnother(t, n3)
		behind(t, at, nodes)
	}

	// The database is lost.
	for _, n := range nodes {
		if n != n3 {
			n.s.stop()
		}
	}
	must.NoError(t, at.Close())
	pg.Exec("DROP TABLE mcp_pif_order, mcp_pif_proposals")
	if log := nodes[0].stops(); !strings.Contains(log, "another order") || !strings.Contains(log, "cluster repair") {
		t.Errorf("with another order: %s", log)
	}
	repair(t, nodes, "")
	for _, n := range nodes {
		n.start()
		n.has("first", "second")
	}
	n3.s.connect("", eras[1]).makes("third", "1")
	nodes[0].has("third")

	// Its end is lost.
	for _, n := range nodes {
		n.s.stop()
	}
	pg.Exec("DELETE FROM mcp_pif_proposals WHERE place > (SELECT last - 2 FROM mcp_pif_order)")
	pg.Exec("UPDATE mcp_pif_order SET last = last - 2")
	pg.Exec("CREATE DATABASE other")
	another := strings.Replace(url, "/postgres?", "/other?", 1)
	if log := nodes[2].stops(); !strings.Contains(log, "the order ends before") {
		t.Errorf("with a part of the order: %s", log)
	}
	says(t, nodes[2].state, [2]string{"cluster repair", "give it to 'mcp-pif cluster repair ORDER'"})
	repair(t, nodes[:2], " --without n3 "+another)
	for _, n := range nodes[:2] {
		n.start()
		n.has("first", "second", "third")
	}
	says(t, n3.state, [2]string{"cluster repair " + another, "start it with"})
	n3.start()
	nodes[0].s.connect("", eras[1]).makes("fourth", "1")
	anchor := ""
	for _, n := range nodes {
		n.has("first", "second", "third", "fourth")
	}
	for _, n := range nodes {
		n.s.stop()
		command := "journal verify --profile http"
		if anchor != "" {
			command += " --anchor " + anchor
		}
		out := onMachine(t, n.state, command)
		if anchor = newestEvent.FindString(out); anchor == "" {
			t.Errorf("node %s: %s: %s", n.name, command, out)
		}
	}
}

// repair runs the command on all machines at once.
func repair(t *testing.T, nodes []*clusterNode, args string) {
	t.Helper()
	outs := make(chan string, len(nodes))
	for _, n := range nodes {
		go func() { outs <- onMachine(t, n.state, "cluster repair"+args) }()
	}
	longest := 0
	for range nodes {
		out := wait.For(t, outs, "the end of cluster repair")
		if !strings.Contains(out, "start it with") {
			t.Errorf("cluster repair%s: %s", args, out)
		}
		longest += strings.Count(out, "http: this node's is the longest")
	}
	if longest != 1 {
		t.Errorf("%d nodes gave the profile", longest)
	}
}

// writtenByAnother has another program write a node's file.
func writtenByAnother(t *testing.T, n3 *clusterNode) {
	t.Helper()
	db, err := sql.Open("sqlite", n3.file())
	must.NoError(t, err)
	_, err = db.Exec(`INSERT INTO events SELECT seq+1, hash, prev, time, kind, run, branch, data FROM events ORDER BY seq DESC LIMIT 1`)
	must.NoError(t, errors.Join(err, db.Close()))
	says(t, n3.state, [2]string{"cluster repair --from n2", "http: was damaged: "})
	n3.start()
	n3.has("first", "second")
	n3.s.stop()
}

// behind has the order go on without what a node lacks.
func behind(t *testing.T, at order.Order, nodes []*clusterNode) {
	t.Helper()
	n3 := nodes[2]
	place := func(n *clusterNode) uint64 {
		m, err := journal.Member(n.file())
		if err != nil || m == nil {
			t.Fatal(m, err)
		}
		return m.Place
	}
	nodes[0].s.connect("", eras[1]).makes("meanwhile", "1")
	wait.Until(t, "node n1 has more than n3", func() bool { return place(nodes[0]) > place(n3)+20 })
	must.NoError(t, at.Trim(t.Context(), place(n3)+20))
	if log := n3.stops(); !strings.Contains(log, "no longer has what comes next") {
		t.Errorf("behind the order's beginning: %s", log)
	}
	if out := onMachine(t, n3.state, "cluster repair"); !strings.Contains(out, "~authority: is the node n") || !strings.Contains(out, "start it with") {
		t.Errorf("behind the order's beginning: %s", out)
	}
	n3.start()
	n3.has("first", "second", "meanwhile")
	n3.s.stop()
}
