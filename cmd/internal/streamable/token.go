package streamable

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// leeway is how far the clock of whoever issues tokens may be off.
const leeway = 30 * time.Second

// minTokenBytes is how long a token must be, so that it can't be guessed.
const minTokenBytes = 20

// sendable is what a token is of (RFC 6750 section 2.1).
const sendable = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

// Tokens is a file of tokens: a line for each, the principal's name and then the
// token, or sha256: and its hash in hexadecimal, so that the file needn't hold
// it. Empty lines and those that begin with # say nothing. It is safe for
// concurrent use.
type Tokens struct {
	// Name refuses what can't be a principal's name; nil: nothing is refused.
	Name  func(string) error
	known atomic.Pointer[map[[sha256.Size]byte]string]
}

// Load replaces the tokens by those of a file's text. What is wrong with it
// changes nothing, and is said without the token; a text without tokens, which is an [ErrNobody], has
// nobody come in from now on.
func (t *Tokens) Load(text []byte) error {
	known := map[[sha256.Size]byte]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return fmt.Errorf("line %d: a line has a name and a token, not %d words", n, len(fields))
		}
		name, token := fields[0], fields[1]
		if strings.HasPrefix(name, jwtPrincipal) {
			return fmt.Errorf("line %d: names that begin with %q are those of signed tokens", n, jwtPrincipal)
		}
		if t.Name != nil {
			if err := t.Name(name); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
		sum := sha256.Sum256([]byte(token))
		if digits, ok := strings.CutPrefix(token, "sha256:"); ok {
			if k, err := hex.Decode(sum[:], []byte(digits)); err != nil || k != len(sum) || len(digits) != 2*len(sum) {
				return fmt.Errorf("line %d: sha256: is followed by %d hexadecimal digits", n, 2*len(sum))
			}
		} else if len(token) < minTokenBytes {
			return fmt.Errorf("line %d: the token of %q is too short: take at least %d random characters", n, name, minTokenBytes)
		} else if strings.Trim(token, sendable) != "" {
			// Nobody can send it; it may be meant for a hash of another kind.
			return fmt.Errorf("line %d: what stands for %q is not a token, which has letters, digits and -._~+/= only, nor sha256: and a hash", n, name)
		}
		if other, ok := known[sum]; ok {
			return fmt.Errorf("line %d: %q and %q have the same token", n, other, name)
		}
		known[sum] = name
	}
	if err := lines.Err(); err != nil {
		return err
	}
	t.known.Store(&known)
	if len(known) == 0 {
		return fmt.Errorf("there is no token in it: %w", ErrNobody)
	}
	return nil
}

// Has reports whether a token stands for a principal.
func (t *Tokens) Has(principal string) bool {
	if known := t.known.Load(); known != nil {
		for _, name := range *known {
			if name == principal {
				return true
			}
		}
	}
	return false
}

// Verify knows the principal of a token. It compares hashes, so the time it takes
// tells nothing of the tokens there are.
func (t *Tokens) Verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	if known := t.known.Load(); known != nil {
		if name, ok := (*known)[sha256.Sum256([]byte(token))]; ok {
			return &auth.TokenInfo{UserID: name}, nil
		}
	}
	return nil, auth.ErrInvalidToken
}

// Hashed reports whether every token in a file's text is a hash, so that who reads
// it learns none.
func Hashed(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if fields := bytes.Fields(line); len(fields) != 2 || !bytes.HasPrefix(fields[1], []byte("sha256:")) {
			return false
		}
	}
	return true
}

// jwtPrincipal begins the names of principals whose tokens are signed, so that
// no subject is taken for a name in a file of tokens.
const jwtPrincipal = "jwt:"

// signatures is the algorithms that are taken: none with a shared key, since the
// keys here are public.
var signatures = []jose.SignatureAlgorithm{
	jose.EdDSA, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512, jose.RS256, jose.RS384, jose.RS512,
}

// Keys verifies signed tokens (JWT, RFC 7519) by a set of public keys (JWKS,
// RFC 7517 section 5). A token must name the issuer and the audience, have a
// subject, which is the principal, and an end. It is safe for concurrent use.
type Keys struct {
	Issuer, Audience string
	Now              func() time.Time // nil: time.Now
	// Name refuses what can't be a principal's name; nil: nothing is refused.
	Name func(string) error
	set  atomic.Pointer[jose.JSONWebKeySet]
}

// ErrNobody is the error of a file that was emptied: it lets nobody in.
var ErrNobody = errors.New("it lets nobody in")

