package fetch

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/internal/address"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

const (
	// connectTime is how long one address may take to be connected to.
	connectTime = 10 * time.Second
	// headStart is how long an address is tried before the next one is tried
	// beside it (RFC 8305 section 5).
	headStart = 250 * time.Millisecond
	// maxAddresses is how many addresses of a name are tried.
	maxAddresses = 8
)

// A resolver finds the addresses of a name.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// system is the machine's resolver. Names are absolute: no search list of the
// machine's makes another name of them.
type system struct{ net.Resolver }

// LookupNetIP finds the addresses of a name.
func (s *system) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return s.Resolver.LookupNetIP(ctx, network, host+".")
}

// A dialer connects to hosts of one capability. A name is resolved once for
// each connection, its addresses are judged, and the connection is made to one
// of those very addresses: a resolver that answers differently the next time
// changes nothing.
type dialer struct {
	guard
	resolver resolver
	connect  func(ctx context.Context, a netip.AddrPort) (net.Conn, error)
	head     time.Duration
}

// newDialer makes the dialer of a world.
func (w world) newDialer(g guard) *dialer {
	d := &dialer{guard: g, resolver: w.resolver, connect: w.connect, head: cmp.Or(w.head, headStart)}
	if d.connect == nil {
		one := &net.Dialer{Timeout: connectTime, KeepAlive: idleTime, Control: d.control}
		d.connect = func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
			return one.DialContext(ctx, "tcp", a.String())
		}
	}
	return d
}

// dial connects to host:port.
func (d *dialer) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	all, err := d.addresses(ctx, host, uint16(n))
	if err != nil {
		return nil, err
	}
	conn, err := d.race(ctx, all)
	var timed net.Error
	switch {
	case err == nil || ctx.Err() != nil:
		return conn, err
	case errors.Is(err, errForbidden):
		return nil, private(host)
	case errors.As(err, &timed) && timed.Timeout():
		return nil, sdk.Fail(codeUnreachable, "%s could not be connected to within %v", host, connectTime).WithRetry()
	}
	return nil, sdk.Fail(codeUnreachable, "%s could not be connected to on port %d", host, n).WithRetry()
}

// addresses gives the permitted addresses of a host.
func (d *dialer) addresses(ctx context.Context, host string, port uint16) ([]netip.AddrPort, error) {
	found, err := []netip.Addr(nil), error(nil)
	if a, bad := netip.ParseAddr(host); bad == nil {
		found = []netip.Addr{a}
	} else if found, err = d.resolver.LookupNetIP(ctx, "ip", host); err != nil || len(found) == 0 {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, sdk.Fail(codeUnreachable, "the name %s could not be resolved", host).WithRetry()
	}
	var all []netip.AddrPort
	for _, a := range found {
		// What is judged is what the system connects to: it makes an IPv4
		// address of a mapped one.
		if a := netip.AddrPortFrom(a.Unmap(), port); d.permits(a) && len(all) < maxAddresses {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return nil, private(host)
	}
	return all, nil
}

// private returns the failure of a host with no permitted address. It doesn't say
// which it has.
func private(host string) error {
	return failf(codeDenied, "%s leads to no public address: loopback, private, link-local and translated addresses are reached only where the operator granted the address itself, as in --cap fetch:http://127.0.0.1:8080/**", host)
}

// race connects to the first address that answers. Each has a head start over
// the next one.
func (d *dialer) race(ctx context.Context, all []netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result)
	try := func(a netip.AddrPort) {
		conn, err := d.connect(ctx, a)
		select {
		case results <- result{conn, err}:
		case <-ctx.Done():
			if conn != nil {
				conn.Close()
			}
		}
	}
	var first error
	timer := time.NewTimer(0)
	defer timer.Stop()
	for started, ended := 0, 0; ended < len(all); {
		var next <-chan time.Time
		if started < len(all) {
			next = timer.C
		}
		select {
		case <-next:
			go try(all[started])
			started++
			timer.Reset(d.head)
		case r := <-results:
			if r.err == nil {
				return r.conn, nil
			}
			if ended++; first == nil {
				first = r.err
			}
			timer.Reset(0)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, first
}

// A guard decides which addresses may be connected to.
type guard struct {
	// granted is the one address of a capability that names one; it may be a
	// private one then, and no other is permitted.
	granted netip.Addr
	port    uint16
	// denied is the addresses that denials take out.
	denied []netip.AddrPort
}

// permits reports whether an address may be connected to.
func (g *guard) permits(a netip.AddrPort) bool {
	if slices.Contains(g.denied, a) {
		return false
	}
	if a.Port() != g.port {
		return false
	}
	if g.granted.IsValid() {
		return a.Addr() == g.granted
	}
	return address.Public(a.Addr())
}

// control has the [net.Dialer]'s last word: it sees the address that the socket is
// about to be connected to.
func (g *guard) control(network, address string, _ syscall.RawConn) error {
	if a, err := netip.ParseAddrPort(address); err != nil || network != "tcp4" && network != "tcp6" || !g.permits(a) {
		return errForbidden
	}
	return nil
}

// errForbidden never leaves the package as it is: [dialer.dial] names the host.
var errForbidden = sdk.Fail(codeDenied, "the address is not permitted")

// grantable returns what is wrong with granting an address, nil where it is one that
// a connection can be made to.
func grantable(a netip.Addr) error {
	switch nat64 := netip.MustParsePrefix("64:ff9b::/16"); {
	case a.IsUnspecified(), a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}),
		a.Is4() && a.As4()[0] == 0:
		return invalid("%s is not an address of a server", a)
	case a.Is4():
		return nil
	case nat64.Contains(a), address.IsISATAP(a),
		netip.MustParsePrefix("2002::/16").Contains(a), // 6to4
		netip.MustParsePrefix("2001::/32").Contains(a), // Teredo
		netip.MustParsePrefix("::/96").Contains(a) && !a.IsLoopback():
		return invalid("%s carries an IPv4 address; grant that", a)
	}
	return nil
}

// isLocal reports whether a name is this machine's by definition (RFC 6761
// section 6.3), whatever a resolver says.
func isLocal(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
