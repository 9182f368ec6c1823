package elicit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// An MCP server behind a kind may ask the user while a tool's call of it is under way, where
// the operator lets it and the tool may ask itself. Its words are a stranger's: they are
// within the margin or in quotes, and a form that wants a password isn't shown.

// Asker puts the questions of servers to the client of the run.
var Asker run.Asker = serverAsker{}

type serverAsker struct{}

// AskOperation implements [run.Asker].
func (serverAsker) AskOperation() string { return Operation }

// Ask implements [run.Asker].
func (serverAsker) Ask(ctx context.Context, a run.Act, q run.Question) run.Reply {
	nobody := func(reason string) run.Reply { return run.Reply{Action: "decline", Reason: reason} }
	form, err := readForm(q.Schema, true)
	if err != nil {
		return nobody(err.Error())
	}
	e := Of(ctx)
	if e == nil {
		return nobody("this client can't put a question to its user")
	}
	res, err := e.Ask(ctx, &mcp.ElicitParams{Mode: "form", Message: serverMessage(&a, q.Message), RequestedSchema: form.schema()})
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
var credential = lazyregexp.New(`(?i)pass(wor[dt]|phrase|code|key)|passwd|\bpwd\b|secret|credential|api.?key|(private|access|seed|recovery|auth|license).?(key|code|phrase|words)|token|bearer|\botp\b|one.?time|2fa|\bmfa\b|verification.?code|\bpin\b|\bcv[vc]2?\b|card.?(number|no)|\biban\b|\bssn\b|social.?security`)

// unsplit takes names of fields apart, so that words in them are seen.
var unsplit = lazyregexp.New(`[_.-]|([a-z])([A-Z])`)

// Kind is the kind of asking the person before the client, which no plugin
// serves.
const Kind = "ask"

const Operation = "ask.user"

// filled is the type of what a person fills in.
var filled = check.Record(nil, &check.Type{Kinds: prim.KindNumber | prim.KindBool | prim.KindString})

// Manifest is what can be asked.
func Manifest() *caps.Manifest {
	return &caps.Manifest{
		Kind: Kind, Version: "1", Doc: "asks the person before the client",
		Algebra: caps.Exact, Only: "user", Lent: true,
		Verbs: []caps.Verb{{Name: "user", Flags: caps.Flags{ReadOnly: true}}},
		Operations: []caps.Operation{{
			Name: Operation, Verb: "user",
			Doc: "puts a message, and a form if there is a schema, to the person; that they decline or cancel is a value",
			Params: []caps.Param{
				{Name: "message", Type: "string", Main: true, Doc: "what to ask, at most 4 KiB"},
				{Name: "schema", Type: "record", Optional: true, Doc: `the form: {amount: {type: "integer"}, size: {enum: ["S", "L"]}}; types are string, number, integer and boolean`},
			},
			Most:   256 << 10, // it may wait for minutes, and what is reserved others can't have
			Result: "record: action (accept, decline or cancel), content (a record)",
			Type:   check.Record([]check.Field{{Key: "action", Type: check.String}, {Key: "content", Type: filled}}, nil),
		}},
	}
}

// Handler is a handler that carries out ask.user by the client of the run, and has
// the other one do the rest.
func Handler(rest run.Handler) run.Handler { return asks{rest} }

type asks struct{ run.Handler }

// Prepare implements [run.Handler].
func (h asks) Prepare(g *caps.Grant) {
	if g.Kind != Kind {
		h.Handler.Prepare(g)
	}
}

// Perform implements [run.Handler].
func (h asks) Perform(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	if a.Operation.Name != Operation {
		return h.Handler.Perform(ctx, a)
	}
	return askUser(ctx, &a)
}

// What bounds a question of a tool's.
const (
	mostMessage   = 4 << 10 // bytes
	mostMessaged  = 60      // lines
	mostFields    = 20
	mostFieldText = 200
	mostChoices   = 50
)

func unasked(message, hint string) *fault.Fault {
	hint = cmp.Or(hint, `A right one: {"ask.user":{"message":"How many?","schema":{"n":{"type":"integer"}}}}.`)
	return &fault.Fault{Kind: fault.EffectFailed, Message: Operation + ": " + message, Hint: hint}
}

// askUser puts a tool's question to the person.
func askUser(ctx context.Context, a *run.Act) (value.Value, int64, *fault.Fault) {
	args, _ := a.Args.(*value.Record)
	message, _ := fieldOf(args, "message").(value.Str)
	if len(message) > mostMessage || strings.TrimSpace(string(message)) == "" {
		return nil, 0, unasked(fmt.Sprintf("the message has %d bytes, and must have between 1 and %d", len(message), mostMessage), "")
	}
	form, err := formOf(fieldOf(args, "schema"))
	if err != nil {
		return nil, 0, unasked(err.Error(), "")
	}
	e := Of(ctx)
	if e == nil {
		return nil, 0, unasked("this client can't put a question to its user", "Work without an answer, or take it as an input; with try the tool can go on.")
	}
	res, err := e.Ask(Named(ctx, a.Key), &mcp.ElicitParams{Mode: "form", Message: userMessage(a, string(message)), RequestedSchema: form.schema()})
	if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
		return nil, 0, unasked("the client's answer can't be read", "Tell the user that the client has a defect.")
	}
	rpc := (*jsonrpc.Error)(nil)
	switch {
	case err == nil:
	case strings.Contains(err.Error(), "does not match requested schema"): // the SDK's words
		return nil, 0, unasked("the client's answer isn't what was asked for", "Don't ask again in this run.")
	case errors.As(err, &rpc):
		return nil, 0, unasked(fmt.Sprintf("the client doesn't ask the user: %.200q", rpc.Message), "Don't ask again in this run.")
	default:
		return nil, 0, unasked(fmt.Sprintf("the user gave no answer: %.200s", err), "Don't ask again in this run.")
	}
	content := wire.Object("{}")
	switch res.Action {
	case "accept":
		var f *fault.Fault
		if content, f = form.content(res.Content); f != nil {
			return nil, 0, f
		}
	case "decline", "cancel":
	default:
		return nil, 0, unasked(fmt.Sprintf("the client's answer is %.40q, and must be accept, decline or cancel", res.Action), "Tell the user that the client has a defect.")
	}
	v, ok := filledIn(content)
	if !ok {
		return nil, 0, unasked("the client's answer can't be read", "Tell the user.")
	}
	return &value.Record{Fields: []value.Field{{Key: "action", Value: value.Str(res.Action)}, {Key: "content", Value: v}}}, int64(len(content)), nil
}