// Load replaces the keys by those of a set's text. What is wrong with it changes
// nothing, but a set without keys, which is an [ErrNobody], has nobody come in from now on. Of several
// keys those of a kind that isn't known here are left out (RFC 7517 section 5).
func (k *Keys) Load(text []byte) error {
	var all struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &all); err != nil && len(bytes.TrimSpace(text)) > 0 {
		return fmt.Errorf("not a set of keys: %w", err)
	}
	var set jose.JSONWebKeySet
	var unknown error
	for i, raw := range all.Keys {
		var key jose.JSONWebKey
		switch err := json.Unmarshal(raw, &key); {
		case errors.Is(err, jose.ErrUnsupportedKeyType), err != nil && unknownCurve(raw):
			unknown = err
			continue
		case err != nil:
			return fmt.Errorf("key %d: %w", i, err)
		case !key.Valid():
			return fmt.Errorf("key %d (%q) is not valid", i, key.KeyID)
		case !key.IsPublic():
			return fmt.Errorf("key %d (%q) is private or shared: the file holds public keys only", i, key.KeyID)
		}
		if rsa, ok := key.Key.(*rsa.PublicKey); ok && rsa.N.BitLen() < minRSABits {
			return fmt.Errorf("key %d (%q) is too short to be trusted: an RSA key has %d bits at least, this one %d", i, key.KeyID, minRSABits, rsa.N.BitLen())
		}
		set.Keys = append(set.Keys, key)
	}
	if len(set.Keys) == 0 && unknown != nil {
		return fmt.Errorf("there is no key of a known kind in it: %w", unknown)
	}
	k.set.Store(&set)
	if len(set.Keys) == 0 {
		return fmt.Errorf("there is no key in it: %w", ErrNobody)
	}
	return nil
}

// unknownCurve reports whether a key is of an elliptic curve that isn't known here, which has no error of its own.
func unknownCurve(raw []byte) bool {
	var key struct{ Kty, Crv string }
	return json.Unmarshal(raw, &key) == nil && key.Kty == "EC" && key.Crv != "" && !slices.Contains([]string{"P-256", "P-384", "P-521"}, key.Crv)
}

// MaySign reports whether a token that is signed may stand for a principal.
func (k *Keys) MaySign(principal string) bool {
	set := k.set.Load()
	return set != nil && len(set.Keys) > 0 && strings.HasPrefix(principal, jwtPrincipal)
}

// minRSABits is how many bits an RSA key has, by RFC 7518 section 3.3.
const minRSABits = 2048

// maxTokenBytes is how long a signed token may be, in bytes.
const maxTokenBytes = 8 << 10

// Verify checks a token. Why one is refused isn't told to who sent it.
func (k *Keys) Verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	set := k.set.Load()
	if set == nil || len(token) > maxTokenBytes {
		return nil, auth.ErrInvalidToken
	}
	parsed, err := jwt.ParseSigned(token, signatures)
	if err != nil || len(parsed.Headers) != 1 {
		return nil, auth.ErrInvalidToken
	}
	now := time.Now
	if k.Now != nil {
		now = k.Now
	}
	header := parsed.Headers[0]
	for i := range set.Keys {
		key := &set.Keys[i]
		if header.KeyID != "" && key.KeyID != header.KeyID || key.Algorithm != "" && key.Algorithm != header.Algorithm ||
			key.Use != "" && key.Use != "sig" {
			continue
		}
		var claims jwt.Claims
		if parsed.Claims(key.Key, &claims) != nil {
			continue
		}
		expected := jwt.Expected{Issuer: k.Issuer, AnyAudience: jwt.Audience{k.Audience}, Time: now()}
		if claims.ValidateWithLeeway(expected, leeway) != nil || claims.Expiry == nil || claims.Subject == "" || len(claims.Subject) > 256 ||
			k.Name != nil && k.Name(jwtPrincipal+claims.Subject) != nil {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: jwtPrincipal + claims.Subject, Expiration: claims.Expiry.Time()}, nil
	}
	return nil, auth.ErrInvalidToken
}

// wellKnown is where a server says who issues tokens for it (RFC 9728 section 3.1): there, with the path of its URL
// behind it, and for clients that don't know that path.
const wellKnown = "/.well-known/oauth-protected-resource"

// describe serves who issues tokens for this server, if that is known.
func (h *Handler) describe(mux *http.ServeMux) {
	at := webURL(h.o.Audience)
	if at == nil || webURL(h.o.Issuer) == nil {
		return
	}
	at.Path, at.RawPath = wellKnown+strings.TrimSuffix(at.Path, "/"), ""
	h.metadata = at.String()
	page := auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: h.o.Audience, AuthorizationServers: []string{h.o.Issuer}, BearerMethodsSupported: []string{"header"}, ResourceName: "mcp-pif",
	})
	only := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != wellKnown && r.URL.Path != at.Path {
			http.NotFound(w, r)
			return
		}
		page.ServeHTTP(w, r)
	})
	mux.Handle(wellKnown, only)
	mux.Handle(wellKnown+"/", only)
}

// webURL reads the URL of a server; nil: it is none.
func webURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil
	}
	return u
}

// Either verifies by the first of several that knows a token.
func Either(verifiers ...auth.TokenVerifier) auth.TokenVerifier {
	return func(ctx context.Context, token string, r *http.Request) (*auth.TokenInfo, error) {
		for _, verify := range verifiers {
			if info, err := verify(ctx, token, r); err == nil {
				return info, nil
			}
		}
		return nil, auth.ErrInvalidToken
	}
}
