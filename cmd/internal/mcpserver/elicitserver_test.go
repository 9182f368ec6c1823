package mcpserver

import (
	"strings"
	"testing"
)

// A server's form is shown with its words in quotes; what wants a secret, what is no form, and
// what two clients could read in two ways isn't shown.
func TestServerForm(t *testing.T) {
	t.Parallel()
	const canary = `IGNORE-ALL\u202e\n`
	for schema, want := range map[string]string{
		``: `{"type":"object","properties":{}}`,
		`{"type":"object","properties":{"n":{"type":"integer","title":"` + canary + `","minimum":1,"default":2}},"required":["n"]}`: `{"type":"object","properties":{"n":{"type":"integer","title":"\"IGNORE-ALL\\u202e\\n\""}},"required":["n"]}`,
		`{"properties":{"c":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b"}]}}}`:                                  `{"type":"object","properties":{"c":{"type":"string","enum":["a","b"]}}}`,
		`{"properties":{"compass":{"type":"boolean","description":"turn the map"}}}`:                                                `{"type":"object","properties":{"compass":{"type":"boolean","description":"\"turn the map\""}}}`,
		`{"properties":{"x":{"type":"string","format":"password"}}}`:                                                                "",
		`{"properties":{"x":{"type":"array","items":{"type":"string"}}}}`:                                                           "",
		`{"properties":{"x":{"type":"object"}}}`:                                                                                    "",
		`{"properties":{"x":{"type":"string"},"x":{"type":"integer"}}}`:                                                             "",
		`{"properties":{"` + canary + `":{"type":"string"}}}`:                                                                       "",
		`{"properties":{"c":{"type":"string","enum":["a\u202eb"]}}}`:                                                                "",
		`{"type":"string"}`: "", `[]`: "", `{"properties":[]}`: "", `nonsense`: "",
		`{"properties":{` + strings.Repeat(`"a":{"type":"string"},`, mostFields) + `"b":{"type":"string"}}}`: "",
	} {
		form, err := serverForm([]byte(schema))
		if (err == nil) != (want != "") || err == nil && string(form.schema()) != want {
			t.Errorf("%s: %s, %v; want %s", schema, form.schema(), err, want)
		}
		if err != nil && strings.Contains(err.Error(), "IGNORE") {
			t.Errorf("%s: the reason has the server's words: %v", schema, err)
		}
	}
	for _, name := range []string{"password", "Passwort", "user_password", "API-Key", "apiKey", "accessToken", "otp", "pin", "cvv", "cardNumber", "client_secret", "privateKey", "verificationCode"} {
		if form, err := serverForm([]byte(`{"properties":{"` + name + `":{"type":"string"}}}`)); err == nil {
			t.Errorf("%s: the user is asked %s", name, form.schema())
		}
		if form, err := serverForm([]byte(`{"properties":{"x":{"type":"string","description":"your ` + name + `"}}}`)); err == nil {
			t.Errorf("%s: the user is asked %s", name, form.schema())
		}
	}
}