// userMessage is what the person reads: who asks first, the tool's words within a
// margin.
func userMessage(a *run.Act, message string) string {
	lines := []string{
		fmt.Sprintf(`The tool "%s", version %d, asks you what follows. A model made this tool; your answer goes to it. Give it no password and no key.`, caps.PlainASCII(a.Tool), a.Version),
		"",
	}
	return strings.Join(append(lines, caps.Margined(message, mostMessaged)...), "\n")
}

// A form is the fields that a question has.
type form []formField

type formField struct {
	name, typ   string
	title, text string
	choices     []string
	optional    bool
}

var fieldName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// formOf reads the form that a tool has filled in; nil: none.
func formOf(schema value.Value) (form, error) {
	if _, ok := schema.(*value.Record); !ok {
		return nil, nil
	}
	enc, f := text.Encode(schema, 64<<10, 64<<10)
	if f != nil {
		return nil, errors.New("the form is too large")
	}
	return readForm(enc.JSON, false)
}

// readForm reads a form: its fields by name, or a JSON Schema of an object that has them as
// properties. A stranger's is one, and may declare what isn't shown, such as bounds and
// defaults: it holds the answer to them itself. No word of it is in an error.
func readForm(schema []byte, stranger bool) (all form, err error) {
	if len(schema) == 0 {
		return nil, nil
	}
	fields, ok := wire.Split(schema)
	var required []string
	isSchema := func(m wire.Member) bool { return m.Name == "properties" && bytes.HasPrefix(m.Value, []byte("{")) }
	if members := fields; stranger || slices.ContainsFunc(members, isSchema) {
		fields, required = nil, []string{}
		for _, m := range members {
			typ := "object"
			switch {
			case m.Name == "properties":
				fields, ok = wire.Split(m.Value)
			case m.Name == "type":
				ok = json.Unmarshal(m.Value, &typ) == nil && typ == "object"
			case m.Name == "required":
				ok = json.Unmarshal(m.Value, &required) == nil
			case !stranger:
				return nil, fmt.Errorf("a form has no %.40q", m.Name)
			}
			if !ok {
				break
			}
		}
	}
	if !ok || len(fields) > mostFields {
		return nil, fmt.Errorf("the form isn't one of at most %d fields; as a JSON Schema it is of the type object, with properties, and required as a list of names", mostFields)
	}
	for _, m := range fields {
		f, err := readField(m, stranger)
		if err != nil && stranger {
			return nil, fmt.Errorf("a field of the form: %w", err)
		}
		if err != nil {
			return nil, fmt.Errorf("the field %.70s: %w", wire.Short([]byte(m.Name)), err)
		}
		if slices.ContainsFunc(all, func(o formField) bool { return o.name == f.name }) {
			return nil, errors.New("two fields of the form have one name")
		}
		f.optional = f.optional || required != nil && !slices.Contains(required, f.name)
		all = append(all, f)
	}
	return all, nil
}

