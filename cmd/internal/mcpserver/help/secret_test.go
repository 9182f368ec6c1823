package help_test

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/help"
)

// TestExplainSecret: an argument that takes a secret is told as one, with how it is written.
func TestExplainSecret(t *testing.T) {
	o := caps.Operation{Name: "mail.send", Params: []caps.Param{{Name: "text", Type: "string"}, {Name: "key", Type: "any", Secrets: true}}}
	var b strings.Builder
	help.Explain(&b, &caps.Manifest{Kind: "mail"}, &o)
	for _, want := range []string{
		`key: a secret of the operator's, by its name: {secret: "NAME"}`, `such as !mail.send({key: {secret: "NAME"}, text: "…"})`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it lacks %s:\n%s", want, &b)
		}
	}
}
