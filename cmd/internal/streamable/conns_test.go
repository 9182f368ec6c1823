package streamable

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// addressed is a connection from an address.
type addressed struct {
	net.Conn
	from net.IP
}

func (a *addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: a.from, Port: 1} }

// closed reports whether the other end of a pipe is closed.
func closed(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now())
	_, err := c.Read(make([]byte, 1))
	timeout, ok := err.(net.Error)
	return !ok || !timeout.Timeout()
}

// A connGroup makes connections of some conns, a moment apart.
type connGroup struct {
	t  *testing.T
	cs *conns
}

func (g connGroup) open(from, principal string, states ...http.ConnState) (theirs net.Conn) {
	ours, theirs := net.Pipe()
	g.t.Cleanup(func() { ours.Close(); theirs.Close() })
	c := &addressed{ours, net.ParseIP(from)}
	ctx := g.cs.context(g.t.Context(), c)
	for _, state := range states {
		if g.cs.follow(c, state); state == http.StateActive && principal != "" {
			one := ctx.Value(connKey{}).(*conn)
			one.admitted, one.principal = true, principal
		}
	}
	time.Sleep(time.Millisecond)
	return theirs
}

const (
	newConn    = http.StateNew
	activeConn = http.StateActive
	idleConn   = http.StateIdle
)

// TestConnsGiveWay: there is room for one more connection, whatever others there are.
func TestConnsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := connGroup{t, &conns{most: 6, share: 3, unknown: time.Hour}}
		expect := func(when string, all []net.Conn, gone ...int) {
			t.Helper()
			for i, c := range all {
				want := false
				for _, n := range gone {
					want = want || n == i
				}
				if closed(c) != want {
					t.Errorf("%s: connection %d closed: %v", when, i, !want)
				}
			}
		}
		all := []net.Conn{
			g.open("10.0.0.1", "", newConn),
			g.open("10.0.0.1", "", newConn, activeConn, idleConn),
			g.open("10.0.0.1", "", newConn),
		}
		all = append(all, g.open("10.0.0.1", "", newConn))
		expect("one more than an address may have", all, 0)
		for _, ip := range []string{"2001:db8::1", "2001:db8::2", "2001:db8::3"} {
			all = append(all, g.open(ip, "", newConn))
		}
		expect("as many as may be", all, 0)
		all = append(all, g.open("2001:db8::ffff", "", newConn))
		expect("one network is one address", all, 0, 4)
		all = append(all, g.open("10.0.0.3", "ann", newConn, activeConn, idleConn))
		expect("the longest idle one on which nobody was admitted", all, 0, 4, 1)
		for range 5 {
			all = append(all, g.open("10.0.0.4", "ann", newConn, activeConn, idleConn))
		}
		expect("all of these, before one that was let in", all, 0, 1, 2, 3, 4, 5, 6, 7)
		all = append(all, g.open("10.0.0.4", "bob", newConn, activeConn, idleConn))
		expect("the longest idle of who has most", all, 0, 1, 2, 3, 4, 5, 6, 7, 8)
		if n := len(g.cs.all); n != 6 {
			t.Errorf("%d connections are counted", n)
		}
	})
}

// TestUnknownConnsEnd: a connection on which nobody was admitted isn't kept for long.
func TestUnknownConnsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := New(Options{Server: principals(), Verify: func() *Tokens {
			var tokens Tokens
			if err := tokens.Load([]byte("ann aaaaaaaaaaaaaaaaaaaaaaaa")); err != nil {
				t.Fatal(err)
			}
			return &tokens
		}().Verify})
		if err != nil {
			t.Fatal(err)
		}
		ln, ended := newPipes(), make(chan error, 1)
		go func() { ended <- h.Serve(t.Context(), ln) }()
		ask := func(path, token string) (*bufio.Reader, net.Conn) {
			c, err := ln.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			go fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", path, token)
			in := bufio.NewReader(c)
			r, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, r.Body)
			return in, c
		}
		for _, c := range []struct {
			path, token string
			lasts       time.Duration
		}{
			{"/healthz", "", 5 * time.Second},
			{Path, "bbbbbbbbbbbbbbbbbbbbbbbb", 5 * time.Second},
			{Path, "aaaaaaaaaaaaaaaaaaaaaaaa", 2 * time.Minute},
		} {
			in, conn := ask(c.path, c.token)
			began := time.Now()
			if _, err := in.ReadByte(); err != io.EOF {
				t.Errorf("%s: %v", c.path, err)
			}
			if took := time.Since(began); took != c.lasts {
				t.Errorf("%s with %q: an idle connection lasted for %v", c.path, c.token, took)
			}
			conn.Close()
		}
		ln.Close()
		<-ended
	})
}

// TestUnusedConns: connections that nothing was asked on are closed at the end, and no others.
func TestUnusedConns(t *testing.T) {
	g := connGroup{t, &conns{most: 10, share: 10, unknown: time.Hour}}
	for i, c := range []net.Conn{
		g.open("::1", "", newConn),
		g.open("::1", "", newConn, activeConn),
		g.open("::1", "", newConn, activeConn, idleConn),
	} {
		if i == 0 {
			g.cs.closeUnused()
		}
		if closed(c) != (i == 0) {
			t.Errorf("connection %d", i)
		}
	}
}

// TestChunksEndConnections: what came in chunks may have come with a length, too, and been
// taken for two requests by a proxy: nothing more is read on that connection.
func TestChunksEndConnections(t *testing.T) {
	url := start(t, Options{})
	for _, head := range []string{
		"GET /healthz", "POST /mcp", "GET /none",
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if deadline, ok := t.Deadline(); ok {
			_ = c.SetDeadline(deadline)
		}
		smuggled := "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
		fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", head, 5+len(smuggled), smuggled)
		in := bufio.NewReader(c)
		r, err := http.ReadResponse(in, nil)
		if err != nil || !r.Close {
			t.Fatalf("%s: %+v %v", head, r, err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		if rest, _ := io.ReadAll(in); len(rest) > 0 {
			t.Errorf("%s: a second answer: %q", head, rest)
		}
	}
}
