package mcplogin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// Options are of one login.
type Options struct {
	Server  string            // the URL
	Headers map[string]string // that each request to the server has
	// ClientID is of a client that was registered before; "": this program registers itself.
	ClientID, ClientSecret string
	// Issuer is the authorization server, if the person knows it: any other is refused.
	Issuer string
	Scopes []string // that are asked for; nil: those that the server names
	Port   int      // of the redirect on loopback; 0: any
	// Show tells the person the URL at which to log in.
	Show func(at *url.URL)
	// Pasted gives a redirect's URL that the person pastes, or waits until its context ends;
	// nil: nobody pastes.
	Pasted func(context.Context) (string, error)
}

// redirectPath is where the browser is sent to on loopback.
const redirectPath = "/callback"

// Begin has a person log in at a server. The login that it returns isn't kept yet.
func Begin(ctx context.Context, o Options) (*Login, error) {
	trusted, err := trustedOrigins(o.Server, o.Issuer)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", o.Port))
	if err != nil {
		return nil, err
	}
	redirect := "http://" + listener.Addr().String() + redirectPath
	l := &Login{Server: o.Server, Trusted: trusted, At: time.Now().UTC().Truncate(time.Second)}
	f := &flow{Options: o, trusted: trusted, redirect: redirect, listener: listener}
	client := newClient(trusted)
	client.Transport = &memo{client.Transport, map[string]*remembered{}}
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect, Client: client, RequestRefreshToken: true, AcceptUnadvertisedIss: true,
		AuthorizationCodeFetcher: f.code,
		NewTokenSource: func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			l.TokenURL, l.ClientID, l.ClientSecret = c.Endpoint.TokenURL, c.ClientID, c.ClientSecret
			l.AuthStyle, l.Scopes = int(c.Endpoint.AuthStyle), c.Scopes
			l.take(t)
			return oauth2.StaticTokenSource(t), nil
		},
	}
	if o.Scopes != nil {
		config.ScopeFilter = func([]string) []string { return o.Scopes }
	}
	if o.ClientID != "" {
		config.PreregisteredClient = &oauthex.ClientCredentials{ClientID: o.ClientID, Issuer: o.Issuer}
		if o.ClientSecret != "" {
			config.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: o.ClientSecret}
		}
	} else {
		config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "mcp-pif", RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}}
	}
	handler, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		listener.Close()
		return nil, err
	}
	defer listener.Close()
	request, answer, err := ask(ctx, client, o)
	if err != nil {
		return nil, err
	}
	if err := f.checkIssuer(ctx, client, answer); err != nil {
		answer.Body.Close()
		return nil, err
	}
	if err := handler.Authorize(ctx, request, answer); err != nil {
		return nil, clean(err)
	}
	if l.Access == "" {
		return nil, errors.New("the authorization server gave no token")
	}
	l.Issuer = f.issuer
	return l, nil
}

// clean is an error without what authorization servers answer, in which a code or a token may
// be.
func clean(err error) error {
	if refused := (*oauth2.RetrieveError)(nil); errors.As(err, &refused) {
		return fmt.Errorf("the authorization server refuses the code: HTTP status %d, %q", refused.Response.StatusCode, short(refused.ErrorCode))
	}
	return err
}

// ask makes a request that a server answers by asking for a login.
func ask(ctx context.Context, client *http.Client, o Options) (*http.Request, *http.Response, error) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcp-pif","version":"1"}}}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, o.Server, bytes.NewReader([]byte(hello)))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range o.Headers {
		r.Header.Set(name, value)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, nil, fmt.Errorf("the server isn't reached: %w", err)
	}
	if answer.StatusCode != http.StatusUnauthorized {
		answer.Body.Close()
		return nil, nil, fmt.Errorf("the server asks for no login: it answers with HTTP status %d", answer.StatusCode)
	}
	return r, answer, nil
}

// A flow is one login between the server's refusal and the code.
type flow struct {
	Options
	trusted  []string
	redirect string
	listener net.Listener
	issuer   string
}

