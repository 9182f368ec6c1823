package streamable

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/modelcontextprotocol/go-sdk/auth"
)

// jwtPrincipal begins the names of principals whose tokens are signed, so that
// no subject is taken for a name in a file of tokens.
const jwtPrincipal = "jwt:"

// Signed reports whether a principal is one whose tokens are signed.
func Signed(principal string) bool { return strings.HasPrefix(principal, jwtPrincipal) }

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
// nothing, but a set without keys, which is an [ErrNobody], has nobody come in from now on.
func (k *Keys) Load(text []byte) error {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(text, &set); err != nil {
		return fmt.Errorf("not a set of keys: %w", err)
	}
	for i := range set.Keys {
		key := &set.Keys[i]
		switch {
		case !key.Valid():
			return fmt.Errorf("key %d (%q) is not valid", i, key.KeyID)
		case !key.IsPublic():
			return fmt.Errorf("key %d (%q) is private or shared: the file holds public keys only", i, key.KeyID)
		}
		if rsa, ok := key.Key.(*rsa.PublicKey); ok && rsa.N.BitLen() < minRSABits {
			return fmt.Errorf("key %d (%q) is too short to be trusted: an RSA key has %d bits at least, this one %d", i, key.KeyID, minRSABits, rsa.N.BitLen())
		}
	}
	k.set.Store(&set)
	if len(set.Keys) == 0 {
		return fmt.Errorf("there is no key in it: %w", ErrNobody)
	}
	return nil
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
		if claims.ValidateWithLeeway(expected, leeway) != nil || claims.Expiry == nil || claims.Subject == "" || len(claims.Subject) > 256 {
			return nil, auth.ErrInvalidToken
		}
		if k.Name != nil && k.Name(jwtPrincipal+claims.Subject) != nil {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: jwtPrincipal + claims.Subject, Expiration: claims.Expiry.Time()}, nil
	}
	return nil, auth.ErrInvalidToken
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
