package fetch

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/value"
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

// refusedHeader returns why a program may not set a header, "" where it may.
func refusedHeader(name string) string {
	name = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(name))
	name = strings.Trim(name, "-")
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
