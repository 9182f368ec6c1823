package streamable

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/mcp-pif/mcp-pif/core/must"
)

type signer struct {
	t   *testing.T
	key crypto.PrivateKey
	alg jose.SignatureAlgorithm
	kid string
}

func (s signer) sign(claims any) string {
	s.t.Helper()
	options := new(jose.SignerOptions).WithType("JWT")
	if s.kid != "" {
		options = options.WithHeader("kid", s.kid)
	}
	sig, err := jose.NewSigner(jose.SigningKey{Algorithm: s.alg, Key: s.key}, options)
	must.NoError(s.t, err)
	token, err := jwt.Signed(sig).Claims(claims).Serialize()
	must.NoError(s.t, err)
	return token
}

// Every way in which a token can be wrong is refused.
func TestSignedTokens(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must.NoError(t, err)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.NoError(t, err)
	_, stranger, err := ed25519.GenerateKey(rand.Reader)
	must.NoError(t, err)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: public, KeyID: "a", Algorithm: "EdDSA", Use: "sig"}, {Key: ec.Public(), KeyID: "b", Use: "sig"}, {Key: ec.Public(), KeyID: "c", Use: "enc"},
	}})
	must.NoError(t, err)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	k := &Keys{Issuer: "https://issuer.example", Audience: "pif", Now: func() time.Time { return now }}
	must.NoError(t, k.Load(set))
	good := func() jwt.Claims {
		return jwt.Claims{
			Issuer: "https://issuer.example", Audience: jwt.Audience{"other", "pif"}, Subject: "ann",
			Expiry: jwt.NewNumericDate(now.Add(time.Minute)), NotBefore: jwt.NewNumericDate(now), IssuedAt: jwt.NewNumericDate(now),
		}
	}
	with := func(change func(*jwt.Claims)) jwt.Claims {
		c := good()
		change(&c)
		return c
	}
	a := signer{t, private, jose.EdDSA, "a"}
	b := signer{t, ec, jose.ES256, "b"}
	right := a.sign(good())
	parts := strings.Split(right, ".")
	raw := base64.RawURLEncoding
	unsigned := raw.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
	// The classic: the public key as the key of a hash.
	shared := signer{t, []byte(public), jose.HS256, "a"}.sign(good())
	for _, c := range []struct {
		name, token string
		ok          bool
	}{
		{"right", right, true},
		{"right, of another key", b.sign(good()), true},
		{"right, without a key's name", signer{t, ec, jose.ES256, ""}.sign(good()), true},
		{"signed by a stranger", signer{t, stranger, jose.EdDSA, "a"}.sign(good()), false},
		{"another key's name", signer{t, private, jose.EdDSA, "b"}.sign(good()), false},
		{"a key for something else", signer{t, ec, jose.ES256, "c"}.sign(good()), false},
		{"unsigned", unsigned, false},
		{"signed with the public key", shared, false},
		{"another issuer", a.sign(with(func(c *jwt.Claims) { c.Issuer = "https://evil.example" })), false},
		{"no issuer", a.sign(with(func(c *jwt.Claims) { c.Issuer = "" })), false},
		{"another audience", a.sign(with(func(c *jwt.Claims) { c.Audience = jwt.Audience{"other"} })), false},
		{"no audience", a.sign(with(func(c *jwt.Claims) { c.Audience = nil })), false},
		{"no subject", a.sign(with(func(c *jwt.Claims) { c.Subject = "" })), false},
		{"a huge subject", a.sign(with(func(c *jwt.Claims) { c.Subject = strings.Repeat("a", 300) })), false},
		{"no end", a.sign(with(func(c *jwt.Claims) { c.Expiry = nil })), false},
		{"over", a.sign(with(func(c *jwt.Claims) { c.Expiry = jwt.NewNumericDate(now.Add(-time.Hour)) })), false},
		{"not yet", a.sign(with(func(c *jwt.Claims) { c.NotBefore = jwt.NewNumericDate(now.Add(time.Hour)) })), false},
		{"changed", parts[0] + "." + raw.EncodeToString([]byte(`{"sub":"bob"}`)) + "." + parts[2], false},
		{"cut", right[:len(right)-4], false}, {"empty", "", false}, {"no token", "a.b.c", false},
		{"long", right + strings.Repeat("a", maxTokenBytes), false},
	} {
		info, err := k.Verify(t.Context(), c.token, nil)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil && info.UserID != "jwt:ann" {
			t.Errorf("%s: is %q", c.name, info.UserID)
		}
	}
	if err := k.Load([]byte(`{"keys":[]}`)); !errors.Is(err, ErrNobody) {
		t.Errorf("a set without keys: %v", err)
	}
	if _, err := k.Verify(t.Context(), right, nil); err == nil {
		t.Error("a set that was emptied lets somebody in")
	}
	var none Keys
	if _, err := none.Verify(t.Context(), right, nil); err == nil {
		t.Error("without keys a token came in")
	}
}

