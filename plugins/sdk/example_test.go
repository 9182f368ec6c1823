package sdk_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

type comment struct {
	Issue string     `pif:"issue,main,designates" doc:"such as acme/site/12"`
	Text  string     `pif:"text" doc:"what it says"`
	Token sdk.Secret `pif:"token" doc:"the account's"`
}

func say(ctx context.Context, _ any, c comment) (string, error) {
	token, err := c.Token.Reveal(ctx)
	if err != nil {
		return "", err
	}
	return post(ctx, c.Issue, c.Text, "Bearer "+token)
}

// post stands for the request to a tracker.
func post(_ context.Context, issue, _, _ string) (string, error) { return "said on " + issue, nil }

var tracker = sdk.Plugin{
	Kind: "tracker", Version: "1.0.0", Doc: "comments on issues", Scope: sdk.Segments,
	Operations: []sdk.Operation{sdk.Op("comment", "says something on an issue", sdk.Flags{OpenWorld: true}, say)},
}

// A secret is named by the program, and given by the host with the request.
func ExampleSecret() {
	ctx := sdk.WithSecret(context.Background(), "bot", "a-token-for-tests", "acme/**")
	h, err := sdk.Direct(ctx, tracker, sdk.Capability{Within: "acme/**"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(h.Invoke(ctx, "tracker.comment", record(
		with("issue", value.Str("acme/site/12")), with("text", value.Str("Done.")), with("token", naming("bot")),
	)))
	// Output: said on acme/site/12 <nil>
}

// The README shows this example, to the letter.
func TestReadmeShowsSecrets(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	must.NoError(t, err)
	source, err := os.ReadFile("example_test.go")
	must.NoError(t, err)
	_, code, _ := strings.Cut(string(source), "type comment struct")
	code, _, found := strings.Cut(code, "\n// post stands")
	if !found || !strings.Contains(string(readme), "```go\ntype comment struct"+code+"```\n") {
		t.Error("plugins/README.md shows another example than plugins/sdk/example_test.go")
	}
}
