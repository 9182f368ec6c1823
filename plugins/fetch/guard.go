package fetch

import (
	"net/netip"
	"strings"
	"syscall"

	"github.com/mcp-pif/mcp-pif/plugins/internal/address"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
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
	return address.Public(a.Addr())
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