// fieldMembers is what a tool says of a field.
var fieldMembers = []string{"type", "enum", "title", "description", "optional"}

func readField(m wire.Member, stranger bool) (f formField, err error) {
	var s struct {
		Type, Title, Description, Format string
		Optional                         bool
		Enum                             []string
		OneOf                            []struct{ Const string }
	}
	members, ok := wire.Split(m.Value)
	if !stranger {
		s.Type = "string"
		for _, m := range members {
			if !slices.Contains(fieldMembers, m.Name) {
				return f, fmt.Errorf("it can't have %.40q; it has type (string, number, integer, boolean), enum, title, description, optional", m.Name)
			}
		}
	}
	wrong := json.Unmarshal(m.Value, &s) != nil
	for _, c := range s.OneOf {
		s.Enum = append(s.Enum, c.Const)
	}
	if s.Type == "" && s.Enum != nil {
		s.Type = "string"
	}
	shown := func(text string) string {
		if text = display.Truncate(text, mostFieldText); !stranger || text == "" {
			return caps.Plain(text)
		}
		return caps.Quote(text)
	}
	f = formField{m.Name, s.Type, shown(s.Title), shown(s.Description), s.Enum, s.Optional && !stranger}
	switch {
	case !fieldName.MatchString(m.Name):
		return f, errors.New("a name is a letter, then letters, digits, _ . -, at most 64")
	case !ok:
		return f, errors.New(`write {type: "string"} for what it is`)
	case wrong || !slices.Contains([]string{"string", "number", "integer", "boolean"}, s.Type):
		return f, errors.New("its type is string, number, integer or boolean, its enum a list of strings, and title and description are strings")
	case s.Enum != nil && (s.Type != "string" || len(s.Enum) == 0 || len(s.Enum) > mostChoices):
		return f, fmt.Errorf("only a string has an enum, a list of 1 to %d strings", mostChoices)
	case !stranger && max(len(s.Title), len(s.Description)) > mostFieldText:
		return f, fmt.Errorf("title and description have at most %d bytes", mostFieldText)
	case stranger && (s.Format == "password" || credential.MatchString(unsplit.ReplaceAllString(m.Name, "$1 $2")) || credential.MatchString(s.Title) || credential.MatchString(s.Description)):
		return f, errors.New("it wants a password or a key")
	}
	for i, c := range s.Enum {
		if c == "" || len(c) > mostFieldText || caps.Plain(c) != c || slices.Contains(s.Enum[:i], c) {
			return f, fmt.Errorf("each choice is another plain text of at most %d bytes", mostFieldText)
		}
	}
	return f, nil
}

