package fetch

import (
	"net/netip"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// public knows the addresses that a name may lead to: global unicast ones, in
// none of the special ranges of IANA's registries. Loopback, private, shared,
// link-local, unique local, multicast, documentation, and what carries an IPv4
// address (mapped, NAT64, 6to4, Teredo) is refused, and with them the metadata
// services of clouds, but for those listed here.
var public = ssrf.New(
	ssrf.WithAnyPort(),
	ssrf.WithNetworks("tcp4", "tcp6"),
	ssrf.WithDeniedV4Prefixes(
		netip.MustParsePrefix("168.63.129.16/32"), // Azure's platform address, which is an ordinary one
		netip.MustParsePrefix("192.80.8.124/32"),  // metadata.packet.net
	),
	ssrf.WithDeniedV6Prefixes(
		netip.MustParsePrefix("3ffe::/16"), // 6bone, returned (RFC 3701)
	),
)

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
	for _, d := range g.denied {
		if d == a {
			return false
		}
	}
	if a.Port() != g.port {
		return false
	}
	if g.granted.IsValid() {
		return a.Addr() == g.granted
	}
	return public.SafeAddr(a.Addr()) == nil && !isatap(a.Addr())
}

// control has the [net.Dialer]'s last word: it sees the address that the socket is
// about to be connected to.
func (g *guard) control(network, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" || !g.permits(a) {
		return errForbidden
	}
	return nil
}

// errForbidden never leaves the package as it is: [dialer.dial] names the host.
var errForbidden = sdk.Fail(codeDenied, "the address is not permitted")

// isatap reports whether an IPv6 address carries an IPv4 address as RFC 5214
// does, under whatever prefix.
func isatap(a netip.Addr) bool {
	b := a.As16()
	return a.Is6() && b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

// grantable returns what is wrong with granting an address, nil where it is one that
// a connection can be made to.
func grantable(a netip.Addr) error {
	switch nat64 := netip.MustParsePrefix("64:ff9b::/16"); {
	case a.IsUnspecified(), a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}),
		a.Is4() && a.As4()[0] == 0:
		return invalid("%s is not an address of a server", a)
	case a.Is4():
		return nil
	case nat64.Contains(a), isatap(a),
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
