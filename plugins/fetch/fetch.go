// Package fetch is the plugin for HTTP: capabilities of the kind fetch, whose
// scope is an origin with a pattern of paths, and the operation fetch.request.
//
// What a request may be is decided three times. The host has checked it before
// the plugin sees it. The plugin reads the URL again, strictly (parseTarget),
// and matches scheme, host, port, path and method itself (pattern), before any
// name is resolved; it may only refuse more. And the address that a connection
// is about to be made to is judged when it is dialled (guard): a name never
// leads to loopback, private, link-local, shared, translated or metadata
// addresses, however it resolves. A capability that names an address,
// fetch:http://127.0.0.1:8080/**, permits that address and port, and no name.
//
// A redirect is a new request and is decided anew; when the origin changes, all
// headers of the program stay behind. A header can name a secret of the operator's
// (secretHeader): its value is put in when a request is sent, and only where the
// secret is bound to that request, never over plain http but to loopback. Each
// capability has its own connections;
// there are no cookies, no proxy, no referrer. The method can't be overridden by
// a header, a query or a form.
//
// A request ends: by its timeout, which is in seconds and counts everything, by
// the capability's limit of bytes, which counts what is decompressed, by the
// limit of 128 KiB of headers, or after ten redirects. Of one capability 32
// requests run at once.
//
// The answer of any status is a result; a failure is that there was none. Bodies
// are strings, in base64 where they aren't UTF-8, nor in a declared ISO-8859-1 or
// windows-1252. Messages are in words of our own and never show an address that a
// name resolved to.
package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

const version = "1.0.0"

// Plugin returns the plugin of the kind fetch.
func Plugin() sdk.Plugin { return world{resolver: &system{}}.plugin() }

// The methods, as verbs of capabilities. All of them reach other machines.
var (
	reads  = sdk.Flags{ReadOnly: true, Idempotent: true, OpenWorld: true}
	sets   = sdk.Flags{Idempotent: true, Destructive: true, OpenWorld: true}
	acts   = sdk.Flags{Destructive: true, OpenWorld: true}
	verbs  = []sdk.Verb{{Name: "delete", Flags: sets}, {Name: "get", Flags: reads}, {Name: "head", Flags: reads}, {Name: "options", Flags: reads}, {Name: "patch", Flags: acts}, {Name: "post", Flags: acts}, {Name: "put", Flags: sets}}
	typ    = "{body: string, encoding?: string, headers: {*: string}, json?: json, status: int, url: string}"
	result = "record: status, headers (names in lower case, values joined by commas), body, encoding (base64 where the body isn't UTF-8, nor in a declared ISO-8859-1 or windows-1252), json (where it is JSON), url (after redirects)"
)

func (w world) plugin() sdk.Plugin {
	return sdk.Plugin{
		Kind: "fetch", Version: version,
		Doc:   "HTTP requests to the origins and paths that were granted",
		Scope: sdk.URL,
		Verbs: verbs,
		// It decides itself which addresses; see dial.go.
		Privileges: []string{"network"},
		Open: func(ctx context.Context, c sdk.Capability) (any, error) {
			k, err := w.open(ctx, c)
			if err != nil {
				return nil, err
			}
			return k, nil
		},
		Operations: []sdk.Operation{
			sdk.Op("request", "makes an HTTP request and gives the answer, whatever its status; redirects within the capability are followed", acts, perform,
				sdk.VerbFrom("method", "get"), sdk.Result(result), sdk.Type(typ)),
		},
	}
}

// arguments are those of fetch.request.
type arguments struct {
	URL      string                 `pif:"url,main,designates" doc:"what is requested: https://host/path?query"`
	Method   string                 `pif:"method,optional" doc:"GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS; GET where it is left out"`
	Headers  map[string]value.Value `pif:"headers,optional,secrets" doc:"names to a string, or to a list of them; or to a secret of the operator's, by its name: {secret: NAME}, with a prefix such as 'Bearer ', or with a user as its password"`
	Body     *string                `pif:"body,optional" doc:"what is sent; name its content-type in headers"`
	Encoding string                 `pif:"encoding,optional,enum=utf8|base64" doc:"how body is written; utf8 where it is left out"`
	JSON     value.Value            `pif:"json,optional" doc:"in place of body: any value, sent as JSON"`
	Timeout  value.Value            `pif:"timeout,optional" doc:"seconds, 30 where it is left out; at most 600, and at most what the capability allows"`
}

// An answer is what a server gave.
type answer struct {
	status  int
	headers http.Header
	body    string
	target  target
}

// perform does fetch.request.
func perform(ctx context.Context, k *client, args arguments) (value.Value, error) {
	c, err := args.call(k.max)
	if err != nil {
		return nil, err
	}
	a, err := k.do(ctx, c)
	if err != nil {
		return nil, err
	}
	fields := append(bodyFields(a.body, a.headers, k.max),
		value.Field{Key: "headers", Value: responseHeaders(a.headers)},
		value.Field{Key: "status", Value: value.NewInt(int64(a.status))},
		value.Field{Key: "url", Value: value.Str(a.target.String())},
	)
	slices.SortFunc(fields, func(a, b value.Field) int { return strings.Compare(a.Key, b.Key) })
	return &value.Record{Fields: fields}, nil
}

