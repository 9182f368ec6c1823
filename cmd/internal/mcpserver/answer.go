package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// An Answer is what a call gives.
type Answer struct {
	// Text is the result as compact JSON, or what went wrong in words.
	Text string
	// More is what a reader of the text alone should know besides: notes, the
	// call to make next.
	More []string
	// Structured is the same as one JSON object.
	Structured json.RawMessage
	// Fault is set where the call failed.
	Fault *fault.Fault

	contents []mcp.Content // that the result says it is, as a client shows it; nil: Text
	plain    *string       // the result of a tool that gives text, as a client shows it; nil: Text

	steps    uint64 // of a run, for the record
	typ      string // of its result
	whole    bool   // the text is all of a result
	large    *kept  // the result of which the text is the beginning
	isSealed bool   // the text says where the result is, which isn't shown
}

// result is the answer as MCP has it.
func (a *Answer) result() *mcp.CallToolResult {
	r := &mcp.CallToolResult{
		Content:           make([]mcp.Content, 0, 1+len(a.More)),
		StructuredContent: a.Structured,
		IsError:           a.Fault != nil,
	}
	if r.Content = append(r.Content, a.contents...); a.contents == nil {
		r.Content = append(r.Content, &mcp.TextContent{Text: a.first()})
	}
	for _, more := range a.More {
		r.Content = append(r.Content, &mcp.TextContent{Text: more})
	}
	return r
}

// first is the first content item.
func (a *Answer) first() string {
	if a.plain != nil {
		return *a.plain
	}
	return a.Text
}

// succeeded is the answer of a tool whose result is the object itself.
func succeeded(o object) Answer {
	o = o.end()
	return Answer{Text: string(o), Structured: json.RawMessage(o)}
}

// failed is the answer of a call that came to nothing before a step was taken.
func failed(f *fault.Fault) Answer { return failure(f, 0, nil, "") }

// failure is the answer of a call that failed after so many steps. next, where
// it isn't empty, is the call that goes on from what was achieved.
func failure(f *fault.Fault, steps uint64, notes []string, next string) Answer {
	f = bounded(f)
	text := f.Error()
	if f.Near != "" && !strings.Contains(strings.ToLower(text), "did you mean") {
		text += fmt.Sprintf("\nDid you mean %q?", f.Near)
	}
	notes = few(unsaid(notes, f))
	o := begin().raw("error", encode(f)).number("steps", steps)
	if len(notes) > 0 {
		o = o.raw("notes", encode(notes))
	}
	if next != "" {
		o = o.raw("next", []byte(next))
	}
	a := Answer{Text: text, Structured: json.RawMessage(o.end()), Fault: f, steps: steps}
	a.tell(notes, next)
	return a
}

// unsaid is notes without what the fault says, of a variable that nothing binds.
func unsaid(notes []string, f *fault.Fault) []string {
	var name string
	if f.Kind != fault.Unbound {
		return notes
	}
	if _, err := fmt.Sscanf(f.Message, "nothing binds the variable %q here", &name); err != nil {
		return notes
	}
	return slices.DeleteFunc(slices.Clone(notes), func(note string) bool {
		return strings.Contains(note, strconv.Quote(name)) && (strings.Contains(note, " is free: ") || strings.Contains(note, "neither bound here nor"))
	})
}

// tell adds notes and the next call to the text.
func (a *Answer) tell(notes []string, next string) {
	if len(notes) > 0 {
		a.More = append(a.More, "note: "+strings.Join(notes, "\nnote: "))
	}
	if next != "" {
		a.More = append(a.More, "next: "+next)
	}
}

// mostText is how long a part of a fault may be, in bytes. A name in a program
// may be as long as the program, and says nothing after its beginning.
const mostText = 2 << 10

