package mcpserver

import (
	"fmt"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/results"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// resultPart is how many bytes of a result an answer of run shows, and the most
// of it that a model is given at once.
const resultPart = preview

// offer keeps the result of an answer that shows only its beginning, and says in
// the answer how to read on: in the text, where the tool gives text. What the record
// has of the answer is without it: the name is another one each time.
func (s *Server) offer(a wire.Answer) wire.Answer {
	if a.Large == nil || s.results == nil {
		return a
	}
	k := *a.Large
	a.Large = nil
	short := int64(len(k.Shown)) < k.Total
	if k.Text {
		var text string
		if text, k.Text = wire.ReadText(k.Shown, short); k.Text {
			preview, _ := wire.ReadText([]byte(a.Text), true)
			rest := a.Structured[len(wire.Previewed(a.Text, k.Total)):]
			if k.Shown = []byte(text); !short {
				k.Total = int64(len(text))
			}
			a.Plain, a.Structured = &preview, []byte(append(wire.Previewed(preview, k.Total), rest...))
		}
	}
	id := s.results.Put(s, k)
	if id == "" {
		return a
	}
	next := readOn(id, int64(len(a.First())))
	o := wire.Object(a.Structured[:len(a.Structured)-1]).Text("uri", resultURI(id)).Raw("next", next)
	a.Structured = []byte(o.End())
	if short {
		a.More = append(a.More, fmt.Sprintf("note: its first %d bytes can be read on", results.MaxKept))
	}
	a.Tell(nil, string(next))
	return a
}

// readOn is the call that shows more of a result.
func readOn(id string, from int64) wire.Object {
	return wire.Begin().Text("name", "run").Raw("arguments", wire.Begin().Text("result", id).Number("from", uint64(from)).End()).End()
}

// readResult shows more of a result, as the call that run answered asks for it.
func (s *Server) readResult(a *wire.Arguments) wire.Answer {
	for _, m := range a.Members {
		if m.Name != "result" && m.Name != "from" && string(m.Value) != "null" {
			return wire.Failed(wire.Invalid(fmt.Sprintf(`run takes "result" with "from" only, not with %q`, m.Name), "run", runArguments))
		}
	}
	id, _, f := a.Text("result")
	if f != nil {
		return wire.Failed(f)
	}
	from, _, f := a.Number("from")
	if f != nil {
		return wire.Failed(f)
	}
	var k wire.Large
	ok := false
	if s.results != nil {
		k, ok = s.results.Get(s, id)
	}
	if !ok {
		return wire.Failed(&fault.Fault{
			Kind:    fault.InvalidRequest,
			Message: fmt.Sprintf("there is no result %q to read on", wire.Short([]byte(id))),
			Hint:    "Results are kept until newer ones need the room, and no longer than the server runs: run the tool again.",
		})
	}
	if from > uint64(len(k.Shown)) {
		return wire.Failed(&fault.Fault{
			Kind:    fault.OutOfRange,
			Message: fmt.Sprintf("the result can be read up to byte %d, not from %d", len(k.Shown), from),
			Hint:    "A correct call: " + string(readOn(id, 0)) + ".",
		})
	}
	text, at := k.Part(int64(from), resultPart)
	o := wire.Begin().Text("preview", text).Number("from", uint64(at)).Number("total", uint64(k.Total))
	answer := wire.Answer{Text: text}
	next := ""
	if end := at + int64(len(text)); end < int64(len(k.Shown)) {
		next = string(readOn(id, end))
		o = o.Raw("next", []byte(next))
	}
	answer.Structured = []byte(o.End())
	answer.Tell(nil, next)
	return answer
}

// resultURI is the resource of a result.
func resultURI(id string) string { return scheme + "results/" + id }
