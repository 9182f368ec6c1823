package fetch

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// maxURL is how many bytes a URL may have.
const maxURL = 8 << 10

// An origin is where a request goes: what is compared whole.
type origin struct {
	scheme string // "http" or "https"
	// host is a name of lower-case A-labels, or an address as netip writes it.
	host string
	addr netip.Addr // set where host is an address
	port uint16
}

// String returns the origin as a URL writes it, without the scheme's own port.
func (o origin) String() string { return o.scheme + "://" + o.authority() }

func (o origin) authority() string {
	host := o.host
	if o.addr.Is6() {
		host = "[" + host + "]"
	}
	if o.port == defaultPort(o.scheme) {
		return host
	}
	return host + ":" + strconv.Itoa(int(o.port))
}

func defaultPort(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}

// A target is a URL that was read strictly: only one reading of it is possible,
// and what is sent is what was checked.
type target struct {
	origin
	path     string   // as it is sent, percent-encoded
	segments []string // of path, decoded; none of the root
	query    string   // as it is sent, with its question mark
}

// String returns the URL that is requested.
func (t target) String() string { return t.origin.String() + t.path + t.query }

// parseTarget reads a URL, and refuses every spelling that another program
// might read differently. It resolves no names.
func parseTarget(raw string) (target, error) {
	var t target
	if err := checkBytes(raw); err != nil {
		return t, err
	}
	o, rest, err := parseOrigin(raw, false)
	if err != nil {
		return t, err
	}
	if strings.Contains(rest, "#") {
		return t, invalid("the URL has a fragment, which is never sent; leave it out")
	}
	path, query, asked := strings.Cut(rest, "?")
	path = cmp.Or(path, "/")
	t.origin, t.path = o, escape(path, "\"<>^`{|}[]")
	if asked {
		t.query = "?" + escape(query, "\"<>^`{|}")
	}
	for _, segment := range segmentsOf(t.path) {
		decoded, ok := unescape(segment)
		if !ok {
			return t, invalid("the URL's path has a %% that two hexadecimal digits don't follow; write %%25 for the character itself")
		}
		if err := checkSegment(decoded); err != nil {
			return t, err
		}
		t.segments = append(t.segments, decoded)
	}
	return t, nil
}

