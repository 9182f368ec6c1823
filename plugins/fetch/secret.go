package fetch

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

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
