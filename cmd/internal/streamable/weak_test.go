package streamable

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// TestShortKeys: a set with an RSA key that is too short is refused, and changes
// nothing.
func TestShortKeys(t *testing.T) {
	set := func(bits int) []byte {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "r"}}})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var keys Keys
	if err := keys.Load(set(2048)); err != nil {
		t.Fatal(err)
	}
	before := keys.set.Load()
	if err := keys.Load(set(1024)); err == nil || !strings.Contains(err.Error(), "2048 bits at least, this one 1024") {
		t.Error(err)
	}
	if keys.set.Load() != before {
		t.Error("the keys are others")
	}
}

// TestUnsendableTokens: what no client can send is refused, such as a hash that isn't
// marked as it should be: it would be taken for the token itself.
func TestUnsendableTokens(t *testing.T) {
	digits := strings.Repeat("ab", 32)
	for token, ok := range map[string]bool{
		"sha256:" + digits: true, digits: true, "aB3-._~+/" + digits + "==": true,
		"SHA256:" + digits: false, "sha-256:" + digits: false, "sha512:" + digits + digits: false, `"` + digits + `"`: false, "ü" + digits: false,
	} {
		var tokens Tokens
		if err := tokens.Load([]byte("ann " + token + "\n")); (err == nil) != ok || err != nil && strings.Contains(err.Error(), digits) {
			t.Errorf("%s: %v", token, err)
		}
	}
}
