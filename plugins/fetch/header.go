package fetch

import (
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

const (
	// maxHeaderFields and maxHeaderBytes bound the headers that a program sends; the
	// bytes are those of names and values.
	maxHeaderFields = 100
	maxHeaderBytes  = 32 << 10
	// maxResponseHeaders bounds what a server sends, interim answers included.
	maxResponseHeaders = 128 << 10
)

// refusedHeaders is the names a program may not set, and why. They are compared
// as a CGI-like server would see them: letters in lower case, and everything
// that is neither letter nor digit as a dash.
var refusedHeaders = map[string]string{
	"host":              whyConnection,
	"connection":        whyConnection,
	"keep-alive":        whyConnection,
	"transfer-encoding": whyConnection,
	"content-length":    whyConnection,
	"te":                whyConnection,
	"trailer":           whyConnection,
	"upgrade":           whyConnection,
	"expect":            whyConnection,
	"http2-settings":    whyConnection,
	"proxy":             whyConnection,

	"x-http-method": whyMethod,
	"x-method":      whyMethod,
	"http-method":   whyMethod,

	"x-rewrite-url":        whyTarget,
	"x-override-url":       whyTarget,
	"x-host":               whyTarget,
	"x-http-host-override": whyTarget,
	"forwarded":            whyTarget,
}

// refusedPrefixes is the same for all names that begin so.
var refusedPrefixes = map[string]string{
	"proxy-":       whyConnection,
	"x-original-":  whyTarget,
	"x-forwarded-": whyTarget,
}

const (
	whyConnection = "it belongs to the connection"
	whyMethod     = "it would make another method of the one that was checked"
	whyTarget     = "it would make another host or path of the one that was checked"
)

// seenName is a name as a CGI-like server sees it.
func seenName(name string) string {
	return strings.Trim(strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(name)), "-")
}

// disguises reports whether a header has an answer come in parts, or in a form, in which the secret of its request isn't found; isNamed is
// whether it has one itself.
func disguises(name string, values []string, isNamed bool) bool {
	switch seenName(name) {
	case "range", "request-range":
		return true
	case "accept-encoding":
		for coding := range strings.SplitSeq(strings.Join(values, ","), ",") {
			coding, _, _ = strings.Cut(coding, ";")
			if coding = strings.ToLower(strings.Trim(coding, " \t")); !slices.Contains([]string{"", "gzip", "x-gzip", "identity"}, coding) {
				return true
			}
		}
		return isNamed
	}
	return false
}

// refusedHeader returns why a program may not set a header, "" where it may.
func refusedHeader(name string) string {
	name = seenName(name)
	if why := refusedHeaders[name]; why != "" {
		return why
	}
	for prefix, why := range refusedPrefixes {
		if strings.HasPrefix(name, prefix) {
			return why
		}
	}
	if name == "method" || strings.Contains(name, "method-override") {
		return whyMethod
	}
	return ""
}

// requestHeaders reads the headers of a program: names to a string, or to a
// list of strings for a header that is sent several times.
func requestHeaders(given map[string]value.Value) (http.Header, []secretHeader, error) {
	headers, secrets := http.Header{}, []secretHeader(nil)
	count, size := 0, 0
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !isToken(name) {
			return nil, nil, invalid("headers: %.80q is not a name of a header", name)
		}
		if why := refusedHeader(name); why != "" {
			return nil, nil, invalid("headers: %.80s can't be set: %s", name, why)
		}
		key := http.CanonicalHeaderKey(name)
		if _, twice := headers[key]; twice {
			return nil, nil, invalid("headers: %.80s is there in two spellings", name)
		}
		values, named, err := headerValues(name, given[name])
		if err != nil {
			return nil, nil, err
		}
		for _, v := range values {
			count++
			size += len(name) + len(v)
		}
		for _, s := range named {
			count++
			size += len(name) + len(s.prefix)
		}
		if count > maxHeaderFields || size > maxHeaderBytes {
			return nil, nil, invalid("headers: there are more than %d of them, or more than %d bytes", maxHeaderFields, maxHeaderBytes)
		}
		headers[key], secrets = values, append(secrets, named...)
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		isNamed := slices.ContainsFunc(secrets, func(s secretHeader) bool { return s.header == name })
		if len(secrets) > 0 && disguises(name, headers[name], isNamed) {
			return nil, nil, invalid("headers: %.80s can't be set like this beside a secret, for which the answer is searched", name)
		}
	}
	return headers, secrets, nil
}

func headerValues(name string, given value.Value) (values []string, secrets []secretHeader, err error) {
	items := []value.Value{given}
	if list, ok := value.Slice(given); ok {
		items = list
	}
	for _, item := range items {
		if s, ok, err := readSecret(name, item); err != nil {
			return nil, nil, err
		} else if ok {
			secrets = append(secrets, s)
			continue
		}
		s, ok := item.(value.Str)
		if !ok {
			return nil, nil, invalid("headers: %.80s must be a string, a list of strings, or name a secret", name)
		}
		if !plainHeader(string(s)) {
			return nil, nil, invalid("headers: the value of %.80s has a control character or a new line", name)
		}
		values = append(values, strings.Trim(string(s), " \t"))
	}
	return values, secrets, nil
}

