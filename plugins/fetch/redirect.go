package fetch

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// maxRedirects is how many redirects one request follows.
const maxRedirects = 10

// follow performs a request that is permitted, and then the requests that
// answers redirect to, each of which is checked as the first one was. It stops
// at the first that isn't permitted: that is a failure.
func (k *client) follow(ctx context.Context, c call) (*answer, error) {
	made := "" // what an answer redirected from, of requests that may have changed something
	for range maxRedirects + 1 {
		resp, err := k.send(ctx, c)
		if err != nil {
			return nil, after(made, err)
		}
		location := resp.Header.Get("Location")
		method, redirects := redirectMethod(c.method, resp.StatusCode)
		if !redirects || location == "" {
			a, err := k.read(ctx, resp, c)
			return a, after(made, err)
		}
		if !readOnly(c.method) {
			made = c.method + " " + show(c.target)
		}
		resp.Body.Close()
		next, err := relative(c.target, location)
		if err == nil {
			err = k.permits(method, next)
		}
		again := c.redirectTo(method, next)
		if err == nil {
			err = again.checkOverride()
		}
		if err != nil {
			return nil, after(made, refusedRedirect(err, c, resp.StatusCode))
		}
		c = again
	}
	return nil, after(made, failf(codeFailed, "%s redirects more than %d times", c.target.host, maxRedirects))
}

// after returns the failure of a request that came after others: what they changed isn't undone by it.
func after(made string, err error) error {
	f, ok := err.(sdk.Failure)
	if !ok || made == "" {
		return err
	}
	f.Code, f.Retryable = codeUnknown, false
	f.Message += "; " + made + " was answered, by a redirect"
	return f.WithHint("Find out what came of that before it is made again.")
}

// refusedRedirect returns that it is a redirect which wasn't permitted, and that the
// request before it was performed.
func refusedRedirect(err error, c call, status int) error {
	f := sdk.Fail(codeDenied, "%v", err)
	if own, ok := err.(sdk.Failure); ok {
		f = own
		f.Code = codeDenied
	}
	f.Message = "the answer to " + c.method + " " + show(c.target) + " was a redirect (" + http.StatusText(status) + ") that isn't followed: " + f.Message
	return f
}

// redirectMethod gives the method of the request that an answer redirects to
// (RFC 9110 section 15.4, and as browsers do for 301 and 302), and whether it
// is a redirect.
func redirectMethod(method string, status int) (string, bool) {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound:
		if method == http.MethodPost {
			return http.MethodGet, true
		}
		return method, true
	case http.StatusSeeOther:
		if method != http.MethodHead {
			return http.MethodGet, true
		}
		return method, true
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return method, true
	}
	return method, false
}

// relative reads the location of a redirect from a target. What it leads to is
// read as strictly as a program's URL.
func relative(from target, location string) (target, error) {
	base, err := url.Parse(from.String())
	if err != nil {
		return target{}, invalid("it leads to no URL")
	}
	to, err := base.Parse(strings.Trim(location, " "))
	if err != nil {
		return target{}, invalid("it leads to no URL")
	}
	to.Fragment, to.RawFragment = "", ""
	return parseTarget(to.String())
}

// redirectTo returns the request that follows. The program's headers go to the
// origin that the program named, and to no other.
func (c call) redirectTo(method string, next target) call {
	headers := c.headers.Clone()
	if next.origin != c.target.origin {
		headers, c.secrets = http.Header{}, nil
	}
	if method != c.method {
		c.body, c.contentType = nil, ""
		for name := range headers {
			if strings.HasPrefix(name, "Content-") {
				delete(headers, name)
			}
		}
		c.secrets = slices.DeleteFunc(slices.Clone(c.secrets), func(s secretHeader) bool { return strings.HasPrefix(s.header, "Content-") })
	}
	c.method, c.target, c.headers = method, next, headers
	return c
}
