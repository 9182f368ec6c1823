package fetch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// fields is the arguments of a request, or a part of its result.
type fields map[string]any

// valueOf makes a value of plain Go data.
func valueOf(x any) value.Value {
	switch x := x.(type) {
	case value.Value:
		return x
	case string:
		return value.Str(x)
	case int:
		return value.NewInt(int64(x))
	case bool:
		return value.Bool(x)
	case []any:
		var items []value.Value
		for _, item := range x {
			items = append(items, valueOf(item))
		}
		return value.FromSlice(items)
	case fields:
		r := &value.Record{}
		for _, k := range slices.Sorted(maps.Keys(x)) {
			r.Fields = append(r.Fields, value.Field{Key: k, Value: valueOf(x[k])})
		}
		return r
	}
	panic(fmt.Sprintf("no value of a %T", x))
}

// member is a member of a record, nil where there is none.
func member(v value.Value, key string) value.Value {
	r, _ := v.(*value.Record)
	if r == nil {
		return nil
	}
	for _, f := range r.Fields {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

// text is a member that is a string, "" where there is none.
func text(v value.Value, keys ...string) string {
	for _, k := range keys {
		v = member(v, k)
	}
	s, _ := v.(value.Str)
	return string(s)
}

func status(v value.Value) int64 {
	n, _ := member(v, "status").(value.Int)
	i, _ := n.Int64()
	return i
}

// open opens a capability; within is its scope, and its text too.
func open(t testing.TB, w world, within string, change ...func(*sdk.Capability)) *sdk.Handle {
	t.Helper()
	// What has to come may come late from a busy machine.
	c := sdk.Capability{Text: "fetch:" + within, Within: within, Timeout: maxTimeout * time.Second}
	for _, f := range change {
		f(&c)
	}
	h, err := sdk.Direct(t.Context(), w.plugin(), c)
	if err != nil {
		t.Fatalf("Open(%s): %v", within, err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

var ofType = plugintest.Types(Plugin())

// do makes a request that has to succeed.
func do(t testing.TB, h *sdk.Handle, args fields) value.Value {
	t.Helper()
	v, err := h.Invoke(t.Context(), "fetch.request", valueOf(args))
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	ofType(t, "fetch.request", v)
	return v
}

// fails makes a request that has to fail with a code, and a message that has
// all the words.
func fails(t testing.TB, h *sdk.Handle, args fields, code string, words ...string) {
	t.Helper()
	v, err := h.Invoke(t.Context(), "fetch.request", valueOf(args))
	failedWith(t, v, err, code, words...)
}

func failedWith(t testing.TB, v value.Value, err error, code string, words ...string) {
	t.Helper()
	f, ok := errors.AsType[sdk.Failure](err)
	if !ok {
		t.Fatalf("gave %v, %v; expected the failure %s", v, err, code)
	}
	if f.Code != code {
		t.Errorf("failed with %q; expected %s", err, code)
	}
	for _, w := range words {
		if !strings.Contains(f.Message+" "+f.Hint, w) {
			t.Errorf("failed with %q %q; expected the words %q", f.Message, f.Hint, w)
		}
	}
}

// serve runs a server on loopback.
func serve(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// raw runs a server that answers each connection by hand.
func raw(t testing.TB, answer func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	var running sync.WaitGroup
	t.Cleanup(func() { l.Close(); running.Wait() })
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { defer c.Close(); answer(c) })
		}
	})
	return "http://" + l.Addr().String()
}

// names is an internet of names: each resolution takes the next list of
// addresses of the name, the last one again and again. What is connected to is
// a server on loopback, after the guard has permitted the address.
type names struct {
	mu       sync.Mutex
	answers  map[string][][]string
	servers  map[string]string // address without port → host:port on loopback
	resolved []string
	dialled  []string
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.resolved = append(n.resolved, host)
	lists := n.answers[host]
	if len(lists) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.9.8.7:53", IsNotFound: true}
	}
	if len(lists) > 1 {
		n.answers[host] = lists[1:]
	}
	var all []netip.Addr
	for _, a := range lists[0] {
		all = append(all, netip.MustParseAddr(a))
	}
	return all, nil
}

func (n *names) connect(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	n.dialled = append(n.dialled, a.Addr().String())
	to, ok := n.servers[a.Addr().String()]
	n.mu.Unlock()
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(a), Err: errors.New("connection refused")}
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", to)
}

func (n *names) world() world { return world{resolver: n, connect: n.connect} }

// host is the host:port of a server.
func host(s *httptest.Server) string { return s.Listener.Addr().String() }
