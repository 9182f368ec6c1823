package mcplogin

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/internal/address"
)

// requestTimeout is how long one request may take.
const requestTimeout = 20 * time.Second

// A transport goes to origins that are trusted, and to others by https and at public addresses
// alone: what a server names as its authorization server may be meant for the network behind
// this machine.
type transport struct {
	trusted      []string
	open, public *http.Transport
}

// newClient makes a client for a login. It follows redirects of questions within an origin and
// no others: a code or a token that was sent on would be somebody else's.
func newClient(trusted []string) *http.Client {
	dial := func(control func(network, address string, c syscall.RawConn) error) *http.Transport {
		return &http.Transport{
			DialContext:         (&net.Dialer{Timeout: requestTimeout, Control: control}).DialContext,
			TLSHandshakeTimeout: requestTimeout, ForceAttemptHTTP2: true, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
		}
	}
	return &http.Client{
		Timeout: requestTimeout,
		Transport: &transport{trusted: trusted, open: dial(nil), public: dial(func(_, to string, _ syscall.RawConn) error {
			if a, err := netip.ParseAddrPort(to); err != nil || !address.Public(a.Addr()) {
				return errors.New("it leads to no public address")
			}
			return nil
		})},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 3 || r.Method != http.MethodGet || via[0].Method != http.MethodGet || originOf(r.URL) != originOf(via[0].URL) {
				return errors.New("it redirects elsewhere")
			}
			return nil
		},
	}
}

// A memo asks each question once: what a person was shown, or was held to what they said, is
// what holds afterwards. It isn't safe for concurrent use.
type memo struct {
	next    http.RoundTripper
	answers map[string]*remembered
}

type remembered struct {
	answer *http.Response
	body   []byte
	err    error
}

// maxQuestion is the bytes of an answer that are read.
const maxQuestion = 1 << 20

// RoundTrip makes one request, or gives what it gave before.
func (m *memo) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return m.next.RoundTrip(r)
	}
	was := m.answers[r.URL.String()]
	if was == nil {
		was = &remembered{}
		if was.answer, was.err = m.next.RoundTrip(r); was.err == nil {
			was.body, was.err = io.ReadAll(io.LimitReader(was.answer.Body, maxQuestion))
			was.answer.Body.Close()
		}
		m.answers[r.URL.String()] = was
	}
	if was.err != nil {
		return nil, was.err
	}
	answer := *was.answer
	answer.Body, answer.Request = io.NopCloser(bytes.NewReader(was.body)), r
	return &answer, nil
}

// originOf is a URL's scheme, host and port.
func originOf(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return u.Scheme + "://" + net.JoinHostPort(u.Hostname(), port)
}

// RoundTrip makes one request.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if slices.Contains(t.trusted, originOf(r.URL)) {
		return t.open.RoundTrip(r)
	}
	if err := encrypted(r.URL, nil); err != nil {
		return nil, err
	}
	return t.public.RoundTrip(r)
}

// encrypted refuses a URL that isn't https, unless its origin is trusted.
func encrypted(u *url.URL, trusted []string) error {
	if origin := originOf(u); u.Scheme != "https" && !slices.Contains(trusted, origin) {
		return fmt.Errorf("%q isn't encrypted, and neither the server's own nor the issuer that was named", short(origin))
	}
	return nil
}

// trustedOrigins is the origins of the URLs that a person gave.
func trustedOrigins(urls ...string) (all []string, err error) {
	for _, text := range urls {
		if text == "" {
			continue
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, fmt.Errorf("%q is no URL", text)
		}
		all = append(all, originOf(u))
	}
	return all, nil
}
