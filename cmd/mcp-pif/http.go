package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/queue"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/results"
	"github.com/mcp-pif/mcp-pif/cmd/internal/streamable"
	"github.com/mcp-pif/mcp-pif/cmd/internal/telemetry"
)

// httpOptions are the flags about MCP over HTTP.
type httpOptions struct {
	address                string
	tokens                 string
	jwks, issuer, audience string
	cert, key              string
	hosts, origins         []string
	otlp                   string
}

func (o *httpOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.address, "http", "", "serve on `ADDRESS` (host:port, or :port on this machine alone) over HTTP, not on standard input and output")
	f.StringVar(&o.tokens, "http-tokens", "", "accept the tokens in this `FILE`, a line each: a name and a token; reloaded on SIGHUP")
	f.StringVar(&o.jwks, "http-jwks", "", "accept tokens (JWT) signed by a key in this `FILE` (JWKS); reloaded on SIGHUP")
	f.StringVar(&o.issuer, "http-issuer", "", "accept only JWTs of this issuer (iss), a `URL`")
	f.StringVar(&o.audience, "http-audience", "", "accept only JWTs for this audience (aud), the `NAME` of this server; if it is the server's URL, clients are told of the issuer")
	f.StringVar(&o.cert, "http-tls-cert", "", "serve with TLS, with the certificate in this `FILE`; reloaded on SIGHUP")
	f.StringVar(&o.key, "http-tls-key", "", "the certificate's private key, in this `FILE`")
	f.StringArrayVar(&o.hosts, "http-host", nil, "let clients call the server by this `NAME`, too; may be repeated")
	f.StringArrayVar(&o.origins, "http-origin", nil, "let web pages of this `ORIGIN` call the server; may be repeated")
	f.StringVar(&o.otlp, "otlp", "", "send traces of runs and effects to the OpenTelemetry collector at this `URL`, such as http://localhost:4318")
}

// files is those that the flags name.
func (o *httpOptions) files() []string { return []string{o.tokens, o.jwks, o.cert, o.key} }

// check refuses flags that don't go together.
func (o *httpOptions) check(store *app.StoreOptions) error {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"--http-tokens", o.tokens != ""}, {"--http-jwks", o.jwks != ""}, {"--http-issuer", o.issuer != ""}, {"--http-audience", o.audience != ""},
		{"--http-tls-cert", o.cert != ""}, {"--http-tls-key", o.key != ""}, {"--http-host", len(o.hosts) > 0}, {"--http-origin", len(o.origins) > 0},
	} {
		if f.given && o.address == "" {
			return fmt.Errorf("%s goes with --http ADDRESS", f.name)
		}
	}
	switch {
	case (o.jwks != "" || o.issuer != "" || o.audience != "") && (o.jwks == "" || o.issuer == "" || o.audience == ""):
		return errors.New("--http-jwks FILE, --http-issuer URL and --http-audience NAME go together: a token that is signed must be of that issuer and for this server")
	case (o.cert == "") != (o.key == ""):
		return errors.New("--http-tls-cert FILE and --http-tls-key FILE go together")
	case o.wantsTokens() && store.Profile != "":
		return errors.New("--profile says whose tools they are, and with tokens that is who has the token: leave it out")
	case o.wantsTokens() && store.Store != "" && store.Store != app.InMemory:
		return errors.New("--store FILE is one place, and with tokens everybody has their own, in the profile http:NAME: leave it out, or say --store memory")
	}
	return nil
}

// wantsTokens reports whether only those come in who have one.
func (o *httpOptions) wantsTokens() bool { return o.tokens != "" || o.jwks != "" }

// listen is the address to listen on. Without a host it is this machine's own,
// since what can be reached from others has to be said.
func (o *httpOptions) listen() (*net.TCPAddr, error) {
	wrong := func() error {
		return fmt.Errorf("--http is host:port, such as 127.0.0.1:8080, or :8080 for this machine alone, not %q", o.address)
	}
	host, port, err := net.SplitHostPort(o.address)
	if err != nil {
		if strings.Trim(o.address, "0123456789") != "" {
			return nil, wrong()
		}
		port = o.address
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return nil, wrong()
	}
	addr, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port))
	if err != nil {
		return nil, fmt.Errorf("--http %s: %w", o.address, err)
	}
	return addr, nil
}

// names is the names by which the server may be called.
func (o *httpOptions) names() []string {
	host, _, err := net.SplitHostPort(o.address)
	if err != nil || host == "" {
		return o.hosts
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return o.hosts
	}
	return append([]string{host}, o.hosts...)
}

