package fetch

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

var quiet = log.New(io.Discard, "", 0)

// forbidden are addresses that no name may lead to.
var forbidden = []string{
	"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "169.254.1.1",
	"192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "192.88.99.1",
	// metadata services: AWS, Azure and GCP; Azure's platform; Alibaba; Oracle; AWS's tasks and IPv6; GCP's IPv6; Packet
	"169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "169.254.170.2", "fd00:ec2::254", "fd20:ce::254", "192.80.8.124",
	"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "fe80::1", "fe80::1%1", "fec0::1", "fc00::1", "fd12:3456::1", "ff02::1",
	"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:a00:1::1", "2001::7f00:1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
	"2001:db8::1", "100::1", "3fff::1", "5f00::1", "2001:10::1", "2606:4700:0:0:0:5efe:7f00:1", "2606:4700::200:5efe:a00:1", "3ffe::1",
}

var allowed = []string{"93.184.215.14", "1.1.1.1", "168.63.129.17", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::200e"}

func TestGuard(t *testing.T) {
	g := &guard{port: 443}
	for _, s := range forbidden {
		a := netip.MustParseAddr(s)
		if g.permits(netip.AddrPortFrom(a, 443)) {
			t.Errorf("%s is permitted", a)
		}
		if g.control("tcp6", netip.AddrPortFrom(a, 443).String(), nil) == nil {
			t.Errorf("%s is connected to", a)
		}
	}
	for _, s := range allowed {
		a := netip.AddrPortFrom(netip.MustParseAddr(s), 443)
		if !g.permits(a) || g.control("tcp4", a.String(), nil) != nil {
			t.Errorf("%s is refused", a)
		}
		for network, address := range map[string]string{"tcp4": netip.AddrPortFrom(a.Addr(), 22).String(), "udp4": a.String(), "unix": "/run/x.sock"} {
			if g.control(network, address, nil) == nil {
				t.Errorf("%s %s is connected to", network, address)
			}
		}
		if mapped := netip.AddrFrom16(a.Addr().As16()); a.Addr().Is4() && g.permits(netip.AddrPortFrom(mapped, 443)) {
			t.Errorf("%s is permitted", mapped)
		}
	}
	by := &guard{port: 8080, granted: netip.MustParseAddr("127.0.0.1")}
	for address, want := range map[string]bool{
		"127.0.0.1:8080": true, "127.0.0.1:8081": false, "127.0.0.2:8080": false, "93.184.215.14:8080": false, "[::1]:8080": false, "[::ffff:127.0.0.1]:8080": false,
	} {
		if by.permits(netip.MustParseAddrPort(address)) != want {
			t.Errorf("of 127.0.0.1:8080, %s is permitted: %v", address, !want)
		}
	}
}

// TestControl: the dialler's own check refuses an address even where nothing
// before it did, and no connection is made.
func TestControl(t *testing.T) {
	var connected atomic.Int32
	at := raw(t, func(net.Conn) { connected.Add(1) })
	a := netip.MustParseAddrPort(strings.TrimPrefix(at, "http://"))
	d := world{}.newDialer(guard{port: a.Port()})
	if c, err := d.connect(t.Context(), a); err == nil {
		c.Close()
		t.Errorf("%s is connected to", a)
	}
	d = world{}.newDialer(guard{port: a.Port(), granted: a.Addr()})
	c, err := d.connect(t.Context(), a)
	must.NoError(t, err)
	io.ReadAll(c)
	c.Close()
	if n := connected.Load(); n != 1 {
		t.Errorf("%d connections were made, expected 1", n)
	}
}

// TestNamesOfForbidden: a granted name that leads to a forbidden address is
// refused, and the message doesn't say where it led.
func TestNamesOfForbidden(t *testing.T) {
	for _, a := range forbidden {
		n := &names{answers: map[string][][]string{"evil.example": {{a}}}, servers: map[string]string{}}
		h := open(t, n.world(), "https://evil.example")
		_, err := h.Invoke(t.Context(), "fetch.request", valueOf(fields{"url": "https://evil.example/"}))
		failedWith(t, nil, err, "denied", "evil.example", "address")
		if shown := strings.ReplaceAll(err.Error(), "http://127.0.0.1:8080/**", ""); strings.Contains(shown, a) && len(a) > 3 {
			t.Errorf("the message tells the address %s: %v", a, err)
		}
		if len(n.dialled) > 0 {
			t.Errorf("%v was dialled", n.dialled)
		}
	}
}

// TestMixedAddresses: of several addresses the bad ones are skipped.
func TestMixedAddresses(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) })
	n := &names{
		answers: map[string][][]string{"mixed.example": {{"127.0.0.1", "10.0.0.1", "::1", "1.1.1.1", "::ffff:192.168.0.1", "93.184.215.14", "169.254.169.254"}}},
		servers: map[string]string{"93.184.215.14": host(s), "127.0.0.1": host(s), "10.0.0.1": host(s)},
	}
	inTurn := n.world()
	inTurn.head = time.Hour // on a busy machine the second might be tried first, else
	got := do(t, open(t, inTurn, "http://mixed.example"), fields{"url": "http://mixed.example/"})
	if text(got, "body") != "mixed.example" {
		t.Errorf("gave %s", shown(got))
	}
	if diff := cmp.Diff([]string{"1.1.1.1", "93.184.215.14"}, n.dialled); diff != "" {
		t.Error(diff)
	}
}

