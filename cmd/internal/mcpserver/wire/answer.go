// Package wire is what a call of a tool says, and what it is answered: arguments taken
// apart, answers with their content items, the declarations of the server's own tools,
// and how long texts are shown.
//
// It reads and writes JSON and knows no server: arguments that a tool doesn't know are
// refused here, with a call that is right; what they mean is decided above. Begin with
// [Tools], [Read] and [Answer].
package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
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

	Contents []mcp.Content // that the result says it is, as a client shows it; nil: Text
	Plain    *string       // the result of a tool that gives text, as a client shows it; nil: Text

	Steps    uint64   // of a run, for the record
	Type     string   // of its result
	Whole    bool     // the text is all of a result
	Function bool     // the result is a function, or holds one
	Large    *Large   // the result of which the text is the beginning
	Under    []string // the sources that it shows something of, on record as shown
	IsSealed bool     // the text says where the result is, which isn't shown
}

// Result is the answer as MCP has it.
func (a *Answer) Result() *mcp.CallToolResult {
	r := &mcp.CallToolResult{
		Content:           make([]mcp.Content, 0, 1+len(a.More)),
		StructuredContent: a.Structured,
		IsError:           a.Fault != nil,
	}
	if r.Content = append(r.Content, a.Contents...); a.Contents == nil {
		r.Content = append(r.Content, &mcp.TextContent{Text: a.First()})
	}
	for _, more := range a.More {
		r.Content = append(r.Content, &mcp.TextContent{Text: more})
	}
	return r
}

// Size is how many bytes it takes in memory.
func (a *Answer) Size() int64 {
	n := len(a.Text) + len(a.Structured)
	for _, c := range a.Contents {
		switch c := c.(type) {
		case *mcp.ImageContent:
			n += len(c.Data)
		case *mcp.AudioContent:
			n += len(c.Data)
		case *mcp.TextContent:
			n += len(c.Text)
		case *mcp.EmbeddedResource:
			n += len(c.Resource.Blob) + len(c.Resource.Text)
		}
	}
	return int64(n)
}

// First is the first content item.
func (a *Answer) First() string {
	if a.Plain != nil {
		return *a.Plain
	}
	return a.Text
}

// Succeeded is the answer of a tool whose result is the object itself.
func Succeeded(o Object) Answer {
	o = o.End()
	return Answer{Text: string(o), Structured: json.RawMessage(o)}
}

// Failed is the answer of a call that came to nothing before a step was taken.
func Failed(f *fault.Fault) Answer { return FailedAfter(f, 0, nil, "") }

// FailedAfter is the answer of a call that failed after so many steps. next, where
// it isn't empty, is the call that goes on from what was achieved.
func FailedAfter(f *fault.Fault, steps uint64, notes []string, next string) Answer {
	f, notes = Noted(Bounded(f), notes)
	text := f.Error()
	if f.Near != "" && !strings.Contains(strings.ToLower(text), "did you mean") {
		text += fmt.Sprintf("\nDid you mean %q?", f.Near)
	}
	notes = FewNotes(unsaid(notes, f))
	o := Begin().Raw("error", Encode(f)).Number("steps", steps)
	if len(notes) > 0 {
		o = o.Raw("notes", Encode(notes))
	}
	if next != "" {
		o = o.Raw("next", []byte(next))
	}
	a := Answer{Text: text, Structured: json.RawMessage(o.End()), Fault: f, Steps: steps}
	a.Tell(notes, next)
	return a
}

