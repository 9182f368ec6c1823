package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// The codes of failures that fetch.request gives.
const (
	codeInvalid     = "invalid"     // the arguments make no request
	codeDenied      = "denied"      // the capability doesn't permit it
	codeTooLarge    = "too_large"   // the answer is beyond a limit
	codeTimeout     = "timeout"     // the time was over first
	codeUnreachable = "unreachable" // there was no server to ask
	codeFailed      = "failed"
	codeUnknown     = "unknown" // whether it was done      // it was asked, and gave no usable answer
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
// A method that isn't read-only says that its effect isn't known, unless there
// never was a connection.
func explain(ctx context.Context, err error, method, host string) error {
	unknown, open := "", codeFailed
	if !readOnly(method) {
		open = codeUnknown
		unknown = "; whether the server acted on the " + method + " is not known"
	}
	if own, ok := errors.AsType[sdk.Failure](context.Cause(ctx)); ok {
		own.Message += unknown
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
	if why := tlsFailure(err, host); why != nil {
		return why
	}
	switch text := err.Error(); {
	// net/http has no types for these two, which are HTTP/1's.
	case strings.Contains(text, "response headers exceeded"):
		return failf(codeTooLarge, "the headers of the answer of %s are over the limit of %d bytes", host, maxResponseHeaders)
	case strings.Contains(text, "too many 1xx"):
		return failf(codeTooLarge, "%s sent interim answers without end", host)
	case errors.As(err, &timed) && timed.Timeout():
		return late
	}
	return failf(open, "%s gave no complete HTTP answer%s", host, unknown)
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