// measuring opens the instruments that the flags ask for, none where they ask for
// none.
func (o *httpOptions) measuring(ctx context.Context, log *slog.Logger) (*telemetry.Telemetry, error) {
	if o.address == "" && o.otlp == "" {
		return nil, nil
	}
	t, err := telemetry.Open(ctx, telemetry.Options{Version: cli.Version(), OTLP: o.otlp, Log: log})
	if err != nil && o.otlp != "" {
		return nil, fmt.Errorf("--otlp: %w", err)
	}
	return t, err
}

// A web is a server over HTTP.
type web struct {
	o      *serveOptions
	auth   *app.Authority
	limits engine.Limits
	log    *slog.Logger
	errs   io.Writer
	// results is where all of them keep large results.
	results *results.Store
	// tasks bounds the tasks of all of them together.
	tasks engine.TaskRoom
	// grow is told what the tools of all take in memory; makeRoom closes a server for others' tools.
	grow     func(tools int64)
	makeRoom func() bool
	opening  sync.Mutex // large stores
	// processors is what the runs of all of them compute on.
	processors *queue.Processors
	idle       time.Duration // after which a session ends; 0: as usual
}

// serve answers until ctx ends.
func (w *web) serve(ctx context.Context) error {
	w.results, w.processors = results.New(0), queue.NewProcessors()
	o := &w.o.httpOptions
	addr, err := o.listen()
	if err != nil {
		return err
	}
	access, err := o.open(w.log)
	if err != nil {
		return cli.Failed(err)
	}
	w.auth.Unheard = func() { access.unheard(w.auth.Principals.Names()) }
	w.auth.Unheard()
	if w.auth.Host != nil {
		w.auth.Watch(ctx, "HTTP at "+o.address, true)
		w.auth.TellSandbox()
	}
	for _, path := range o.files() {
		if path == "" {
			continue
		}
		if path, err = filepath.Abs(path); err == nil {
			err = w.auth.ReachedByPlugin("--http", path)
		}
		if err != nil {
			return cli.Failed(err)
		}
	}
	all := newPrincipals(w.log, func(name string, number uint64) (*principal, error) { return w.principal(ctx, name, number) })
	acting := len(w.auth.Principals.Grants()) > 0
	if acting {
		all.most = mostActing // each may have processes
	}
	w.auth.Room = registry.NewRoom(toolRoom, all.most, w.grow)
	w.makeRoom = all.makeRoom
	defer all.close()
	options := streamable.Options{
		Server: all.server, Hosts: o.names(), Origins: o.origins, Verify: access.verifier(), Audience: o.audience, Issuer: o.issuer, TLS: access.tls(), Log: w.log,
		Ready: w.ready(), Note: w.note, Metrics: w.auth.Telemetry.Metrics(), Measure: w.auth.Telemetry.Requests, IdleSession: w.idle,
		ArgumentsHeader: mcpserver.ArgumentsHeader,
	}
	if w.auth.Node != nil {
		options.Roams = w.auth.Node
	}
	if err := options.Check(addr, acting); err != nil {
		return err
	}
	h, err := streamable.New(options)
	if err != nil {
		return err
	}
	ln, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return cli.Failed(fmt.Errorf("--http %s: %w", o.address, err))
	}
	defer ln.Close()
	if !o.wantsTokens() {
		// What is kept is opened at once: what is wrong with it ends the start.
		if err := all.open(""); err != nil {
			return cli.Failed(err)
		}
	}
	defer access.watch(func() {
		h.Recheck(context.WithoutCancel(ctx))
		all.expel(access.stands)
		w.auth.Unheard()
	})()
	scheme := "http"
	if o.cert != "" {
		scheme = "https"
	}
	at, others := ln.Addr().String(), ""
	if addr.IP.IsUnspecified() {
		_, port, _ := net.SplitHostPort(at)
		at, others = "127.0.0.1:"+port, " and this machine's other addresses"
	}
	url := scheme + "://" + at + streamable.Path
	fmt.Fprintf(w.errs, "mcp-pif serves MCP at %s%s\n", url, others)
	w.log.Info("serving MCP over HTTP", "version", cli.Version(), "url", url, "tokens", o.wantsTokens(), "capabilities", w.auth.Summary())
	if o.cert == "" && !addr.IP.IsLoopback() {
		w.log.Warn("others can read the tokens and all that is said on the way: give --http-tls-cert and --http-tls-key, or put a proxy with TLS before it")
	}
	err = h.Serve(ctx, ln)
	if err == nil {
		w.log.Info("stopped by a signal")
	}
	return cli.Failed(err)
}
