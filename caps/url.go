package caps

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A webURL is what a scope or an argument of the algebra [URL] says, decoded
// once. It is read by hand and strictly: what two readers could take for two
// things is refused.
type webURL struct {
	scheme string // http or https
	host   string // lower case; *.REST in a scope; an IPv6 address has no brackets
	port   string // empty: the scheme's own
	// segments of the path, decoded: none is the root, ["**"] in a scope is
	// every path.
	segments []string
}

// every is the path pattern of an origin that stands alone.
var every = []string{"**"}

// parseURL reads a URL with its percent-encoding. A scope may have stars and no
// query; an argument any query and no stars.
func parseURL(s string, scope bool) (webURL, error) {
	var u webURL
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == 0x7f {
			return u, errors.New("it has a space or a control character: write it as %20, or leave it out")
		} else if c == '\\' {
			return u, errors.New(`it has a backslash`)
		}
	}
	if !utf8.ValidString(s) {
		return u, errors.New("it isn't UTF-8")
	}
	scheme, rest, ok := strings.Cut(s, "://")
	u.scheme = strings.ToLower(scheme)
	if !ok || u.scheme != "http" && u.scheme != "https" {
		return u, errors.New("it must begin with https:// or http://")
	}
	if strings.Contains(rest, "#") {
		return u, errors.New("leave out the #fragment: it is never sent")
	}
	rest, _, query := strings.Cut(rest, "?")
	if query && scope {
		return u, errors.New("a scope has no query: every query of a path is within it")
	}
	authority, path, hasPath := strings.Cut(rest, "/")
	var err error
	if u.host, u.port, err = parseAuthority(authority, u.scheme, scope); err != nil {
		return u, err
	}
	switch {
	case !hasPath && scope:
		u.segments = every
		return u, nil
	case path == "":
	default:
		if u.segments, err = parsePath(path, scope); err != nil {
			return u, err
		}
	}
	if !scope {
		return u, u.sameElsewhere(s)
	}
	return u, nil
}

func parseAuthority(s, scheme string, scope bool) (host, port string, err error) {
	if strings.Contains(s, "@") {
		return "", "", errors.New("it has a user name before @: leave it out")
	}
	if strings.Contains(s, "%") {
		return "", "", errors.New("a host has no percent-encoding and no zone")
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		inner, after, closed := strings.Cut(inner, "]")
		addr, err := netip.ParseAddr(inner)
		if !closed || err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", "", errors.New("[…] must hold an IPv6 address without a zone")
		}
		if addr.Is4In6() {
			return "", "", fmt.Errorf("write the address as %s", addr.Unmap())
		}
		host, s = addr.String(), after
		if s != "" && s[0] != ':' {
			return "", "", errors.New("only a port can follow ]")
		}
		s = strings.TrimPrefix(s, ":")
		if after != "" && s == "" {
			return "", "", errors.New("the port is missing after the colon")
		}
		port = s
	} else {
		var colon bool
		host, port, colon = strings.Cut(s, ":")
		if colon && port == "" {
			return "", "", errors.New("the port is missing after the colon")
		}
		if host, err = parseHost(host, scope); err != nil {
			return "", "", err
		}
	}
	port, err = parsePort(port, scheme)
	return host, port, err
}

func parsePort(s, scheme string) (string, error) {
	if s == "" {
		return "", nil
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != s {
		return "", fmt.Errorf("%s is not a port", quoted(s))
	}
	if scheme == "https" && n == 443 || scheme == "http" && n == 80 {
		return "", nil
	}
	return s, nil
}

// parseHost gives a name of lower-case A-labels, or an IPv4 address of four
// decimal numbers.
func parseHost(s string, scope bool) (string, error) {
	s = strings.ToLower(s)
	if s == "" {
		return "", errors.New("the host is missing")
	}
	if strings.HasSuffix(s, ".") {
		return "", errors.New("leave out the dot at the end of the host")
	}
	name, star := s, false
	if scope {
		name, star = strings.CutPrefix(s, "*.")
	}
	if len(s) > 253 {
		return "", errors.New("the host is longer than 253 bytes")
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if err := checkLabel(label); err != nil {
			return "", err
		}
	}
	// A name that ends in a number is an address to every resolver, in one of
	// its many spellings; only one is taken.
	if last := labels[len(labels)-1]; isNumber(last) {
		if addr, err := netip.ParseAddr(name); err != nil || !addr.Is4() || star {
			return "", errors.New("an IPv4 address has four decimal numbers: 192.0.2.1")
		}
	}
	return s, nil
}

func checkLabel(label string) error {
	if label == "" {
		return errors.New("the host has an empty label")
	}
	if len(label) > 63 {
		return errors.New("a label of the host is longer than 63 bytes")
	}
	for i := range len(label) {
		c := label[i]
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_':
		case c == '-' && i > 0 && i < len(label)-1:
		case c == '*':
			return errors.New("in a host, * is one whole label and comes first: *.example.com")
		case c >= 0x80:
			return errors.New("write the host in its ASCII form, with labels that begin with xn--")
		default:
			return fmt.Errorf("a host can't have %s", quoted(string(rune(c))))
		}
	}
	return nil
}