// TestKeysOfOtherKinds: a key of a kind that isn't known here keeps neither the others of its set from being taken nor
// those of the set before from being left.
func TestKeysOfOtherKinds(t *testing.T) {
	point := strings.Repeat("A", 43)
	for _, other := range []string{`{"kty":"OKP","crv":"X25519","x":"` + point + `"}`, `{"kty":"OKP","crv":"Ed448","x":"` + point + `"}`, `{"kty":"EC","crv":"secp256k1","x":"` + point + `","y":"` + point + `"}`, `{"kty":"new"}`} {
		k := &Keys{Issuer: "i", Audience: "a"}
		var before string
		for range 2 {
			public, private, err := ed25519.GenerateKey(rand.Reader)
			must.NoError(t, err)
			key, err := json.Marshal(jose.JSONWebKey{Key: public})
			must.NoError(t, err)
			must.NoError(t, k.Load([]byte(`{"keys":[`+other+`,`+string(key)+`]}`)))
			token := signer{t, private, jose.EdDSA, ""}.sign(jwt.Claims{Issuer: "i", Audience: jwt.Audience{"a"}, Subject: "ann", Expiry: jwt.NewNumericDate(time.Now().Add(time.Hour))})
			_, err = k.Verify(t.Context(), token, nil)
			must.NoError(t, err)
			if _, err := k.Verify(t.Context(), before, nil); err == nil {
				t.Errorf("%s: a key that was withdrawn is taken", other)
			}
			before = token
		}
		if err := k.Load([]byte(`{"keys":[` + other + `]}`)); err == nil || errors.Is(err, ErrNobody) || !k.MaySign("jwt:ann") {
			t.Errorf("%s alone: %v", other, err)
		}
	}
}

func TestKeysRefuse(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.NoError(t, err)
	private, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: ec, KeyID: "a"}}})
	shared, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: []byte("secret"), KeyID: "a"}}})
	public, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: ec.Public(), KeyID: "a"}}})
	for text, stands := range map[string]bool{"": false, " \n": false, `{"keys":[]}`: false, "{": true, "x": true} {
		var k Keys
		must.NoError(t, k.Load(public))
		if err := k.Load([]byte(text)); errors.Is(err, ErrNobody) == stands || k.MaySign("jwt:a") != stands || k.MaySign("a") {
			t.Errorf("after %q: %v, jwt:a may come in: %v", text, err, k.MaySign("jwt:a"))
		}
	}
	for name, text := range map[string]string{
		"no JSON": "{", "no keys": `{"keys":[]}`, "private": string(private), "shared": string(shared), "a broken key": `{"keys":[{"kty":"EC","crv":"P-256"}]}`,
		"null for a key": `{"keys":[null]}`, "a broken one beside another": strings.Replace(string(public), "]", `,{"kty":"EC","crv":"P-256","x":"?","y":"?"}]`, 1),
	} {
		var k Keys
		if err := k.Load([]byte(text)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