// schema is the form as clients get it.
func (all form) schema() json.RawMessage {
	properties, required := wire.Begin(), []string{}
	for _, f := range all {
		p := wire.Begin().Text("type", f.typ)
		if f.title != "" {
			p = p.Text("title", f.title)
		}
		if f.text != "" {
			p = p.Text("description", f.text)
		}
		if f.choices != nil {
			p = p.Raw("enum", wire.Encode(f.choices))
		}
		properties = properties.Raw(f.name, p.End())
		if !f.optional {
			required = append(required, f.name)
		}
	}
	o := wire.Begin().Text("type", "object").Raw("properties", properties.End())
	if len(required) > 0 {
		o = o.Raw("required", wire.Encode(required))
	}
	return json.RawMessage(o.End())
}

// content is what the person filled in, held against the form: what was not asked
// for is left out.
func (all form) content(given map[string]any) (wire.Object, *fault.Fault) {
	o := wire.Begin()
	for _, f := range all {
		v, ok := given[f.name]
		if !ok || v == nil {
			if f.optional {
				continue
			}
			return nil, unasked(fmt.Sprintf("the answer lacks %s", f.name), "Ask once more, or go on without.")
		}
		fits := false
		switch v := v.(type) {
		case string:
			fits = f.typ == "string" && len(v) <= mostAnswer && (f.choices == nil || slices.Contains(f.choices, v))
		case bool:
			fits = f.typ == "boolean"
		case float64:
			fits = f.typ == "number" || f.typ == "integer" && v == float64(int64(v)) && v < 1<<53 && v > -1<<53
			if fits && f.typ == "integer" {
				o = o.Raw(f.name, fmt.Appendf(nil, "%d", int64(v)))
				continue
			}
		}
		if !fits {
			return nil, unasked(fmt.Sprintf("the answer's %s isn't what was asked for", f.name), "Ask once more, or go on without.")
		}
		o = o.Raw(f.name, wire.Encode(v))
	}
	return o.End(), nil
}

// filledIn is an answer's content as a value: a record of single values, whatever
// its fields are called.
func filledIn(content wire.Object) (value.Value, bool) {
	members, ok := wire.Split(content)
	r := &value.Record{}
	for _, m := range members {
		v, err := pifjson.Read(string(m.Value), 1, nil)
		ok = ok && err == nil
		r.Fields = append(r.Fields, value.Field{Key: m.Name, Value: v})
	}
	slices.SortFunc(r.Fields, func(a, b value.Field) int { return strings.Compare(a.Key, b.Key) })
	return r, ok
}

// mostAnswer is how many bytes a text of an answer has.
const mostAnswer = 8 << 10

// fieldOf is a record's member, forced; nil: there is none.
func fieldOf(r *value.Record, name string) value.Value {
	if r != nil {
		for _, m := range r.Fields {
			if m.Key == name {
				return value.Force(m.Value)
			}
		}
	}
	return nil
}

// AskFlow puts a request that breaks a rule about where data may flow to the person before the client: all of it,
// with where each argument came from. An error is that nobody answered; then it waits for one at a terminal.
func AskFlow(ctx context.Context, q run.FlowQuestion) (yes bool, err error) {
	e := Of(ctx)
	if e == nil {
		return false, errors.New("this client can't put a question to its user")
	}
	lines, err := q.Lines(mostMessaged, mostMessage)
	if err != nil {
		return false, err
	}
	if !q.Record() {
		return false, errors.New("that the user is asked could not be recorded")
	}
	res, err := e.Ask(ctx, &mcp.ElicitParams{Mode: "form", Message: strings.Join(lines, "\n"), RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{"allow": map[string]any{"type": "boolean", "title": "Allow this one request"}}, "required": []string{"allow"},
	}})
	if err != nil {
		return false, err
	}
	allowed, _ := res.Content["allow"].(bool)
	return res.Action == "accept" && allowed, nil
}
