package originproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// serve serves a proxy, and gives a client of it.
func serve(t *testing.T, o Options) *http.Client {
	t.Helper()
	p, err := New(o)
	must.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	go p.Serve(l)
	t.Cleanup(p.Close)
	at := &url.URL{Scheme: "http", Host: l.Addr().String()}
	return &http.Client{Transport: &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return at, nil }, DisableKeepAlives: true}}
}

// A program reaches the origins that are listed, by tunnel or plainly, and no other: not by
// another port or scheme, nor by a name that leads to this machine.
func TestProxy(t *testing.T) {
	t.Parallel()
	hits := &sync.Map{}
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Store(r.Host, r.Header.Get("Proxy-Authorization"))
		_, _ = io.WriteString(w, "hello "+r.URL.Path)
	})
	secure, plain, other := httptest.NewTLSServer(hello), httptest.NewServer(hello), httptest.NewServer(hello)
	for _, s := range []*httptest.Server{secure, plain, other} {
		t.Cleanup(s.Close)
		t.Cleanup(s.CloseClientConnections)
	}
	_, port, _ := net.SplitHostPort(secure.Listener.Addr().String())
	var told []string
	asked := 0
	client := serve(t, Options{
		Origins: []string{secure.URL, plain.URL, "https://rebind.example:" + port, "https://gone.example"},
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			if asked++; host == "rebind.example" {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::1"), netip.MustParseAddr("169.254.169.254")}, nil
			}
			return nil, errors.New("no such name")
		},
		Refused: func(what string) { told = append(told, what) },
	})
	client.Transport.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	for at, want := range map[string]string{
		secure.URL + "/a": "200 hello /a", plain.URL + "/b": "200 hello /b",
		other.URL + "/c":          "403 mcp-pif: this isn't among the origins",
		"https://other.example/d": "Forbidden",
		strings.Replace(plain.URL, "http:", "https:", 1) + "/e":  "error",
		"https://rebind.example:" + port + "/f":                  "Bad Gateway",
		"https://gone.example/":                                  "Bad Gateway",
		strings.Replace(secure.URL, "127.0.0.1", "localhost", 1): "Forbidden",
		strings.Replace(secure.URL, "https:", "http:", 1) + "/g": "403",
	} {
		got := ""
		if answer, err := client.Get(at); err != nil {
			got = "error " + err.Error()
		} else {
			body, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			got = answer.Status[:3] + " " + string(body)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
	for _, s := range []*httptest.Server{other} {
		if _, hit := hits.Load(s.Listener.Addr().String()); hit {
			t.Errorf("%s was reached", s.URL)
		}
	}
	if !slices.Contains(told, "other.example:443") || asked != 2 {
		t.Errorf("told of %q, %d names were resolved", told, asked)
	}
	if _, err := New(Options{Origins: []string{"ftp://x"}}); err == nil {
		t.Error("ftp is an origin")
	}
}

// A closed proxy ends what goes through it.
func TestClose(t *testing.T) {
	t.Parallel()
	far, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	defer far.Close()
	p, err := New(Options{Origins: []string{"https://" + far.Addr().String()}})
	must.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	go p.Serve(l)
	c, err := net.Dial("tcp", l.Addr().String())
	must.NoError(t, err)
	defer c.Close()
	must.Succeed(t)(io.WriteString(c, "CONNECT "+far.Addr().String()+" HTTP/1.1\r\nHost: x\r\n\r\n"))
	buffer := make([]byte, 100)
	if n, err := c.Read(buffer); err != nil || !strings.Contains(string(buffer[:n]), "200 Connection") {
		t.Fatalf("%q, %v", buffer[:n], err)
	}
	p.Close()
	if _, err := io.ReadAll(c); err != nil {
		t.Log(err) // reset, or ended
	}
}

// A program has so many connections at once, whatever it does with them, and none that was refused.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	p, err := New(Options{})
	must.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	go p.Serve(l)
	defer p.Close()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		must.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		return c
	}
	ask := func(c net.Conn) string {
		_, _ = io.WriteString(c, "GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n")
		answer, err := io.ReadAll(c) // to its end
		if len(answer) == 0 {
			return fmt.Sprint(err)
		}
		return string(answer)
	}
	var idle []net.Conn
	for range maxConnections {
		idle = append(idle, dial())
	}
	if got, err := io.ReadAll(dial()); !strings.Contains(string(got), " 503 ") {
		t.Errorf("one more is answered %q, %v", got, err)
	}
	if got := ask(idle[0]); !strings.Contains(got, " 403 ") {
		t.Errorf("one of those is answered %q", got)
	}
	got := ""
	for range 1000 { // it is closed on the other side first, or soon
		if got = ask(dial()); strings.Contains(got, " 403 ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("after one was closed the next is answered %q", got)
}
