package mcpserver

import (
	"crypto/rand"
	"fmt"
	"slices"
	"sync"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// keptResult is how many bytes of one result can be read on.
const keptResult = 16 << 20

// mostResults is how many results of one server can be read on.
const mostResults = 1000

// resultPart is how many bytes of a result an answer of run shows, and the most
// of it that a model is given at once.
const resultPart = preview

// Results holds the results that are too large to show, so that clients can read
// on in them. Several servers may share one, and none finds what another put in:
// its size bounds them together. The oldest go first, of the server that holds
// most. It is safe for concurrent use.
type Results struct {
	most int

	mu    sync.Mutex
	size  int
	owned map[*Server]*shelf
}

// A shelf is the results of one server.
type shelf struct {
	size  int
	order []string // the oldest first
	byID  map[string]wire.Large
}

// NewResults makes room for so many bytes of results; 0: 64 MiB.
func NewResults(bytes int) *Results {
	return &Results{most: or(bytes, resultBytes), owned: map[*Server]*shelf{}}
}

// resultBytes is the room of servers that were given none.
const resultBytes = 64 << 20

// put keeps a result and gives the name by which its owner, and nobody else,
// finds it; "" where it is larger than the room for all.
func (r *Results) put(owner *Server, k wire.Large) (id string) {
	if k.Size() > r.most {
		return ""
	}
	id = rand.Text()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.owned[owner]
	if s == nil {
		s = &shelf{byID: map[string]wire.Large{}}
		r.owned[owner] = s
	}
	for len(s.order) >= mostResults {
		r.drop(owner, s)
	}
	for r.size+k.Size() > r.most {
		r.drop(r.largest())
	}
	r.owned[owner] = s // dropping may have taken it away
	s.byID[id] = k
	s.order = append(s.order, id)
	s.size += k.Size()
	r.size += k.Size()
	return id
}

// largest is the server that holds most.
func (r *Results) largest() (owner *Server, most *shelf) {
	for o, s := range r.owned {
		if most == nil || s.size > most.size {
			owner, most = o, s
		}
	}
	return owner, most
}

// drop lets a server's oldest result go.
func (r *Results) drop(owner *Server, s *shelf) {
	oldest := s.byID[s.order[0]]
	delete(s.byID, s.order[0])
	s.order = slices.Delete(s.order, 0, 1)
	s.size -= oldest.Size()
	r.size -= oldest.Size()
	if len(s.order) == 0 {
		delete(r.owned, owner)
	}
}

// get finds a result of its owner's.
func (r *Results) get(owner *Server, id string) (wire.Large, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.owned[owner]
	if s == nil {
		return wire.Large{}, false
	}
	k, ok := s.byID[id]
	return k, ok
}

// Forget drops all results of a server that is closed; nil has none.
func (r *Results) Forget(owner *Server) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.owned[owner]; s != nil {
		r.size -= s.size
		delete(r.owned, owner)
	}
}

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
	id := s.results.put(s, k)
	if id == "" {
		return a
	}
	next := readOn(id, int64(len(a.First())))
	o := wire.Object(a.Structured[:len(a.Structured)-1]).Text("uri", resultURI(id)).Raw("next", next)
	a.Structured = []byte(o.End())
	if short {
		a.More = append(a.More, fmt.Sprintf("note: its first %d bytes can be read on", keptResult))
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
		k, ok = s.results.get(s, id)
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
