package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// checkPublished refuses to publish what could not be used, as far as types tell, and
// says in a note what is published. Nothing is run for it, and of a draft nothing is
// worked out.
func checkPublished(t *registry.Tool, draft bool) (note string, f *fault.Fault) {
	bad := func(format string, args ...any) *fault.Fault {
		return &fault.Fault{Kind: fault.InvalidRequest, In: "code", Message: fmt.Sprintf(format, args...)}
	}
	params, result := t.Report().Arguments()
	switch t.As {
	case registry.AsResource:
		note = fmt.Sprintf("published as the resource %s; it is run on null when that is read", wire.PublishedURI(t.Name))
		switch {
		case draft:
		case len(params) > 1:
			f = bad("a resource is run on null, and this function has the parameters %s", strings.Join(t.Program().Params(), ", "))
		case len(params) == 1 && !admits(params[0].Type, prim.KindUnit):
			f = bad("a resource is run on null, and this function fails on it: it takes %s", wire.Excerpt([]byte(params[0].Type.String()), wire.MaxShown))
		case isNothing(result):
			f = bad("a resource gives data, and this gives nothing: it always fails, or never ends")
		case !admits(result, prim.KindData):
			f = bad("a resource gives data, and this gives %s", wire.Excerpt([]byte(result.String()), wire.MaxShown))
		}
		if f != nil {
			f.Hint = "Write the code without parameters, or as a function that ignores its one: _ => …."
		}
		return note, f
	case registry.AsPrompt:
	default:
		return "", nil
	}
	var names []string
	for _, field := range PromptArguments(t) {
		names = append(names, field.Key)
	}
	if slices.Contains(ServerPrompts, t.Name) {
		f = bad("%q is one of the server's own prompts", t.Name)
		f.Hint = "Choose another name."
		return "", f
	}
	if len(names) > mostInputs {
		f = bad("a prompt has at most %d arguments, this function has %d parameters", mostInputs, len(names))
		f.Hint = "Take fewer."
		return "", f
	}
	for i, p := range names {
		if slices.Contains(names[:i], p) || p == "" {
			f = bad("the prompt would have the argument %q twice, or without a name", p)
			f.Hint = "Give each parameter a name of its own."
			return "", f
		}
	}
	if why := noMessages(result); why != "" && !draft {
		f = bad("a prompt gives a text or a list of messages, and this gives %s", why)
		f.Hint = MessagesShape
		return "", f
	}
	if len(names) == 0 {
		return "published as a prompt without arguments", nil
	}
	return "published as a prompt with the arguments " + strings.Join(names, ", "), nil
}

// admits reports whether a value of one of the kinds can be of a type.
func admits(t *check.Type, kinds prim.Kinds) bool {
	return t == nil || t.Any || t.Dynamic || len(t.Vars) > 0 || t.Kinds&kinds != 0
}

// isNothing reports whether no value is of a type.
func isNothing(t *check.Type) bool { return t.Kinds == 0 && !t.Any && !t.Dynamic && len(t.Vars) == 0 }

// noMessages says what a type is no value of which is what a prompt gives; "": one can
// be.
func noMessages(t *check.Type) string {
	shown := func() string { return wire.Excerpt([]byte(t.String()), wire.MaxShown) }
	switch {
	case isNothing(t):
		return "nothing: it always fails, or never ends"
	case admits(t, prim.KindString) || t.Deep:
		return ""
	case t.Kinds&prim.KindList == 0:
		return shown()
	}
	item := t.Item
	if item == nil || isNothing(item) {
		return "an empty list"
	}
	if !admits(item, prim.KindRecord) {
		return shown()
	}
	if item.Any || item.Dynamic || item.Deep || len(item.Vars) > 0 || item.Rest != nil {
		return ""
	}
	has := map[string]bool{}
	for _, field := range item.Fields {
		text := field.Key == "role" || field.Key == "text"
		if !text && field.Key != "content" && !field.Optional || text && !admits(field.Type, prim.KindString) {
			return shown()
		}
		has[field.Key] = true
	}
	if !has["role"] || !has["text"] && !has["content"] {
		return shown()
	}
	return ""
}

// promptArguments is what a tool that is published as a prompt is given: its parameters,
// or the fields of the record that the only one is.
func PromptArguments(t *registry.Tool) []check.Field {
	if t.Unusable() != nil {
		return nil
	}
	return t.Report().PromptArguments()
}

const MessagesShape = `A prompt gives a text, or a list of messages: [{role: "user", text: "…"}, {role: "assistant", text: "…"}]; in place of the text it may be content: {type: "image", data: "…", mimeType: "image/png"}.`

// promptCall is the name by which a run of a prompt is on record. It is no name
// that a client can call a tool by.
const promptCall = "prompts/get"

// mostInputs is how many parameters of a tool an answer names.
const mostInputs = 32

// ServerPrompts are the names of the prompts of servers, which no tool is published by.
var ServerPrompts = []string{"make_tool", "repair_tool", "review_capabilities", "port_function"}
