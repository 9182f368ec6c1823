// Package mcplogin logs in at MCP servers, by OAuth 2.1 as their protocol has it, and keeps
// the tokens.
//
// [Begin] is for a command that a person runs: it finds the server's authorization server
// (RFC 9728, RFC 8414), registers this program there where nobody has (RFC 7591), sends the
// person's browser there with PKCE, and takes the redirect on loopback, or as text that the
// person pastes. What the server names is contacted only if it is public and encrypted, of the
// server's own origin, or the issuer that the person named (transport.go).
//
// A login is a file that only this user can read, in a folder of its own. [Source] gives the
// token in it to whoever calls the server, and renews it under the file's lock, so that several
// processes renew it once. Neither a token nor a code is in any error's text.
package mcplogin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// FileName is the name of a login's file in its folder.
const FileName = "login.json"

// maxFile bounds such a file.
const maxFile = 256 << 10

// A Login is what is kept of one login at one server.
type Login struct {
	Server       string    `json:"server"` // the URL that it is for
	Issuer       string    `json:"issuer"` // who gave the tokens; "": it didn't say
	TokenURL     string    `json:"token_url"`
	ClientID     string    `json:"client_id"`
	ClientSecret string    `json:"client_secret,omitempty"`
	AuthStyle    int       `json:"auth_style,omitempty"` // oauth2's
	Trusted      []string  `json:"trusted"`              // origins that needn't be public
	Scopes       []string  `json:"scopes,omitempty"`
	Access       string    `json:"access_token"`
	Refresh      string    `json:"refresh_token,omitempty"`
	Expiry       time.Time `json:"expiry,omitzero"`
	Renew        time.Time `json:"renew,omitzero"`      // when it is renewed if nobody waits for that
	At           time.Time `json:"at"`                  // when the person logged in
	Principal    string    `json:"principal,omitempty"` // whose it is, where it isn't everybody's
}

// ErrNone is of a server at which nobody is logged in, or no longer.
var ErrNone = errors.New("nobody is logged in at the server")

// Read reads the login in a folder. [ErrNone]: there is none for the server.
func Read(folder, server string) (*Login, error) {
	text, err := statefile.ReadPrivate(filepath.Join(folder, FileName), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	var l Login
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("the login: %w", err)
	case l.Server != server || l.Access == "":
		return nil, ErrNone // of what was at this name before
	}
	return &l, nil
}

// Write keeps a login in a folder.
func (l *Login) Write(folder string) error {
	release, err := lock(folder)
	if err != nil {
		return err
	}
	defer release()
	return l.write(folder)
}