// call checks the form of a request.
func (args arguments) call(max int64) (c call, err error) {
	if c.method, err = methodOf(args.Method); err != nil {
		return c, err
	}
	if c.target, err = parseTarget(args.URL); err != nil {
		return c, err
	}
	if c.headers, c.secrets, err = requestHeaders(args.Headers); err != nil {
		return c, err
	}
	if c.timeout, err = timeoutOf(args.Timeout); err != nil {
		return c, err
	}
	if c.body, c.contentType, err = requestBody(args, max); err != nil {
		return c, err
	}
	if c.body != nil && (c.method == http.MethodGet || c.method == http.MethodHead) {
		return c, invalid("a %s has no body", c.method)
	}
	return c, c.checkOverride()
}

// methodOf reads a method in any case.
func methodOf(name string) (string, error) {
	if name == "" {
		return http.MethodGet, nil
	}
	method := strings.ToUpper(name)
	if slices.ContainsFunc(verbs, func(v sdk.Verb) bool { return v.Name == strings.ToLower(method) }) {
		return method, nil
	}
	if method == http.MethodConnect || method == http.MethodTrace {
		return "", failf(codeDenied, "the method %s is never permitted", method)
	}
	return "", invalid("%.40q is not a method: GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS", name)
}

// readOnly reports whether a method changes nothing.
func readOnly(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// maxTimeout is how many seconds a program may ask for.
const maxTimeout = 600

// timeoutOf reads a number of seconds, 0 where there is none.
func timeoutOf(v value.Value) (time.Duration, error) {
	var text string
	switch v := v.(type) {
	case nil, value.Unit:
		return 0, nil
	case value.Int:
		text = v.String()
	case value.Dec:
		text = v.String()
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(seconds) || seconds <= 0 || seconds > maxTimeout {
		return 0, invalid("timeout is a number of seconds, more than 0 and at most %d", maxTimeout)
	}
	return max(time.Duration(seconds*float64(time.Second)), time.Millisecond), nil
}

// The codes of failures that fetch.request gives.
const (
	codeInvalid     = "invalid"     // the arguments make no request
	codeDenied      = "denied"      // the capability doesn't permit it
	codeTooLarge    = "too_large"   // the answer is beyond a limit
	codeTimeout     = "timeout"     // the time was over first
	codeUnreachable = "unreachable" // there was no server to ask
	codeFailed      = "failed"
	codeUnknown     = "unknown" // whether it was done
)

// failf returns the failure of a request. Messages are in our own words, with hosts
// as the program wrote them: what the resolver, the system or the server said is
// never part of one, since it can name internal addresses.
func failf(code, format string, args ...any) error { return sdk.Fail(code, format, args...) }

// invalid returns what is wrong with an argument.
func invalid(format string, args ...any) error { return sdk.Fail(codeInvalid, format, args...) }

// errClosed is why requests end when their capability does.
var errClosed = sdk.Fail(codeDenied, "the capability was closed while the request ran")

// explain makes a failure of what the network layers gave for a request to host.
// A method that isn't read-only says that its effect isn't known: it is that of
// what was sent.
func explain(ctx context.Context, err error, method, host string) error {
	unknown, open, tooLarge := "", openCode(method), codeTooLarge
	if !readOnly(method) {
		tooLarge = open
		unknown = "; whether the server acted on the " + method + " is not known"
	}
	if own, ok := errors.AsType[sdk.Failure](context.Cause(ctx)); ok {
		if own.Message += unknown; unknown != "" {
			own.Code = open
		}
		return own
	}
	if own, ok := errors.AsType[sdk.Failure](err); ok {
		return own
	}
	late := sdk.Fail(codeTimeout, "%s gave no complete answer in time%s", host, unknown)
	late.Retryable = unknown == ""
	var timed net.Error
	switch {
	case errors.Is(context.Cause(ctx), context.Canceled):
		return failf(open, "the request was cancelled%s", unknown)
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return late
	}
	if why := tlsFailure(err, host); why != nil && unknown == "" {
		return why
	}
	switch text := err.Error(); {
	// net/http has no types for these two, which are HTTP/1's.
	case strings.Contains(text, "response headers exceeded"):
		return failf(tooLarge, "the headers of the answer of %s are over the limit of %d bytes%s", host, maxResponseHeaders, unknown)
	case strings.Contains(text, "too many 1xx"):
		return failf(tooLarge, "%s sent interim answers without end%s", host, unknown)
	case errors.As(err, &timed) && timed.Timeout():
		return late
	}
	return failf(open, "%s gave no complete HTTP answer%s", host, unknown)
}

// unsent makes the failure of a request of which nothing was sent. A timeout is late: after one nobody knows what was done.
func unsent(ctx context.Context, err error, host string, late sdk.Failure) error {
	f := explain(ctx, err, http.MethodGet, host)
	if own, ok := errors.AsType[sdk.Failure](f); ok && own.Code == codeTimeout {
		return late.WithRetry()
	}
	return f
}

// openCode is the code of a request that was sent and has no answer that can be used.
func openCode(method string) string {
	if readOnly(method) {
		return codeFailed
	}
	return codeUnknown
}

// tlsFailure gives the failure of a connection that got no TLS, nil for other
// errors. Nothing was sent then.
func tlsFailure(err error, host string) error {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		cert      *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
	)
	switch {
	case errors.As(err, &name):
		return failf(codeUnreachable, "the certificate that %s shows is for another host", host)
	case errors.As(err, &authority):
		return failf(codeUnreachable, "the certificate that %s shows is signed by nobody this system trusts", host)
	case errors.As(err, &cert):
		return failf(codeUnreachable, "the certificate that %s shows is not valid", host)
	case errors.As(err, &record), errors.As(err, &alert):
		return failf(codeUnreachable, "%s and this client agree on no TLS connection", host)
	}
	return nil
}