// checkIssuer finds the authorization server as the handler will, to hold it to what the
// person said and to know its name.
func (f *flow) checkIssuer(ctx context.Context, client *http.Client, answer *http.Response) error {
	challenges, err := oauthex.ParseWWWAuthenticate(answer.Header.Values("WWW-Authenticate"))
	if err != nil {
		return fmt.Errorf("the server's header WWW-Authenticate can't be read")
	}
	server, err := url.Parse(f.Server)
	if err != nil {
		return err
	}
	root := url.URL{Scheme: server.Scheme, Host: server.Host}
	type place struct{ at, resource string }
	places := []place{
		{root.String() + "/.well-known/oauth-protected-resource/" + strings.TrimLeft(server.Path, "/"), f.Server},
		{root.String() + "/.well-known/oauth-protected-resource", root.String()},
	}
	i := slices.IndexFunc(challenges, func(c oauthex.Challenge) bool { return c.Params["resource_metadata"] != "" })
	if i >= 0 {
		places = append([]place{{challenges[i].Params["resource_metadata"], f.Server}}, places...)
	}
	f.issuer = root.String()
	for n, p := range places {
		m, err := oauthex.GetProtectedResourceMetadata(ctx, p.at, p.resource, client)
		if err == nil && len(m.AuthorizationServers) > 0 {
			f.issuer = m.AuthorizationServers[0]
			break
		}
		if i >= 0 && n == 0 {
			// What the server names isn't passed over for what somebody else may have put there.
			return fmt.Errorf("the metadata that the server names at %q are refused: %w", short(p.at), cmp.Or(err, errors.New("they name no authorization server")))
		}
	}
	if f.Issuer != "" && strings.TrimSuffix(f.Issuer, "/") != strings.TrimSuffix(f.issuer, "/") {
		return fmt.Errorf("the server names %q as its authorization server, not %s", short(f.issuer), f.Issuer)
	}
	// The handler refuses one without PKCE, and sends S256 to one that knows plain alone.
	m, err := auth.GetAuthServerMetadata(ctx, f.issuer, client)
	if err == nil && m != nil && !slices.Contains(m.CodeChallengeMethodsSupported, "S256") {
		return fmt.Errorf("the authorization server %q knows no PKCE by S256", short(f.issuer))
	}
	return nil
}

// code sends the person to the authorization server, and waits for the redirect.
func (f *flow) code(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	at, err := url.Parse(args.URL)
	if err != nil {
		return nil, err
	}
	if err := encrypted(at, f.trusted); err != nil {
		return nil, err
	}
	state := at.Query().Get("state")
	came := make(chan url.Values, 1)
	server := &http.Server{ReadHeaderTimeout: requestTimeout, MaxHeaderBytes: 32 << 10, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Referrer-Policy", "no-referrer")
		if r.Method != http.MethodGet || r.URL.Path != redirectPath || r.Host != f.listener.Addr().String() || q.Get("state") != state {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintln(w, "This isn't the login that mcp-pif waits for.")
			return
		}
		select {
		case came <- q:
		default:
		}
		fmt.Fprintln(w, "mcp-pif has the answer: the terminal says what came of it. This window can be closed.")
	})}
	go func() { _ = server.Serve(f.listener) }()
	defer func() {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(within) // the browser reads its answer
	}()
	f.Show(at)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pasted := make(chan error, 1)
	if f.Pasted != nil {
		go func() {
			text, err := f.Pasted(ctx)
			var q url.Values
			if err == nil {
				q, err = f.redirected(text)
			}
			if err == nil {
				select {
				case came <- q:
				default:
				}
				return
			}
			pasted <- err
		}()
	}
	select {
	case q := <-came:
		if e := q.Get("error"); e != "" {
			return nil, fmt.Errorf("the authorization server refuses: %q", short(cmp.Or(q.Get("error_description"), e)))
		}
		return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
	case err := <-pasted:
		return nil, err
	case <-ctx.Done():
		return nil, errors.New("nobody logged in")
	}
}

// redirected reads the URL of a redirect that a person pasted.
func (f *flow) redirected(text string) (url.Values, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme+"://"+u.Host+u.Path != f.redirect {
		return nil, fmt.Errorf("that isn't the URL to which the browser was sent, which begins with %s?", f.redirect)
	}
	return u.Query(), nil
}

// short truncates a stranger's words for a message that quotes them.
func short(text string) string {
	if len(text) > 200 {
		return strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}