func (l *Login) write(folder string) error {
	text, err := json.Marshal(l)
	switch {
	case err != nil:
		return err
	case strings.ContainsFunc(l.Access, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("the authorization server gives a token that can't be sent")
	case len(text) > maxFile:
		return fmt.Errorf("the authorization server gives more than the %d bytes that are kept of a login", maxFile)
	}
	return statefile.Replace(filepath.Join(folder, FileName), text, 0o600)
}

// lock waits until this process alone changes the login.
func lock(folder string) (release func(), err error) {
	return statefile.Lock(filepath.Join(folder, FileName+".lock"))
}

// Remove forgets the login in a folder. [ErrNone]: there was none.
func Remove(folder string) error {
	release, err := lock(folder)
	if err != nil {
		return err
	}
	defer release()
	if err := os.Remove(filepath.Join(folder, FileName)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return ErrNone
}

// config is oauth2's.
func (l *Login) config() *oauth2.Config {
	return &oauth2.Config{
		ClientID: l.ClientID, ClientSecret: l.ClientSecret, Scopes: l.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: l.TokenURL, AuthStyle: oauth2.AuthStyle(l.AuthStyle)},
	}
}

// take puts a token into a login. A server that gives no other refresh token means the old.
func (l *Login) take(t *oauth2.Token) {
	l.Access, l.Expiry = t.AccessToken, t.Expiry
	l.Renew = t.Expiry.Add(-min(renewBefore, max(0, time.Until(t.Expiry)/2)))
	if t.RefreshToken != "" {
		l.Refresh = t.RefreshToken
	}
}

// A Source gives the tokens of one login to one process. It is safe for concurrent use.
type Source struct {
	folder, server string
	// changed is told of each token that is about to be used, so that it is kept out of what
	// comes back.
	changed func(secrets []string)

	mu       sync.Mutex
	read     os.FileInfo   // the file that was read; nil: none
	now      *Login        // nil: there is none
	renewing chan struct{} // closed when it is renewed, or can't be; nil: nobody renews it
	renews   string        // the token that is renewed
	failed   error         // why it couldn't be, until retry
	retry    time.Time
}

// NewSource makes a source of the login in a folder, which may come later. changed may be
// nil.
func NewSource(folder, server string, changed func(secrets []string)) *Source {
	return &Source{folder: folder, server: server, changed: changed}
}

// renewBefore is how long before its end a token is renewed: half its life if that is shorter.
const renewBefore = 30 * time.Second

// renewTimeout is how long the authorization server may take.
const renewTimeout = 20 * time.Second

// retryAfter is how long nobody asks again for what couldn't be renewed.
const retryAfter = 10 * time.Second

// Token returns the token to send, renewed if its time is over, or with ahead about to be; "":
// nobody is logged in. A process that ends while it renews may lose the login: what nobody
// waits for isn't ahead.
func (s *Source) Token(ctx context.Context, ahead bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	if s.now == nil {
		return ""
	}
	due := s.now.Expiry
	if ahead {
		due = cmp.Or(s.now.Renew, due)
	}
	if !s.now.Expiry.IsZero() && time.Now().After(due) && s.now.Refresh != "" {
		if old := s.now.Access; s.renew(ctx, old) != nil {
			return old // which may do for a while
		}
	}
	return s.now.Access
}

// Rejected returns the token to send after the server refused one: what another process
// renewed, or what is renewed now. [ErrNone]: a person has to log in.
func (s *Source) Rejected(ctx context.Context, token string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	if s.now == nil {
		return "", ErrNone
	}
	if s.now.Access == token {
		if err := s.renew(ctx, token); err != nil {
			return "", err
		}
	}
	return s.now.Access, nil
}

// load reads the file if it isn't the one that was read. The caller holds mu.
func (s *Source) load() {
	info, err := os.Stat(filepath.Join(s.folder, FileName))
	if err != nil {
		s.now, s.read = nil, nil
		return
	}
	if s.now != nil && statefile.Unchanged(s.read, info) {
		return
	}
	s.read, s.now = info, nil
	if l, err := Read(s.folder, s.server); err == nil {
		s.use(l)
	}
}

func (s *Source) use(l *Login) {
	s.now, s.failed = l, nil
	if s.changed != nil {
		s.changed([]string{l.Access, l.Refresh, l.ClientSecret})
	}
}

// renew replaces a token, unless another process did, or it failed just now. The caller holds mu, which is free
// while the authorization server is asked; the first who comes asks for all.
func (s *Source) renew(ctx context.Context, token string) error {
	for {
		if s.renewing == nil {
			if s.failed != nil && time.Now().Before(s.retry) {
				return s.failed
			}
			done := make(chan struct{})
			s.renewing, s.renews = done, token
			go func() {
				// A refresh token may be good once: what comes for it counts, whether its call is cancelled or not.
				l, err := renewed(context.WithoutCancel(ctx), s.folder, s.server, token)
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.renewing = nil; err == nil {
					s.read = nil // read again, and the same
					s.use(l)
				}
				s.failed, s.retry = err, time.Now().Add(retryAfter)
				close(done)
			}()
		}
		done, of, ended := s.renewing, s.renews, error(nil)
		s.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			ended = ctx.Err()
		}
		s.mu.Lock()
		switch err := cmp.Or(ended, s.failed); {
		case err != nil:
			return err
		case s.now == nil: // it was removed meanwhile
			return ErrNone
		case of == token || s.now.Access != token: // else an earlier token's renewal ended
			return nil
		}
	}
}

// renewed renews the token of a login, unless another process did.
func renewed(ctx context.Context, folder, server, token string) (*Login, error) {
	release, err := lock(folder)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := Read(folder, server)
	if err != nil || l.Access != token {
		return l, err
	}
	if l.Refresh == "" {
		return nil, ErrNone
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, newClient(l.Trusted)), renewTimeout)
	defer cancel()
	t, err := l.config().TokenSource(ctx, &oauth2.Token{RefreshToken: l.Refresh}).Token()
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		switch status, code := refused.Response.StatusCode, refused.ErrorCode; {
		case status == http.StatusUnauthorized, status == http.StatusBadRequest && (code == "invalid_grant" || code == "invalid_client"):
			return nil, ErrNone
		}
	}
	if err != nil {
		return nil, errors.New("the token can't be renewed: the authorization server isn't reached, or gives none")
	}
	l.take(t)
	return l, l.write(folder)
}
