package mcptest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// An OAuth server is a server at /mcp that wants a login, and the authorization server for
// that, of one origin. Everybody who comes to its page is logged in.
type OAuth struct {
	MCP http.Handler
	URL string // its own
	// Attack is what it does wrong:
	//
	//	iss no-iss state error                the redirect has another issuer, none, another state, or an error
	//	code                                  the code is one of another login
	//	metadata issuer                       its metadata, or its issuer, are said to be Elsewhere
	//	other-issuer resource no-pkce         its metadata are of another issuer or resource, or know no PKCE
	//	plain-pkce                            they know PKCE by plain alone
	//	token redirect                        the token is said to be Elsewhere, by metadata or by a redirect
	//	page file program                     the page is said to be Elsewhere, a file's, or another program's
	Attack, Elsewhere string
	// Lifetime is how long tokens are good, in seconds; 0: it doesn't say.
	Lifetime int
	// Client and Secret are of a client that was registered before; empty: any registers.
	Client, Secret string

	mu     sync.Mutex
	made   int
	codes  map[string]url.Values // the requests that they are for
	access map[string]bool
	fresh  string   // the refresh token
	acted  []string // what was asked of it
}

// Acted returns what was asked of the authorization server: register, authorize, token,
// refresh.
func (o *OAuth) Acted() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string{}, o.acted...)
}

// Forget ends all tokens but the refresh token, or that, too.
func (o *OAuth) Forget(all bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.access)
	if all {
		o.fresh = ""
	}
}

// Tokens returns the tokens that are good now.
func (o *OAuth) Tokens() (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append(slices.Collect(maps.Keys(o.access)), o.fresh)
}

// ServeHTTP answers one request.
func (o *OAuth) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	elsewhere := func(attack, otherwise string) string {
		if o.Attack == attack {
			return o.Elsewhere
		}
		return otherwise
	}
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	refuse := func(code string) {
		answer(http.StatusBadRequest, map[string]string{"error": code, "error_description": Canary})
	}
	switch r.URL.Path {
	case "/mcp":
		if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && o.access[token] {
			o.mu.Unlock()
			o.MCP.ServeHTTP(w, r)
			o.mu.Lock()
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+elsewhere("metadata", o.URL)+`/.well-known/oauth-protected-resource/mcp", scope="all"`)
		http.Error(w, Canary, http.StatusUnauthorized)
	case "/.well-known/oauth-protected-resource/mcp":
		resource := o.URL + "/mcp"
		if o.Attack == "resource" {
			resource = "https://other.example/mcp"
		}
		answer(http.StatusOK, map[string]any{"resource": resource, "authorization_servers": []string{elsewhere("issuer", o.URL)}})
	case "/.well-known/oauth-authorization-server":
		meta := map[string]any{
			"issuer": o.URL, "authorization_endpoint": elsewhere("page", o.URL) + "/authorize", "token_endpoint": elsewhere("token", o.URL) + "/token", "registration_endpoint": o.URL + "/register",
			"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true, "response_types_supported": []string{"code"},
		}
		switch o.Attack {
		case "other-issuer":
			meta["issuer"] = "https://other.example"
		case "file":
			meta["authorization_endpoint"] = "file://localhost/etc/passwd"
		case "program":
			meta["authorization_endpoint"] = "vscode://localhost/authorize"
		case "no-pkce":
			delete(meta, "code_challenge_methods_supported")
		case "plain-pkce":
			meta["code_challenge_methods_supported"] = []string{"plain"}
		}
		answer(http.StatusOK, meta)
	case "/register":
		var said map[string]any
		if o.acted = append(o.acted, "register"); o.Client != "" || json.NewDecoder(r.Body).Decode(&said) != nil {
			refuse("invalid_client_metadata")
			return
		}
		said["client_id"] = "client"
		answer(http.StatusCreated, said)
	case "/authorize":
		o.acted = append(o.acted, "authorize")
		o.authorize(w, r)
	case "/token":
		_ = r.ParseForm()
		if o.Attack == "redirect" {
			http.Redirect(w, r, o.Elsewhere+"/token", http.StatusTemporaryRedirect)
			return
		}
		if !o.mayHave(r.PostForm) {
			refuse("invalid_grant")
			return
		}
		o.made++
		token := fmt.Sprintf("access-%d-token-0123456789", o.made)
		if o.access == nil {
			o.access = map[string]bool{}
		}
		o.access[token], o.fresh = true, fmt.Sprintf("refresh-%d-token-0123456789", o.made)
		answer(http.StatusOK, map[string]any{"access_token": token, "token_type": "Bearer", "refresh_token": o.fresh, "expires_in": o.Lifetime})
	default:
		http.NotFound(w, r)
	}
}

// authorize sends the browser back, with a code.
func (o *OAuth) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("resource") != o.URL+"/mcp" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" {
		http.Error(w, "it isn't as the protocol has it", http.StatusBadRequest)
		return
	}
	o.made++
	code := fmt.Sprintf("code-%d", o.made)
	if o.codes == nil {
		o.codes = map[string]url.Values{}
	}
	if o.codes[code] = q; o.Attack == "code" {
		o.codes[code] = url.Values{"code_challenge": {"another"}, "redirect_uri": q["redirect_uri"], "client_id": q["client_id"]}
	}
	answer := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {o.URL}}
	switch o.Attack {
	case "iss":
		answer.Set("iss", "https://other.example")
	case "no-iss":
		answer.Del("iss")
	case "state":
		answer.Set("state", "another")
	case "error":
		answer = url.Values{"error": {"access_denied"}, "error_description": {Canary + "\x1b[2J"}, "state": {q.Get("state")}}
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// mayHave reports whether a request is given a token.
func (o *OAuth) mayHave(form url.Values) bool {
	if o.Client != "" && (form.Get("client_id") != o.Client || form.Get("client_secret") != o.Secret) {
		return false
	}
	if form.Get("grant_type") == "refresh_token" {
		o.acted = append(o.acted, "refresh")
		return form.Get("refresh_token") != "" && form.Get("refresh_token") == o.fresh
	}
	o.acted = append(o.acted, "token")
	was, ok := o.codes[form.Get("code")]
	delete(o.codes, form.Get("code"))
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	return ok && was.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:]) && was.Get("redirect_uri") == form.Get("redirect_uri") &&
		was.Get("client_id") == form.Get("client_id") && form.Get("resource") == o.URL+"/mcp"
}