// bounded is the fault with no part longer than that.
func bounded(f *fault.Fault) *fault.Fault {
	long := func(s string) bool { return len(s) > mostText }
	if len(f.More) == 0 && !long(f.Message) && !long(f.Hint) && !long(f.Got) && !long(f.Expected) && !long(f.Fragment) && !long(string(f.At)) {
		return f
	}
	g := *f
	for _, part := range []*string{&g.Message, &g.Hint, &g.Got, &g.Expected, &g.Fragment, (*string)(&g.At)} {
		if long(*part) {
			*part = cut([]byte(*part), mostText) + "…"
		}
	}
	g.More = make([]*fault.Fault, len(f.More))
	for i, more := range f.More {
		g.More[i] = bounded(more)
	}
	return &g
}

// mostNotes is how many notes an answer has; a program of thousands of rounded
// numbers isn't better understood by thousands of notes.
const mostNotes = 20

// few is the first of many notes.
func few(notes []string) []string {
	if len(notes) <= mostNotes {
		return notes
	}
	return append(notes[:mostNotes:mostNotes], fmt.Sprintf("and %d more notes like these", len(notes)-mostNotes))
}

// asFault gives the fault that core's errors are; anything else is a defect.
func asFault(err error) *fault.Fault {
	if f, ok := err.(*fault.Fault); ok {
		return f
	}
	return &fault.Fault{Kind: fault.Internal, Message: err.Error(), Cause: err}
}

// placed completes the document of a fault: code that ran as a tool's is called
// "tool:NAME@V". Faults are immutable, so it returns a copy.
func placed(f *fault.Fault, running *registry.Tool, tools *registry.Snapshot) *fault.Fault {
	in := running
	if name, ok := strings.CutPrefix(f.In, "tool:"); ok {
		in = versionOf(name, running, tools)
	} else if f.In != "code" {
		return f
	}
	if in == nil {
		return f
	}
	g := *f
	g.In = fmt.Sprintf("tool:%s@%d", in.Name, in.Version)
	return &g
}

// versionOf is the version of a tool that ran by its name in a run of another: a
// call goes to the version that the caller was bound to, which needn't be the one
// there is. It is nil where it can be one of several.
func versionOf(name string, running *registry.Tool, tools *registry.Snapshot) *registry.Tool {
	var found *registry.Tool
	seen := map[*registry.Tool]bool{}
	for todo := []*registry.Tool{running}; len(todo) > 0; {
		t := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if t == nil || seen[t] {
			continue
		}
		seen[t] = true
		if t.Name == name {
			if found != nil && found.Version != t.Version {
				return nil
			}
			found = t
		}
		for _, callee := range t.Bound {
			todo = append(todo, callee)
		}
	}
	if found == nil {
		found, _ = tools.Get(name)
	}
	return found
}

// object is a JSON object being written.
type object []byte

func begin() object { return append(make(object, 0, 128), '{') }

func (o object) key(name string) object {
	if len(o) > 1 {
		o = append(o, ',')
	}
	return append(text.AppendString(o, name), ':')
}

func (o object) raw(name string, json []byte) object { return append(o.key(name), json...) }

// call adds a call, if there is one.
func (o object) call(name string, call []byte) object {
	if call == nil {
		return o
	}
	return o.raw(name, call)
}

func (o object) text(name, s string) object { return append(o.key(name), encode(s)...) }

func (o object) number(name string, n uint64) object {
	return strconv.AppendUint(o.key(name), n, 10)
}

func (o object) end() object { return append(o, '}') }

// encode gives compact JSON. What it is given always has some.
func encode(v any) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("mcpserver: %T has no JSON: %v", v, err))
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// coded gives an error of the SDK's the code that JSON-RPC has for it. The SDK names
// none where it refuses a request of the older protocols for its place in the
// session, and such a refusal would go out as a defect of the server.
func coded(err error) error {
	var known *jsonrpc.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	words := err.Error()
	switch {
	case strings.HasSuffix(words, "is invalid during session initialization"):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: send initialize first; or give each request its protocol version in _meta, as 2026-07-28 has it"}
	case strings.HasPrefix(words, `duplicate "initialize"`):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: this session is initialized already"}
	case strings.HasPrefix(words, "handling 'initialize': "):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(`invalid params: initialize takes {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"…","version":"…"}}; %.200s`, words)}
	}
	return err
}