// TestRebinding: a name that leads to a public address first and to a private
// one afterwards gets no connection the second time.
func TestRebinding(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "public")
	})
	inside := serve(t, func(w http.ResponseWriter, r *http.Request) { t.Error("the private server was reached") })
	n := &names{
		answers: map[string][][]string{"rebind.example": {{"93.184.215.14"}, {"127.0.0.1"}}},
		servers: map[string]string{"93.184.215.14": host(s), "127.0.0.1": host(inside)},
	}
	h := open(t, n.world(), "http://rebind.example")
	if got := do(t, h, fields{"url": "http://rebind.example/"}); text(got, "body") != "public" {
		t.Errorf("gave %s", shown(got))
	}
	fails(t, h, fields{"url": "http://rebind.example/"}, "denied")
	if diff := cmp.Diff([]string{"93.184.215.14"}, n.dialled); diff != "" {
		t.Error(diff)
	}
}

// TestBeforeResolution: what lies outside isn't even looked up.
func TestBeforeResolution(t *testing.T) {
	n := &names{answers: map[string][][]string{"api.example": {{"93.184.215.14"}}}}
	h := open(t, n.world(), "https://api.example/v1/**", func(c *sdk.Capability) { c.Verbs = []string{"get"} })
	for _, args := range []fields{
		{"url": "https://api.example/v2"}, {"url": "https://evil.example/v1"}, {"url": "http://api.example/v1"}, {"url": "https://api.example:444/v1"},
		{"url": "https://api.example/v1", "method": "DELETE"}, {"url": "https://x.api.example/v1"},
	} {
		fails(t, h, args, "denied", "fetch:https://api.example/v1/**")
	}
	for _, args := range []fields{
		{"url": "https://api.example/v1/../v2"}, {"url": "https://u:p@api.example/v1"}, {"url": `https://api.example\v1`}, {"url": "https://api.example/v1", "headers": fields{"Host": "x"}},
		{"url": "https://api.example/v1", "method": "BREW"}, {"url": "https://api.example/v1", "timeout": "x"}, {"url": "https://api.example/v1?a=" + strings.Repeat("b", maxURL)},
	} {
		fails(t, h, args, "invalid")
	}
	fails(t, h, fields{"url": "https://api.example@evil.example/v1"}, "invalid", "user or password")
	if len(n.resolved) > 0 {
		t.Errorf("%v was resolved", n.resolved)
	}
}

// TestLocalhost: the name is refused with words on what to grant, before it is
// resolved, even where it was granted.
func TestLocalhost(t *testing.T) {
	n := &names{answers: map[string][][]string{"localhost": {{"93.184.215.14"}}, "x.localhost": {{"93.184.215.14"}}}}
	fails(t, open(t, n.world(), "http://localhost:8080"), fields{"url": "http://localhost:8080/x"}, "denied", "fetch:http://127.0.0.1:8080/**")
	fails(t, open(t, n.world(), "http://*.localhost"), fields{"url": "http://x.localhost/"}, "denied", "fetch:http://127.0.0.1/**")
	if len(n.resolved) > 0 {
		t.Errorf("%v was resolved", n.resolved)
	}
}