// segmentsOf takes a path apart, without decoding it. A slash at its end makes no
// segment.
func segmentsOf(path string) []string {
	path = strings.TrimSuffix(path[1:], "/")
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

// checkBytes refuses what has no place anywhere in a URL.
func checkBytes(raw string) error {
	switch {
	case len(raw) > maxURL:
		return invalid("the URL has %d bytes, at most %d are allowed", len(raw), maxURL)
	case !utf8.ValidString(raw):
		return invalid("the URL is not UTF-8")
	case strings.ContainsFunc(raw, func(c rune) bool { return c <= ' ' || c == 0x7f }):
		return invalid("the URL has a space or a control character; percent-encode it")
	case strings.Contains(raw, `\`):
		return invalid("the URL has a backslash")
	}
	return nil
}

// parseOrigin reads the beginning of a URL, and gives the rest: empty, or from
// the slash, question mark or number sign on. A pattern's host may begin with
// the label *.
func parseOrigin(raw string, isPattern bool) (origin, string, error) {
	var o origin
	scheme, rest, ok := strings.Cut(raw, "://")
	o.scheme = strings.ToLower(scheme)
	if !ok || o.scheme != "http" && o.scheme != "https" {
		return o, "", invalid("a URL begins with https:// or http://")
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, rest := rest[:end], rest[end:]
	if strings.Contains(authority, "@") {
		return o, "", invalid("the URL has a user or password before its host; use a header to authenticate")
	}
	host, port, err := splitPort(authority)
	if err != nil {
		return o, "", err
	}
	o.port = defaultPort(o.scheme)
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || port != strconv.FormatUint(n, 10) {
			return o, "", invalid("the URL's port is not a number from 1 to 65535")
		}
		o.port = uint16(n)
	}
	o.host, o.addr, err = parseHost(host, isPattern)
	return o, rest, err
}

// splitPort takes host:port apart. An IPv6 address keeps its brackets.
func splitPort(authority string) (host, port string, err error) {
	end := strings.LastIndexByte(authority, ']') + 1
	colon := strings.IndexByte(authority[end:], ':')
	if colon < 0 {
		return authority, "", nil
	}
	host, port = authority[:end+colon], authority[end+colon+1:]
	if port == "" {
		return "", "", invalid("the URL has a colon but no port after its host")
	}
	return host, port, nil
}

// parseHost gives the one spelling of a host, and its address if it is one.
func parseHost(raw string, isPattern bool) (string, netip.Addr, error) {
	var none netip.Addr
	if inner, ok := strings.CutPrefix(raw, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		switch {
		case !closed || err != nil || !addr.Is6():
			return "", none, invalid("the URL's host is not an IPv6 address in brackets")
		case addr.Zone() != "":
			return "", none, invalid("the URL's host has a zone")
		case addr.Is4In6():
			return "", none, invalid("the URL's host is an IPv4 address written as IPv6; write it as IPv4")
		}
		return addr.String(), addr, nil
	}
	host := strings.ToLower(raw)
	switch {
	case host == "":
		return "", none, invalid("the URL has no host")
	case strings.ContainsFunc(raw, func(c rune) bool { return c >= utf8.RuneSelf }):
		return "", none, invalid("the URL's host is not ASCII; write its A-labels (xn--…)")
	case strings.HasSuffix(host, "."):
		return "", none, invalid("the URL's host ends with a dot")
	case len(host) > 253:
		return "", none, invalid("the URL's host has more than 253 characters")
	}
	labels := strings.Split(host, ".")
	if endsInNumber(labels) {
		addr, err := netip.ParseAddr(host)
		if err != nil || !addr.Is4() {
			return "", none, invalid("the URL's host is not an IPv4 address as four decimal numbers, and no other spelling of one is read")
		}
		return host, addr, nil
	}
	if isPattern && labels[0] == "*" && len(labels) > 1 {
		labels = labels[1:]
	}
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "-") != label || strings.ContainsFunc(label, notInLabel) {
			return "", none, invalid("the URL's host is not a name of letters, digits and dashes between dots")
		}
	}
	return host, none, nil
}

func notInLabel(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_'
}

// endsInNumber does the WHATWG URL standard's test (section 3.5, "ends in a number
// checker") for hosts that some programs read as IPv4 addresses.
func endsInNumber(labels []string) bool {
	last := labels[len(labels)-1]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// maxDecodings is how many times percent-encoding may be inside itself.
const maxDecodings = 8

// checkSegment refuses segments of a path that a server might read as more than
// one, or as a step to another: it looks at each decoding of it in turn, since
// some servers decode twice. The segment is decoded once already.
func checkSegment(segment string) error {
	for range maxDecodings {
		switch {
		case !utf8.ValidString(segment):
			return invalid("the URL's path is not UTF-8 where it is percent-encoded")
		case strings.ContainsAny(segment, `/\`):
			return invalid("the URL's path has an encoded slash or backslash")
		case strings.ContainsFunc(segment, unicode.IsControl):
			return invalid("the URL's path has an encoded control character")
		}
		// Some servers cut parameters (";…") and blanks off first.
		switch name, _, _ := strings.Cut(segment, ";"); strings.Trim(name, " ") {
		case "":
			return invalid("the URL's path has an empty segment")
		case ".", "..":
			return invalid("the URL's path has a dot segment; write the path that it leads to")
		}
		again, _ := unescape(segment)
		if again == segment {
			return nil
		}
		segment = again
	}
	return invalid("the URL's path is percent-encoded many times over")
}

// unescape decodes percent-encoding once. It leaves a percent sign that encodes
// nothing as it is, and reports whether there was none.
func unescape(s string) (string, bool) {
	if !strings.Contains(s, "%") {
		return s, true
	}
	var out strings.Builder
	whole := true
	for i := 0; i < len(s); i++ {
		if s[i] == '%' {
			if n, err := strconv.ParseUint(s[i+1:min(i+3, len(s))], 16, 8); err == nil && i+3 <= len(s) {
				out.WriteByte(byte(n))
				i += 2
				continue
			}
			whole = false
		}
		out.WriteByte(s[i])
	}
	return out.String(), whole
}

// escape percent-encodes what isn't ASCII, and the characters in unsafe.
func escape(s, unsafe string) string {
	plain := func(c byte) bool { return c < utf8.RuneSelf && strings.IndexByte(unsafe, c) < 0 }
	if !slices.ContainsFunc([]byte(s), func(c byte) bool { return !plain(c) }) {
		return s
	}
	const hex = "0123456789ABCDEF"
	var out strings.Builder
	for _, c := range []byte(s) {
		if plain(c) {
			out.WriteByte(c)
		} else {
			out.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return out.String()
}

// A pattern is the scope of a capability: an origin, and which of its paths.
// The query is free, and a slash at the end of a path says nothing.
type pattern struct {
	origin // host without the label * where wild is set
	// wild is set for *.host: exactly one label more.
	wild bool
	// segments has to be matched one by one; "*" matches any.
	segments []string
	// open is set where any further segments may follow, and none.
	open bool
}

// parsePattern reads a scope in the host's canonical form, decoded:
// https://host[:port][/path], where * is a whole segment or the whole leftmost
// label, and ** is whole segments at the end. An origin alone is all its paths.
func parsePattern(text string) (pattern, error) {
	var p pattern
	if len(text) > maxURL {
		return p, invalid("the scope has %d bytes, at most %d are allowed", len(text), maxURL)
	}
	o, path, err := parseOrigin(text, true)
	if err != nil {
		return p, err
	}
	p.origin = o
	p.host, p.wild = strings.CutPrefix(o.host, "*.")
	if path == "" {
		p.open = true
		return p, nil
	}
	if strings.ContainsAny(path, "?#") {
		return p, invalid("the scope has a query or a fragment; a query is free in every scope")
	}
	parts := segmentsOf(path)
	for i, part := range parts {
		if part == "**" && i == len(parts)-1 {
			p.open = true
			break
		}
		if part != "*" && strings.Contains(part, "*") {
			return p, invalid("the scope has a * that is not a whole segment, or a ** before the last one")
		}
		if err := checkSegment(part); err != nil {
			return p, err
		}
		p.segments = append(p.segments, part)
	}
	return p, nil
}

// covers reports whether a URL lies within the pattern.
func (p pattern) covers(t target) bool {
	return p.hasOrigin(t.origin) && p.hasPath(t.segments, func(a, b string) bool { return a == b })
}

func (p pattern) hasOrigin(o origin) bool {
	if p.scheme != o.scheme || p.port != o.port {
		return false
	}
	if p.wild {
		label, ok := strings.CutSuffix(o.host, "."+p.host)
		return ok && label != "" && !strings.Contains(label, ".")
	}
	return p.host == o.host
}

func (p pattern) hasPath(segments []string, same func(a, b string) bool) bool {
	if len(segments) < len(p.segments) || len(segments) > len(p.segments) && !p.open {
		return false
	}
	for i, want := range p.segments {
		if want != "*" && !same(want, segments[i]) {
			return false
		}
	}
	return true
}

// touches does what covers does for a denial: it takes in the spellings of a path
// that servers commonly read as the same one.
func (p pattern) touches(t target) bool {
	return p.hasOrigin(t.origin) && p.hasPath(t.segments, func(a, b string) bool { return strings.EqualFold(loose(a), loose(b)) })
}

// loose returns a segment as a lenient server reads it: decoded again, without
// parameters and blanks.
func loose(segment string) string {
	for range maxDecodings {
		again, _ := unescape(segment)
		if again == segment {
			break
		}
		segment = again
	}
	name, _, _ := strings.Cut(segment, ";")
	return strings.Trim(name, " ")
}

// A denial is a scope taken out of a capability.
type denial struct {
	pattern
	verbs []string // nil: all
}

func parseDenials(denies []sdk.Deny) ([]denial, error) {
	var all []denial
	for _, d := range denies {
		p, err := parsePattern(d.Within)
		if err != nil {
			return nil, err
		}
		all = append(all, denial{p, d.Verbs})
	}
	return all, nil
}
