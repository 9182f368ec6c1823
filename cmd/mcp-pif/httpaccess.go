package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/streamable"
)

// An access is what decides who comes in over HTTP, read from the operator's files,
// and again on SIGHUP.
type access struct {
	o      *httpOptions
	tokens streamable.Tokens
	keys   streamable.Keys
	cert   atomic.Pointer[tls.Certificate]
	log    *slog.Logger
}

// open reads the files that the flags name.
func (o *httpOptions) open(log *slog.Logger) (*access, error) {
	a := &access{
		o: o, tokens: streamable.Tokens{Name: caps.CheckPrincipal}, log: log,
		keys: streamable.Keys{Issuer: o.issuer, Audience: o.audience, Name: caps.CheckPrincipal},
	}
	for _, read := range a.readers() {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// examine reports why a server with these flags wouldn't let in whom it is meant to.
func (o *httpOptions) examine(store *app.StoreOptions) error {
	if err := o.check(store); err != nil || o.address == "" {
		return err
	}
	if _, err := o.listen(); err != nil {
		return err
	}
	_, err := o.open(slog.New(slog.DiscardHandler))
	return err
}

// readers is what reads the files, each by itself: one that is wrong changes
// nothing, and leaves the others to be read.
func (a *access) readers() (all []func() error) {
	if a.o.tokens != "" {
		all = append(all, a.readTokens)
	}
	if a.o.jwks != "" {
		all = append(all, func() error {
			text, _, err := readOwn(a.o.jwks)
			if err == nil {
				err = a.keys.Load(text)
			}
			return told("--http-jwks", a.o.jwks, err)
		})
	}
	if a.o.cert != "" {
		all = append(all, a.readCertificate)
	}
	return all
}

// readTokens reads the tokens. A file that others can read may only hold hashes.
func (a *access) readTokens() error {
	text, private, err := readOwn(a.o.tokens)
	if err == nil && !private && !streamable.Hashed(text) {
		err = errors.New("others can read it, and it holds tokens: chmod 600, or put sha256: and its hash in place of each token")
	}
	if err == nil {
		err = a.tokens.Load(text)
	}
	return told("--http-tokens", a.o.tokens, err)
}

func (a *access) readCertificate() error {
	cert, _, err := readOwn(a.o.cert)
	if err != nil {
		return told("--http-tls-cert", a.o.cert, err)
	}
	key, private, err := readOwn(a.o.key)
	if err == nil && !private {
		err = errors.New("others can read it: chmod 600")
	}
	if err != nil {
		return told("--http-tls-key", a.o.key, err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return told("--http-tls-cert", a.o.cert, err)
	}
	a.cert.Store(&pair)
	return nil
}

// mostOfFile is how many bytes such a file may have.
const mostOfFile = 4 << 20

// readOwn reads a file that is this user's to write. Links are followed, since
// whoever renews certificates makes them; what is judged is the file.
func readOwn(path string) (text []byte, private bool, err error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		if at, ok := errors.AsType[*os.PathError](err); ok {
			err = at.Err
		}
		return nil, false, err
	}
	return statefile.ReadOwn(real, mostOfFile)
}

func told(flag, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", flag, path, err)
}

// verifier knows the tokens; nil: nobody needs one.
func (a *access) verifier() auth.TokenVerifier {
	switch {
	case a.o.tokens != "" && a.o.jwks != "":
		return streamable.Either(a.tokens.Verify, a.keys.Verify)
	case a.o.tokens != "":
		return a.tokens.Verify
	case a.o.jwks != "":
		return a.keys.Verify
	}
	return nil
}

// tls is how connections are secured; nil: they aren't.
func (a *access) tls() *tls.Config {
	if a.o.cert == "" {
		return nil
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.cert.Load(), nil },
	}
}

// unheard warns of principals of whom the policy says something, and whom no token
// stands for. Who signed tokens may stand for can't be known.
func (a *access) unheard(names []string) {
	for _, name := range names {
		if a.stands(name) {
			continue
		}
		a.log.Warn("the policy says something of a principal that no token stands for", "principal", name)
	}
}

// stands reports whether a token stands for a principal, or may.
func (a *access) stands(name string) bool {
	return !a.o.wantsTokens() || a.tokens.Has(name) || a.keys.MaySign(name)
}

// watch reads the files again on SIGHUP until it is stopped, and then tells whom it
// concerns. What is wrong with a file changes nothing; one that was emptied lets nobody in.
func (a *access) watch(changed func()) (stop func()) {
	readers := a.readers()
	if len(readers) == 0 {
		return func() {}
	}
	hup, end := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hup, syscall.SIGHUP)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-hup:
			}
			read := 0
			for _, again := range readers {
				if err := again(); errors.Is(err, streamable.ErrNobody) {
					a.log.Error("a file was read again", "error", err)
					read++
				} else if err != nil {
					a.log.Error("a file was read again and refused; what held before stays", "error", err)
				} else {
					read++
				}
			}
			changed()
			a.log.Info("the files of --http were read again", "taken", read, "of", len(readers))
		}
	})
	return func() {
		signal.Stop(hup)
		close(end)
		done.Wait()
	}
}
