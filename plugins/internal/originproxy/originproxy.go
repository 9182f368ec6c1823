// Package originproxy is the way out of a program that may reach some origins and nothing else:
// an HTTP proxy that tunnels to those (CONNECT), and forwards plain requests to those that are
// http.
//
// A name is resolved here, once for each connection, and what it leads to has to be a public
// address: a name that leads to this machine or to the network behind it (DNS rebinding) is
// refused. An origin that is an address is connected to whatever it is, as the operator wrote
// it. What is inside a tunnel isn't looked at: a host that serves several origins may serve
// another than the one that was asked for.
package originproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/internal/address"
)

// Options are of one proxy.
type Options struct {
	// Origins are those that may be reached, such as https://api.example.com.
	Origins []string
	// Resolve finds the addresses of a name; nil: the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Refused is told of what was asked for and isn't among the origins, once for each; nil:
	// nobody is.
	Refused func(what string)
}

// The bounds of a proxy: connections at once, the time to connect, and how long a connection
// may be silent, and wait for a request.
const (
	maxConnections = 256
	dialTimeout    = 15 * time.Second
	idleTimeout    = 10 * time.Minute
	restTimeout    = time.Minute
	maxRefused     = 100 // that are told
)

// A Proxy serves one program. It is safe for concurrent use.
type Proxy struct {
	options   Options
	allowed   map[string]bool // host:port of every origin
	plain     map[string]bool // of those that are http
	server    *http.Server
	transport *http.Transport

	mu      sync.Mutex
	refused map[string]bool
	tunnels map[net.Conn]struct{}
	closed  bool
}

// New makes a proxy. It refuses what is no origin.
func New(o Options) (*Proxy, error) {
	p := &Proxy{options: o, allowed: map[string]bool{}, plain: map[string]bool{}, refused: map[string]bool{}, tunnels: map[net.Conn]struct{}{}}
	for _, origin := range o.Origins {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, fmt.Errorf("%q is no origin", origin)
		}
		at := hostPort(u.Host, u.Scheme)
		if p.allowed[at] = true; u.Scheme == "http" {
			p.plain[at] = true
		}
	}
	if p.options.Resolve == nil {
		p.options.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host+".") // no search list makes another name of it
		}
	}
	p.transport = &http.Transport{DialContext: func(ctx context.Context, _, at string) (net.Conn, error) { return p.dial(ctx, at) }, MaxIdleConns: 16, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: idleTimeout}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: dialTimeout, IdleTimeout: restTimeout, MaxHeaderBytes: 64 << 10, ErrorLog: log.New(io.Discard, "", 0)}
	return p, nil
}

// Serve serves what comes to a listener, until Close.
func (p *Proxy) Serve(l net.Listener) {
	_ = p.server.Serve(&bounded{l, make(chan struct{}, maxConnections)})
}

// A bounded listener refuses connections beyond those that it has room for.
type bounded struct {
	net.Listener
	room chan struct{}
}

// Accept gives the next connection that there is room for.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case b.room <- struct{}{}:
			return &counted{c, sync.OnceFunc(func() { <-b.room })}, nil
		default:
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\nmcp-pif: too many connections\n")
			c.Close()
		}
	}
}

// A counted connection gives its room back when it is closed.
type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite ends one direction, where the connection has two.
func (c *counted) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// Close ends the proxy and all connections through it.
func (p *Proxy) Close() {
	_ = p.server.Close()
	p.transport.CloseIdleConnections()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.tunnels {
		c.Close()
	}
}

// hostPort is a host with its port, in one spelling.
func hostPort(host, scheme string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), map[string]string{"http": "80", "https": "443"}[scheme]
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if a, err := netip.ParseAddr(name); err == nil {
		name = a.Unmap().String()
	}
	return net.JoinHostPort(name, port)
}

// ServeHTTP answers one request of the program's.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		if at := hostPort(r.Host, "https"); p.allowed[at] {
			p.tunnel(w, r, at)
		} else {
			p.refuse(w, at)
		}
		return
	}
	if at := hostPort(r.URL.Host, r.URL.Scheme); r.URL.Scheme != "http" || r.URL.Host == "" || !p.plain[at] {
		p.refuse(w, r.URL.Scheme+"://"+at)
		return
	}
	(&httputil.ReverseProxy{
		Transport: p.transport, ErrorLog: log.New(io.Discard, "", 0), FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.Host = r.In.URL.Host },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "mcp-pif: "+err.Error(), http.StatusBadGateway)
		},
	}).ServeHTTP(w, r)
}

// refuse tells the program, and once whoever listens.
func (p *Proxy) refuse(w http.ResponseWriter, what string) {
	if len(what) > 300 {
		what = what[:300]
	}
	p.mu.Lock()
	isNew := !p.refused[what] && len(p.refused) < maxRefused
	if isNew {
		p.refused[what] = true
	}
	p.mu.Unlock()
	if isNew && p.options.Refused != nil {
		p.options.Refused(what)
	}
	w.Header().Set("Connection", "close")
	http.Error(w, "mcp-pif: this isn't among the origins that the operator lets this program reach", http.StatusForbidden)
}

var errPrivate = errors.New("the name leads to no public address")

// dial connects to host:port, which is allowed.
func (p *Proxy) dial(ctx context.Context, at string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return nil, err
	}
	var addresses []netip.Addr
	if literal, err := netip.ParseAddr(host); err == nil {
		addresses = []netip.Addr{literal}
	} else {
		all, err := p.options.Resolve(ctx, host)
		if err != nil {
			return nil, errors.New("the name can't be resolved")
		}
		for _, a := range all {
			if a = a.Unmap(); address.Public(a) {
				addresses = append(addresses, a)
			}
		}
		if len(addresses) == 0 {
			return nil, errPrivate
		}
	}
	failed := errors.New("it can't be connected to")
	for _, a := range addresses[:min(len(addresses), 8)] {
		var d net.Dialer
		// By its address: the name isn't asked again.
		if c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(a.String(), port)); err == nil {
			return c, nil
		}
	}
	return nil, failed
}

// tunnel connects the program to an origin.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request, at string) {
	out, err := p.dial(r.Context(), at)
	if err != nil {
		http.Error(w, "mcp-pif: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer out.Close()
	in, rest, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer in.Close()
	if !p.keep(in, out) {
		return
	}
	defer p.drop(in, out)
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	both := make(chan struct{}, 2)
	go func() {
		copyConn(out, io.MultiReader(io.LimitReader(rest, int64(rest.Reader.Buffered())), in), in)
		both <- struct{}{}
	}()
	go func() { copyConn(in, out, out); both <- struct{}{} }()
	<-both
	<-both
}

// copyConn copies one direction to its end, and ends it on the other side. A side that is
// silent for long ends both.
func copyConn(to net.Conn, from io.Reader, source net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		_ = source.SetReadDeadline(time.Now().Add(idleTimeout))
		n, err := from.Read(buffer)
		if n > 0 {
			_ = to.SetWriteDeadline(time.Now().Add(idleTimeout))
			if _, err := to.Write(buffer[:n]); err != nil {
				source.Close()
				return
			}
		}
		if errors.Is(err, io.EOF) {
			if half, ok := to.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
				return
			}
		}
		if err != nil {
			to.Close()
			return
		}
	}
}

// keep notes connections, so that Close ends them.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.tunnels[c] = struct{}{}
	}
	return !p.closed
}

func (p *Proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.tunnels, c)
	}
}