// isNumber tells the last labels by which a host is taken for an IPv4 address
// (WHATWG URL, "ends in a number").
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// parsePath gives the decoded segments of a path without its first slash. A
// slash at the end says nothing of what is acted on.
func parsePath(s string, scope bool) ([]string, error) {
	segments := split(strings.TrimSuffix(s, "/"))
	for i, raw := range segments {
		if raw == "" {
			return nil, errors.New("the path has an empty segment")
		}
		segment, err := decodeSegment(raw)
		if err != nil {
			return nil, err
		}
		if scope && (strings.ContainsAny(segment, "?#") || strings.Contains(segment, "*") && segment != raw) {
			return nil, fmt.Errorf("a segment of a scope can't have an encoded ?, # or *: write * for all of %s", quoted(raw))
		}
		segments[i] = segment
	}
	if scope {
		if err := checkStars(segments); err != nil {
			return nil, err
		}
	}
	return segments, nil
}

// decodeSegment undoes the percent-encoding, and refuses what would be several
// segments, or none, to somebody who undoes it once more.
func decodeSegment(raw string) (string, error) {
	segment, err := url.PathUnescape(raw)
	if err != nil {
		return "", errors.New("it has a % without two hexadecimal digits: a percent sign is written %25")
	}
	if !utf8.ValidString(segment) {
		return "", errors.New("its percent-encoding isn't UTF-8")
	}
	for s := segment; ; {
		if strings.ContainsAny(s, `/\`) {
			return "", errors.New("it has an encoded slash or backslash")
		}
		if err := plainText(s); err != nil {
			return "", errors.New("it has an encoded control character")
		}
		// What follows a semicolon is dropped by some servers.
		if name, _, _ := strings.Cut(s, ";"); name == "." || name == ".." {
			return "", errors.New(`it has the segment "." or ".."`)
		}
		again := unescapeOnce(s)
		if again == s {
			return segment, nil
		}
		if !utf8.ValidString(again) {
			return "", errors.New("its percent-encoding isn't UTF-8")
		}
		s = again
	}
}

// unescapeOnce undoes every escape that is one and leaves other percent signs.
func unescapeOnce(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// sameElsewhere refuses a URL that the library which fetches it would read in
// another way.
func (u webURL) sameElsewhere(s string) error {
	different := errors.New("it can be read in two ways")
	o, err := url.Parse(s)
	if err != nil || o.User != nil || o.Opaque != "" || !strings.EqualFold(o.Scheme, u.scheme) {
		return different
	}
	port := o.Port()
	if port == "" || u.scheme == "https" && port == "443" || u.scheme == "http" && port == "80" {
		port = ""
	}
	host := strings.ToLower(o.Hostname())
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.String()
	}
	if host != u.host || port != u.port {
		return different
	}
	if p := strings.Trim(o.Path, "/"); p != strings.Join(u.segments, "/") {
		return different
	}
	return nil
}

// scopeURL reads a canonical scope, which is decoded.
func scopeURL(s string) (webURL, error) {
	var u webURL
	var rest string
	var ok bool
	if u.scheme, rest, ok = strings.Cut(s, "://"); !ok || u.scheme != "http" && u.scheme != "https" {
		return u, errors.New("the scope is not a URL")
	}
	authority, path, hasPath := strings.Cut(rest, "/")
	var err error
	if u.host, u.port, err = parseAuthority(authority, u.scheme, true); err != nil {
		return u, err
	}
	switch {
	case !hasPath:
		u.segments = every
	case path != "":
		u.segments = split(path)
		for _, segment := range u.segments {
			if segment == "" || segment == "." || segment == ".." {
				return u, errors.New("the scope isn't canonical")
			}
		}
		if err := checkStars(u.segments); err != nil {
			return u, err
		}
	}
	return u, nil
}

// String is the canonical scope.
func (u webURL) String() string {
	s := u.origin()
	if !slices.Equal(u.segments, every) {
		s += "/" + strings.Join(u.segments, "/")
	}
	return s
}

func (u webURL) origin() string {
	host := u.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if u.port != "" {
		host += ":" + u.port
	}
	return u.scheme + "://" + host
}

func (u webURL) contains(n webURL) bool {
	return u.scheme == n.scheme && u.port == n.port && hostContains(u.host, n.host) && segmentsContain(u.segments, n.segments)
}

// covers tells whether an argument, whose stars are letters, is within u.
func (u webURL) covers(v webURL) bool {
	return u.scheme == v.scheme && u.port == v.port && hostContains(u.host, v.host) && segmentsCover(u.segments, v.segments)
}

func (u webURL) overlaps(v webURL) bool {
	return u.scheme == v.scheme && u.port == v.port && (hostContains(u.host, v.host) || hostContains(v.host, u.host)) &&
		segmentsOverlap(u.segments, v.segments)
}

// hostContains: a leading star is exactly one label.
func hostContains(pattern, host string) bool {
	if pattern == host {
		return true
	}
	rest, star := strings.CutPrefix(pattern, "*")
	if !star {
		return false
	}
	label, _, _ := strings.Cut(host, ".")
	return host == label+rest
}