// plainHeader reports whether a text can be part of a header's value.
func plainHeader(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}

// isToken reports whether a string is a name of RFC 9110 section 5.1.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}

// responseHeaders returns the headers of an answer as a record: names in lower case,
// and for each one string. Values of a name that came several times are joined as
// RFC 9110 section 5.3 permits, by a comma and a space; those of set-cookie, which
// have commas of their own, by a new line.
func responseHeaders(headers http.Header) *value.Record {
	record := &value.Record{Fields: make([]value.Field, 0, len(headers))}
	for name, all := range headers { // net/http has each name in one spelling
		between := ", "
		if name == "Set-Cookie" {
			between = "\n"
		}
		record.Fields = append(record.Fields, value.Field{
			Key: readable(strings.ToLower(name)), Value: value.Str(readable(strings.Join(all, between))),
		})
	}
	slices.SortFunc(record.Fields, func(a, b value.Field) int { return strings.Compare(a.Key, b.Key) })
	return record
}

// readable returns a header's text: UTF-8, or else each byte as a character of ISO
// 8859-1, which HTTP used.
func readable(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var out strings.Builder
	for _, c := range []byte(s) {
		out.WriteRune(rune(c))
	}
	return out.String()
}

// A secretHeader is a header whose value is a secret of the operator's:
// {"secret": NAME}, with a text before it, {"secret": NAME, "prefix": "Bearer "},
// or as the password of a user, {"secret": NAME, "user": USER} (RFC 7617). The
// value is put in when a request is sent, and only where the request lies within
// what the secret is bound to: the host has checked that of the first one, and a
// redirect may lead to another.
type secretHeader struct {
	header string // in its canonical spelling
	secret sdk.Secret
	prefix string
	user   *string
}

// readSecret reads a value of a header that names a secret; ok is false where it
// names none.
func readSecret(header string, v value.Value) (s secretHeader, ok bool, err error) {
	secret, more, ok := sdk.SecretIn(v)
	if !ok {
		return s, false, nil
	}
	s = secretHeader{header: http.CanonicalHeaderKey(header), secret: secret}
	for _, f := range more {
		text, isText := f.Value.(value.Str)
		switch {
		case !isText || f.Key != "prefix" && f.Key != "user":
			return s, true, invalid(`headers: with "secret", %.80s can have "prefix" or "user", strings, and nothing else`, header)
		case !plainHeader(string(text)):
			return s, true, invalid("headers: what %.80s has beside its secret has a control character or a new line", header)
		case f.Key == "prefix":
			s.prefix = string(text)
		default:
			user := string(text)
			s.user = &user
		}
	}
	switch {
	case s.user != nil && s.prefix != "":
		return s, true, invalid(`headers: %.80s has "prefix" and "user"; give one of them`, header)
	case s.user != nil && strings.Contains(*s.user, ":"):
		return s, true, invalid("headers: the user of %.80s has a colon, which would end it", header)
	}
	return s, true, nil
}

// reveal returns the header's value.
func (s secretHeader) reveal(ctx context.Context) (string, error) {
	v, err := s.secret.Reveal(ctx)
	if err != nil {
		return "", err
	}
	if s.user != nil {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(*s.user+":"+v)), nil
	}
	return s.prefix + v, nil
}

// mayGo reports whether the secret may be sent with a request: the operator bound
// it to that origin and path, for that method, and nobody can listen.
func (s secretHeader) mayGo(ctx context.Context, method string, t target) bool {
	within, verbs, ok := s.secret.Bound(ctx)
	if !ok || len(verbs) > 0 && !slices.Contains(verbs, strings.ToLower(method)) {
		return false
	}
	p, err := parsePattern(within)
	return err == nil && !p.wild && p.covers(t) && (t.scheme == "https" || t.addr.IsLoopback())
}

// addSecrets puts the secrets that may go with a request into its headers. The
// others stay behind.
func (c call) addSecrets(ctx context.Context, h http.Header) error {
	for _, s := range c.secrets {
		if !s.mayGo(ctx, c.method, c.target) {
			continue
		}
		v, err := s.reveal(ctx)
		if err != nil {
			return err
		}
		h.Add(s.header, v)
	}
	return nil
}

// checkSecrets refuses a request whose secrets can't go with it: without them it
// would be another one than the program meant.
func (c call) checkSecrets(ctx context.Context) error {
	for _, s := range c.secrets {
		if !s.mayGo(ctx, c.method, c.target) {
			return failf(codeDenied, "the secret %.80s isn't for %s %s", s.secret.Name(), c.method, c.target.origin.String())
		}
	}
	return nil
}