// TestGrantsByAddress: some addresses can't be granted; they are no server's, or
// another address in disguise.
func TestGrantsByAddress(t *testing.T) {
	for _, a := range []string{
		"0.0.0.0", "0.0.0.1", "255.255.255.255", "224.0.0.1", "[::]", "[ff02::1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2001::7f00:1]", "[fe80::5efe:7f00:1]",
		"[::ffff:127.0.0.1]", "[fe80::1%25lo]", "127.1", "2130706433",
	} {
		if _, err := sdk.Direct(t.Context(), Plugin(), sdk.Capability{Within: "http://" + a + "/**"}); err == nil {
			t.Errorf("%s can be granted", a)
		}
	}
	for _, a := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "[fd00::1]", "93.184.215.14"} {
		open(t, world{}, "http://"+a+"/**")
	}
}

func TestDenied(t *testing.T) {
	reached := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { reached++ })
	h := open(t, world{}, s.URL, func(c *sdk.Capability) {
		c.Denies = []sdk.Deny{{Within: s.URL + "/admin/**"}, {Verbs: []string{"delete"}, Within: s.URL + "/**"}}
	})
	fails(t, h, fields{"url": s.URL + "/admin"}, "denied")
	fails(t, h, fields{"url": s.URL + "/Admin/x"}, "denied")
	fails(t, h, fields{"url": s.URL + "/x", "method": "DELETE"}, "denied")
	if reached > 0 {
		t.Error("a denied request was made")
	}
	do(t, h, fields{"url": s.URL + "/x", "method": "PUT"})

	n := &names{answers: map[string][][]string{"a.example": {{"93.184.215.14"}}}, servers: map[string]string{"93.184.215.14": host(s)}}
	h = open(t, n.world(), "http://*.example", func(c *sdk.Capability) { c.Denies = []sdk.Deny{{Within: "http://93.184.215.14"}} })
	fails(t, h, fields{"url": "http://a.example/"}, "denied")
	if _, err := sdk.Direct(t.Context(), Plugin(), sdk.Capability{Within: s.URL, Denies: []sdk.Deny{{Within: "https://a*"}}}); err == nil {
		t.Error("a denial that can't be read is passed over")
	}
}

