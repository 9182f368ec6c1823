// Package address tells which addresses of the network are everybody's.
//
// It is for callers that connect where a stranger says. They judge the addresses that a name
// leads to once it was resolved, and connect to those as they were judged: a name that leads
// elsewhere the next time (DNS rebinding) changes nothing then. Addresses that lead to this
// machine, to the network behind it or to a cloud's metadata are refused.
package address

import (
	"net/netip"

	"code.dny.dev/ssrf"
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

// Public reports whether an address is of the public network.
func Public(a netip.Addr) bool { return public.SafeAddr(a) == nil && !IsISATAP(a) }

// IsISATAP reports whether an IPv6 address carries an IPv4 address as RFC 5214
// does, under whatever prefix.
func IsISATAP(a netip.Addr) bool {
	b := a.As16()
	return a.Is6() && b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
