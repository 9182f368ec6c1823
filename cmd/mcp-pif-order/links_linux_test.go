package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sys/unix"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// networked makes namespaces with a link between each two, and gives what runs ip in one of
// them. It skips the test where that isn't allowed.
func networked(t *testing.T, n int) (space func(i int) string, ip func(i int, args string)) {
	t.Helper()
	name := fmt.Sprintf("pif%d", os.Getpid())
	space = func(i int) string { return fmt.Sprint(name, "-", i) }
	run := func(args string) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, "ip", strings.Fields(args)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", args, err, out)
		}
		return nil
	}
	ip = func(i int, args string) {
		t.Helper()
		must.NoError(t, run("-n "+space(i)+" "+args))
	}
	hub := "-n " + space(n) + " "
	setup := []string{hub + "link add name hub type bridge", hub + "link set hub up"}
	for i := range n {
		setup = append(setup, hub+fmt.Sprintf("link add name v%d type veth peer name eth0 netns %s", i, space(i)), hub+fmt.Sprintf("link set v%d master hub up", i))
		for _, args := range []string{"addr add " + addressIn(i) + "/24 dev eth0", "link set eth0 up", "link set lo up"} {
			setup = append(setup, "-n "+space(i)+" "+args)
		}
	}
	for i := range n + 1 {
		setup = slices.Insert(setup, i, "netns add "+space(i))
		t.Cleanup(func() { _ = run("netns del " + space(i)) })
	}
	for _, args := range setup {
		if err := run(args); err != nil {
			t.Skipf("links are cut in network namespaces, which need iproute2 and the right to make them: %v", err)
		}
	}
	return space, ip
}

// clientIn is a client from within a namespace: one thread is there, which connects, until the test ends.
func clientIn(t *testing.T, space string) *http.Client {
	t.Helper()
	todo, entered := make(chan func()), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this
		file, err := os.Open(filepath.Join("/run/netns", space))
		if err == nil {
			err = errors.Join(unix.Setns(int(file.Fd()), unix.CLONE_NEWNET), file.Close())
		}
		for entered <- err; err == nil; {
			select {
			case do := <-todo:
				do()
			case <-t.Context().Done():
				return
			}
		}
	}()
	must.NoError(t, wait.For(t, entered, "a thread is in a namespace"))
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		done := make(chan struct{})
		select {
		case todo <- func() { defer close(done); conn, err = (&net.Dialer{}).DialContext(ctx, network, address) }:
			<-done
		case <-ctx.Done():
			err = ctx.Err()
		case <-t.Context().Done():
			err = t.Context().Err()
		}
		return conn, err
	}}}
}

// TestLinks: three servers and the three processes of their order, each in a network namespace,
// whose links are cut, some or all at once, while one of them is killed and another one paused: what
// clients saw of versions and of a rate one server could have answered. With all links cut nothing
// is answered. The control: with reads of what a node has, one that is cut off is found out.
func TestLinks(t *testing.T) {
	t.Parallel()
	space, ip := networked(t, 6)
	var processes []*process
	var nodes []*node
	var routes, ways []string
	for i := range 3 {
		routes, ways = append(routes, addressIn(i)+":7002"), append(ways, addressIn(i)+":7001")
	}
	dirs := []string{t.TempDir()}
	for i := range 3 {
		n := newNode(t, append(rated, "--cluster")...)
		n.space, n.http = space(3+i), clientIn(t, space(3+i))
		nodes, dirs = append(nodes, n), append(dirs, n.dir)
	}
	certificates(t, dirs, "o1", "o2", "o3", "n1", "n2", "n3")
	for i := range 3 {
		o := fmt.Sprint("o", i+1)
		p := &process{t: t, dir: dirs[0], space: space(i), args: []string{"--name", o, "--dir", o, "--listen", ways[i], "--route", routes[i],
			"--peers", routes[(i+1)%3] + "," + routes[(i+2)%3], "--tls-cert", o + ".pem", "--tls-key", o + ".key", "--tls-ca", "ca.pem"}}
		p.start()
		t.Cleanup(p.kill)
		processes = append(processes, p)
	}
	for i, n := range nodes {
		name := fmt.Sprint("n", i+1)
		n.says("this machine is the node", "cluster", []string{"init", "join"}[min(i, 1)], "--name", name,
			fmt.Sprintf("order://%s?cert=%s.pem&key=%s.key&ca=ca.pem", strings.Join(ways, ","), name, name))
		n.start()
	}
	// Of order and order, and of node and order.
	links := [][2]int{{0, 1}, {0, 2}, {1, 2}, {3, 0}, {3, 1}, {3, 2}, {4, 0}, {4, 1}, {4, 2}, {5, 0}, {5, 1}, {5, 2}}
	set := func(do string, links [][2]int) {
		t.Helper()
		for _, l := range links {
			ip(l[0], "route "+do+" blackhole "+addressIn(l[1])+"/32")
			ip(l[1], "route "+do+" blackhole "+addressIn(l[0])+"/32")
		}
	}
	w := watched(nodes)
	tried := func() {
		t.Helper()
		each(t, "clients try", w.tried, 0)
	}
	r := seeded(t)
	w.goes(t, func(_, whole func(string)) {
		whole("the cluster goes on")
		set("add", links)
		tried()
		from := w.acked.Load()
		tried()
		if n := w.acked.Load() - from; n > 0 {
			t.Errorf("with all links cut %d calls were acknowledged", n)
		}
		set("del", links)
		whole("after all links were cut")
		for range must.Full(1, 20) {
			r.Shuffle(len(links), func(i, j int) { links[i], links[j] = links[j], links[i] })
			cut := links[:1+r.IntN(len(links))]
			set("add", cut)
			p, n := processes[r.IntN(3)], nodes[r.IntN(3)]
			p.kill()
			_ = n.cmd.Process.Signal(syscall.SIGSTOP)
			tried()
			p.start()
			_ = n.cmd.Process.Signal(syscall.SIGCONT)
			set("del", cut)
			whole("after some links were cut")
		}
	})
	if order, rate := w.judge(t); order != porcupine.Ok || !rate {
		t.Errorf("the answers of one server: %v, of one rate: %v", order, rate)
	}

	nodes[2].kill()
	nodes[2].flags = append(nodes[2].flags, "--cluster-reads=local")
	nodes[2].start()
	var history []porcupine.Operation
	step := func(at int, what, tool string, version int, arguments map[string]any) {
		t.Helper()
		arguments["name"] = "c"
		a, call := nodes[at].does(tool, arguments), int64(2*len(history))
		history = append(history, porcupine.Operation{ClientId: at, Input: asked{what: what, tool: "c", at: version}, Output: told{version: a.StructuredContent.Version}, Call: call, Return: call + 1})
	}
	step(2, "evolve", "evolve", 0, map[string]any{"code": "1"})
	set("add", [][2]int{{5, 0}, {5, 1}, {5, 2}})
	step(0, "evolve", "evolve", 1, map[string]any{"code": "2"})
	step(2, "read", "describe", 0, map[string]any{})
	if got := porcupine.CheckOperationsTimeout(versions, history, wait.Limit(t)); got != porcupine.Illegal {
		t.Errorf("what a node that is cut off answers of its own: %v, %+v", got, history)
	}
}
