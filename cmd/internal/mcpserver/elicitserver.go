package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/display"
)

// An MCP server behind a kind may ask the user while a tool's call of it is under way, where
// the operator lets it and the tool may ask itself. Its words are a stranger's: they are
// within the margin or in quotes, and a form that wants a password isn't shown.

// Asker puts the questions of servers to the client of the run.
var Asker run.Asker = serverAsker{}

type serverAsker struct{}

// AskOperation implements [run.Asker].
func (serverAsker) AskOperation() string { return askOperation }

// Ask implements [run.Asker].
func (serverAsker) Ask(ctx context.Context, a run.Act, q run.Question) run.Reply {
	nobody := func(reason string) run.Reply { return run.Reply{Action: "decline", Reason: reason} }
	form, err := serverForm(q.Schema)
	if err != nil {
		return nobody(err.Error())
	}
	e := elicitorOf(ctx)
	if e == nil {
		return nobody("this client can't put a question to its user")
	}
	res, err := e.elicit(ctx, &mcp.ElicitParams{Mode: "form", Message: serverMessage(&a, q.Message), RequestedSchema: form.schema()})
	switch {
	case ctx.Err() != nil:
		return run.Reply{Action: "cancel", Reason: "the call is over"}
	case err != nil:
		return run.Reply{Action: "cancel", Reason: "the user gave no answer"}
	case res.Action == "accept":
		content, f := form.content(res.Content)
		if f != nil {
			return run.Reply{Action: "cancel", Reason: "the answer isn't what was asked for"}
		}
		return run.Reply{Action: "accept", Content: content}
	case res.Action == "decline", res.Action == "cancel":
		return run.Reply{Action: res.Action}
	}
	return run.Reply{Action: "cancel", Reason: "the client's answer can't be read"}
}

// serverMessage is what the person reads: who asks first, the server's words within a margin.
func serverMessage(a *run.Act, message string) string {
	lines := []string{
		fmt.Sprintf(`The MCP server "%s" asks you what follows, in a run of your tool "%s", version %d. These are the words of a stranger, and so are those in quotes in the form; your answer goes to that server. Give it no password and no key.`,
			caps.PlainASCII(a.Held.Kind), caps.PlainASCII(a.Tool), a.Version),
		"",
	}
	return strings.Join(append(lines, caps.Margined(message, mostMessaged)...), "\n")
}

// credential is what fields are called that want a secret.
var credential = regexp.MustCompile(`(?i)pass(wor[dt]|phrase|code|key)|passwd|\bpwd\b|secret|credential|api.?key|(private|access|seed|recovery|auth|license).?(key|code|phrase|words)|token|bearer|\botp\b|one.?time|2fa|\bmfa\b|verification.?code|\bpin\b|\bcv[vc]2?\b|card.?(number|no)|\biban\b|\bssn\b|social.?security`)

// unsplit takes names of fields apart, so that words in them are seen.
var unsplit = regexp.MustCompile(`[_.-]|([a-z])([A-Z])`)

// serverForm reads the form that a server wants filled in. What it declares beyond kinds and
// choices isn't shown, as its bounds and defaults: it holds the answer to them itself.
func serverForm(schema []byte) (form, error) {
	var s struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if len(schema) == 0 {
		return nil, nil
	}
	members, ok := []wire.Member(nil), true
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, errors.New("the form can't be read")
	}
	if len(s.Properties) > 0 {
		members, ok = wire.Split(s.Properties)
	}
	if !ok || s.Type != "" && s.Type != "object" || len(members) > mostFields {
		return nil, fmt.Errorf("the form isn't one of at most %d fields", mostFields)
	}
	var all form
	for _, m := range members {
		f, err := serverField(m.Name, m.Value)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(o formField) bool { return o.name == f.name }) {
			return nil, errors.New("two fields of the form have one name")
		}
		f.optional = !slices.Contains(s.Required, f.name)
		all = append(all, f)
	}
	return all, nil
}

func serverField(name string, schema []byte) (formField, error) {
	var s struct {
		Type        string   `json:"type"`
		Title       string   `json:"title"`
		Description string   `json:"description"`
		Format      string   `json:"format"`
		Enum        []string `json:"enum"`
		OneOf       []struct {
			Const string `json:"const"`
		} `json:"oneOf"`
	}
	f := formField{name: name}
	if !fieldName.MatchString(name) || json.Unmarshal(schema, &s) != nil {
		return f, errors.New("a field of the form can't be read")
	}
	for _, c := range s.OneOf {
		s.Enum = append(s.Enum, c.Const)
	}
	if s.Type == "" && s.Enum != nil {
		s.Type = "string"
	}
	if !slices.Contains([]string{"string", "number", "integer", "boolean"}, s.Type) || s.Enum != nil && s.Type != "string" || len(s.Enum) > mostChoices {
		return f, errors.New("a field of the form is no string, number, integer or boolean")
	}
	for i, c := range s.Enum {
		if c == "" || len(c) > mostFieldText || caps.Plain(c) != c || slices.Contains(s.Enum[:i], c) {
			return f, fmt.Errorf("a choice of the form isn't a plain text of at most %d bytes", mostFieldText)
		}
	}
	if s.Format == "password" || credential.MatchString(unsplit.ReplaceAllString(name, "$1 $2")) || credential.MatchString(s.Title) || credential.MatchString(s.Description) {
		return f, errors.New("a field of the form wants a password or a key")
	}
	quoted := func(text string) string {
		if text == "" {
			return ""
		}
		return caps.Quote(display.Truncate(text, mostFieldText))
	}
	f.typ, f.choices = s.Type, s.Enum
	f.title, f.text = quoted(s.Title), quoted(s.Description)
	return f, nil
}