// TestHeaderAttacks: nothing a program gives as a header changes where the
// request goes, what its method is, or where it ends.
func TestHeaderAttacks(t *testing.T) {
	reached := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { reached++ })
	h := open(t, world{}, s.URL)
	for _, name := range []string{
		"Host", "host", "HOST", "Connection", "Transfer-Encoding", "transfer_encoding", "Content-Length", "content.length", "TE", "Trailer", "Upgrade", "Keep-Alive", "Expect",
		"Proxy-Authorization", "Proxy-Connection", "proxy_x", "Proxy", "HTTP2-Settings",
		"X-HTTP-Method-Override", "x_http_method_override", "X-HTTP-Method", "X-Method-Override", "X.Method.Override", "_method", "X-Method", "HTTP-Method-Override",
		"X-Forwarded-Host", "X-Forwarded-Prefix", "Forwarded", "X-Original-URL", "X-Rewrite-URL", "x_original_url", "X-Host",
	} {
		fails(t, h, fields{"url": s.URL, "headers": fields{name: "x"}}, "invalid", name)
	}
	for _, name := range []string{"", " ", "a b", "a:", ":method", ":authority", "a\r\nb", "a\x00", "é", "a\t", "(x)", "X-Y: z\r\nHost", "x "} {
		fails(t, h, fields{"url": s.URL, "headers": fields{name: "x"}}, "invalid", "name of a header")
	}
	for _, v := range []string{"a\r\nHost: evil", "a\nb", "a\rb", "a\x00b", "a\x7f", "a\x01", "\r\n\r\nGET / HTTP/1.1"} {
		fails(t, h, fields{"url": s.URL, "headers": fields{"X-A": v}}, "invalid", "control character")
		fails(t, h, fields{"url": s.URL, "headers": fields{"X-A": []any{"a", v}}}, "invalid", "control character")
	}
	fails(t, h, fields{"url": s.URL, "headers": fields{"X-A": "a", "x-a": "b"}}, "invalid", "two spellings")
	fails(t, h, fields{"url": s.URL, "headers": fields{"X-A": strings.Repeat("a", maxHeaderBytes)}}, "invalid", "bytes")
	typed := func(body string, types ...any) fields {
		return fields{"url": s.URL, "body": body, "headers": fields{"content-type": types}}
	}
	part := func(disposition string) string {
		return "--x\r\ncontent-disposition: " + disposition + "\r\n\r\ndelete\r\n--x--\r\n"
	}
	many := fields{}
	for i := range maxHeaderFields + 1 {
		many[fmt.Sprint("x-", i)] = ""
	}
	fails(t, h, fields{"url": s.URL, "headers": many}, "invalid", "more than")
	for _, args := range []fields{
		{"url": s.URL + "/?_method=DELETE"}, {"url": s.URL + "/?a=b&_METHOD=delete"}, {"url": s.URL + "/?%5fmethod=put"}, {"url": s.URL + "/?X-HTTP-Method-Override=PUT"},
		{"url": s.URL + "/?a=1;_method=DELETE"}, {"url": s.URL + "/?.method=DELETE"}, {"url": s.URL + "/?[_method]=DELETE"}, {"url": s.URL + "/?_method=DELETE%"}, {"url": s.URL + "/?_method%00x=DELETE"},
		typed("_method%00%zz=DELETE", "application/x-www-form-urlencoded"),
		typed("a=b&_method=delete", "application/x-www-form-urlencoded; charset=utf-8"),
		{"url": s.URL, "body": "_method=delete"},
		{"url": s.URL, "body": "X21ldGhvZD1kZWxldGU=", "encoding": "base64"},
		typed("_method=delete", "application/x-www-form-urlencoded; a=1; a=2"),
		typed("_method=delete", ""),
		typed("_method=delete", "text/plain", "application/x-www-form-urlencoded"),
		typed(part(`form-data; name="_method"`), "multipart/form-data; boundary=x"),
		typed(part(`form-data; name="_method"`), "multipart/form-data"),
		typed(part(`form-data; name="_method"`), "multipart/form-data; boundary=x; boundary=y"),
		typed(part(`form-data; name="_method"`)),
		typed(part("form-data;\r\n\tNAME=_Method"), "Multipart/Form-Data; boundary=x"),
		typed(part(`form-data; name="\_method"`), "multipart/form-data; boundary=x"),
		typed(part("form-data; name*=utf-8''%5fmethod"), "multipart/form-data; boundary=x"),
		typed(part(`form-data; name="a"; name="_method"`), "multipart/form-data; boundary=x"),
	} {
		args["method"] = "POST"
		fails(t, h, args, "invalid", "_method")
	}
	if reached > 0 {
		t.Errorf("%d requests were made", reached)
	}
	do(t, h, fields{"url": s.URL + "/?_method=post&x_method=DELETE", "method": "POST"})
	for _, args := range []fields{
		{"url": s.URL, "body": "a=_method=delete"}, {"url": s.URL, "body": "method=delete"}, {"url": s.URL, "json": "&_method=delete"}, typed("_method=delete", "text/plain"),
		typed(part(`form-data; name="a"; filename="_method"`)+`<input name="_method" value="delete">`, "multipart/form-data; boundary=x"),
		typed("_method=delete\r\n"+part(`form-data; name="_method"`), "message/http"),
	} {
		args["method"] = "POST"
		do(t, h, args)
	}
}