// Noted is a fault whose hint is the note of the same place, which tells more of what
// was meant, and the other notes.
func Noted(f *fault.Fault, notes []string) (*fault.Fault, []string) {
	same := fmt.Sprintf("line %d, column %d: ", f.Line, f.Col)
	behind := fmt.Sprintf("line %d, column %d: values have no methods", f.Line, f.Col+1)
	for i, note := range notes {
		_, said, _ := strings.Cut(note, ": ")
		isSlip := f.Kind == fault.Unbound && strings.HasPrefix(f.Hint, "Bind it with") && strings.HasPrefix(note, same) && !strings.Contains(note, " is free: ")
		if !isSlip && (f.Kind != fault.TypeError || !strings.HasPrefix(note, same) && !strings.HasPrefix(note, behind)) {
			continue
		}
		g := *f
		if g.Hint = strings.ToUpper(said[:1]) + said[1:]; !strings.HasSuffix(g.Hint, "?") {
			g.Hint += "."
		}
		return &g, slices.Delete(slices.Clone(notes), i, i+1)
	}
	return f, notes
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

// Tell adds notes and the next call to the text.
func (a *Answer) Tell(notes []string, next string) {
	if len(notes) > 0 {
		a.More = append(a.More, "note: "+strings.Join(notes, "\nnote: "))
	}
	if next != "" {
		a.More = append(a.More, "next: "+next)
	}
}

// MaxText is how long a part of a fault may be, in bytes. A name in a program
// may be as long as the program, and says nothing after its beginning.
const MaxText = 2 << 10

// Bounded is the fault with no part longer than that.
func Bounded(f *fault.Fault) *fault.Fault {
	long := func(s string) bool { return len(s) > MaxText }
	if len(f.More) == 0 && !long(f.Message) && !long(f.Hint) && !long(f.Got) && !long(f.Expected) && !long(f.Fragment) && !long(string(f.At)) {
		return f
	}
	g := *f
	for _, part := range []*string{&g.Message, &g.Hint, &g.Got, &g.Expected, &g.Fragment, (*string)(&g.At)} {
		if long(*part) {
			*part = display.Prefix([]byte(*part), MaxText) + "…"
		}
	}
	g.More = make([]*fault.Fault, len(f.More))
	for i, more := range f.More {
		g.More[i] = Bounded(more)
	}
	return &g
}

// MaxNotes is how many notes an answer has; a program of thousands of rounded
// numbers isn't better understood by thousands of notes.
const MaxNotes = 20

// FewNotes is the first of many notes.
func FewNotes(notes []string) []string {
	if len(notes) <= MaxNotes {
		return notes
	}
	return append(notes[:MaxNotes:MaxNotes], fmt.Sprintf("and %d more notes like these", len(notes)-MaxNotes))
}

// AsFault gives the fault that core's errors are; anything else is a defect.
func AsFault(err error) *fault.Fault {
	if f, ok := err.(*fault.Fault); ok {
		return f
	}
	return &fault.Fault{Kind: fault.Internal, Message: err.Error(), Cause: err}
}

// ReplaceFault puts another fault in the place of that of a failed answer.
func (a *Answer) ReplaceFault(f *fault.Fault) {
	rest := a.Structured[len(Begin().Raw("error", Encode(a.Fault))):]
	b := Failed(f)
	a.Text, a.Fault = b.Text, b.Fault
	a.Structured = []byte(append(Begin().Raw("error", Encode(b.Fault)), rest...))
}

// A Large result is JSON, or a text, or the first of it.
type Large struct {
	Shown []byte
	Total int64 // of the whole result
	Text  bool
	Under []string // the sources that it shows something of
}

// Size is what it takes in memory.
func (k Large) Size() int { return cap(k.Shown) }

// Part is at most n bytes of it from a place on, whole characters only, and where
// they begin: at the character that the place is in.
func (k Large) Part(from int64, n int) (text string, at int64) {
	at = min(from, int64(len(k.Shown)))
	for at > 0 && at < int64(len(k.Shown)) && k.Shown[at]&0xC0 == 0x80 {
		at--
	}
	return display.Prefix(k.Shown[at:], n), at
}

// Previewed begins the answer that shows the beginning of a result.
func Previewed(text string, total int64) Object {
	return Begin().Text("preview", text).Number("total", uint64(total))
}

// Digest is the hash of all that the caller is given: of the texts and of the
// structured content, each behind its length in eight bytes.
func (a *Answer) Digest() [sha256.Size]byte {
	b := make([]byte, 0, 1024)
	part := func(s string) { b = append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...) }
	part(a.Text)
	for _, more := range a.More {
		part(more)
	}
	part(string(a.Structured))
	return sha256.Sum256(b)
}

// Uncounted is an answer that doesn't tell how much was done for it, which may depend on what isn't shown.
func (a Answer) Uncounted() Answer {
	members, ok := Split(a.Structured)
	if !ok {
		return a
	}
	o := Begin()
	for _, m := range members {
		if m.Name != "steps" && m.Name != "rounds" && m.Name != "notes" {
			o = o.Raw(m.Name, m.Value)
		}
	}
	a.Structured, a.More = json.RawMessage(o.End()), nil
	return a
}