// TestWire: what arrives is one request, as it was checked, byte by byte.
func TestWire(t *testing.T) {
	got := make(chan string, 1)
	at := raw(t, func(c net.Conn) {
		buffer := make([]byte, 4<<10)
		n, _ := c.Read(buffer)
		got <- string(buffer[:n])
		io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
	})
	h := open(t, world{}, at)
	do(t, h, fields{"url": at + "/a%2Cb/ü?q=%0d%0aX:%20y&z={}", "headers": fields{"x-a": "b"}})
	want := "GET /a%2Cb/%C3%BC?q=%0d%0aX:%20y&z=%7B%7D HTTP/1.1\r\nHost: " + strings.TrimPrefix(at, "http://") + "\r\nUser-Agent: mcp-pif/1.0.0\r\nAccept-Encoding: gzip\r\nX-A: b\r\n\r\n"
	if diff := cmp.Diff(want, <-got); diff != "" {
		t.Error(diff)
	}
}

// TestMain names a proxy in the environment, of all tests: net/http reads it
// once.
func TestMain(m *testing.M) {
	for _, name := range proxyVariables {
		os.Setenv(name, "http://proxy.example:3128")
	}
	os.Exit(m.Run())
}

var proxyVariables = []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"}

// TestProxies: the environment's proxy isn't asked, nor even looked up.
func TestProxies(t *testing.T) {
	req, err := http.NewRequest("GET", "http://a.example/", nil)
	must.NoError(t, err)
	if proxy, err := http.ProxyFromEnvironment(req); proxy == nil {
		t.Fatalf("the environment names no proxy: %v", err)
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "direct") })
	n := &names{answers: map[string][][]string{"a.example": {{"93.184.215.14"}}}, servers: map[string]string{"93.184.215.14": host(s)}}
	if got := do(t, open(t, n.world(), "http://a.example"), fields{"url": "http://a.example/"}); text(got, "body") != "direct" {
		t.Errorf("gave %s", shown(got))
	}
	if diff := cmp.Diff([]string{"a.example"}, n.resolved); diff != "" {
		t.Error(diff)
	}
}

// TestNoSharedConnections: a connection that one capability made isn't used by
// another one, however it is kept alive.
func TestNoSharedConnections(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.RemoteAddr) })
	first, second := open(t, world{}, s.URL+"/a/**"), open(t, world{}, s.URL+"/b/**")
	ask := func() string { return text(do(t, first, fields{"url": s.URL + "/a"}), "body") }
	one, again := ask(), ask()
	// net/http doesn't keep a connection of which it hasn't heard soon enough that the
	// request was written, as on a busy machine.
	for n := 0; one != again && n < 100; n++ {
		one, again = again, ask()
	}
	if again != one {
		t.Errorf("no connection is kept: %s, then %s", one, again)
	}
	if other := text(do(t, second, fields{"url": s.URL + "/b"}), "body"); other == one {
		t.Error("two capabilities share a connection")
	}
}

// TestRace: an address that doesn't answer only delays the next one.
func TestRace(t *testing.T) {
	n := &names{answers: map[string][][]string{"a.example": {{"1.1.1.1", "93.184.215.14"}}}}
	w := n.world()
	here, there := net.Pipe()
	defer there.Close()
	abandoned := make(chan struct{})
	w.connect = func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
		if a.Addr().String() == "1.1.1.1" {
			<-ctx.Done()
			close(abandoned)
			return nil, ctx.Err()
		}
		return here, nil
	}
	c, err := w.newDialer(guard{port: 80}).dial(t.Context(), "tcp", "a.example:80")
	must.NoError(t, err)
	c.Close()
	wait.For(t, abandoned, "the end of the first")
}

// TestLateConnection: a connection that is made after the dial was given up is
// closed.
func TestLateConnection(t *testing.T) {
	n := &names{answers: map[string][][]string{"a.example": {{"93.184.215.14"}}}}
	w := n.world()
	here, there := net.Pipe()
	trying, goOn := make(chan struct{}), make(chan struct{})
	w.connect = func(context.Context, netip.AddrPort) (net.Conn, error) {
		close(trying)
		<-goOn
		return here, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := w.newDialer(guard{port: 80}).dial(ctx, "tcp", "a.example:80")
		done <- err
	}()
	wait.For(t, trying, "a dial")
	cancel()
	if err := wait.For(t, done, "its end"); err == nil {
		t.Error("a cancelled dial gave a connection")
	}
	close(goOn)
	if _, err := there.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the connection that came too late gives %v", err)
	}
}
