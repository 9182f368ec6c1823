package mcpserver

import (
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

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
	byID  map[string]kept
}

// A kept result is JSON, or a text, or the first of it.
type kept struct {
	shown []byte
	total int64 // of the whole result
	text  bool
}

// size is what it takes in memory.
func (k kept) size() int { return cap(k.shown) }

// NewResults makes room for so many bytes of results; 0: 64 MiB.
func NewResults(bytes int) *Results {
	return &Results{most: or(bytes, resultBytes), owned: map[*Server]*shelf{}}
}

// resultBytes is the room of servers that were given none.
const resultBytes = 64 << 20

// put keeps a result and gives the name by which its owner, and nobody else,
// finds it; "" where it is larger than the room for all.
func (r *Results) put(owner *Server, k kept) (id string) {
	if k.size() > r.most {
		return ""
	}
	id = rand.Text()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.owned[owner]
	if s == nil {
		s = &shelf{byID: map[string]kept{}}
		r.owned[owner] = s
	}
	for len(s.order) >= mostResults {
		r.drop(owner, s)
	}
	for r.size+k.size() > r.most {
		r.drop(r.largest())
	}
	r.owned[owner] = s // dropping may have taken it away
	s.byID[id] = k
	s.order = append(s.order, id)
	s.size += k.size()
	r.size += k.size()
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
	s.size -= oldest.size()
	r.size -= oldest.size()
	if len(s.order) == 0 {
		delete(r.owned, owner)
	}
}

// get finds a result of its owner's.
func (r *Results) get(owner *Server, id string) (kept, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.owned[owner]
	if s == nil {
		return kept{}, false
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

// part is at most n bytes of it from a place on, whole characters only, and where
// they begin: at the character that the place is in.
func (k kept) part(from int64, n int) (text string, at int64) {
	at = min(from, int64(len(k.shown)))
	for at > 0 && at < int64(len(k.shown)) && k.shown[at]&0xC0 == 0x80 {
		at--
	}
	return cut(k.shown[at:], n), at
}

// offer keeps the result of an answer that shows only its beginning, and says in
// the answer how to read on: in the text, where the tool gives text. What the record
// has of the answer is without it: the name is another one each time.
func (s *Server) offer(a Answer) Answer {
	if a.large == nil || s.results == nil {
		return a
	}
	k := *a.large
	a.large = nil
	short := int64(len(k.shown)) < k.total
	if k.text {
		var text string
		if text, k.text = decodeText(k.shown, short); k.text {
			preview, _ := decodeText([]byte(a.Text), true)
			rest := a.Structured[len(previewed(a.Text, k.total)):]
			if k.shown = []byte(text); !short {
				k.total = int64(len(text))
			}
			a.plain, a.Structured = &preview, []byte(append(previewed(preview, k.total), rest...))
		}
	}
	id := s.results.put(s, k)
	if id == "" {
		return a
	}
	next := readOn(id, int64(len(a.first())))
	o := object(a.Structured[:len(a.Structured)-1]).text("uri", resultURI(id)).raw("next", next)
	a.Structured = []byte(o.end())
	if short {
		a.More = append(a.More, fmt.Sprintf("note: its first %d bytes can be read on", keptResult))
	}
	a.tell(nil, string(next))
	return a
}

// previewed begins the answer that shows the beginning of a result.
func previewed(text string, total int64) object {
	return begin().text("preview", text).number("total", uint64(total))
}

// decodeText gives the text that JSON is a string of; of the beginning of one (cut), the text
// that it holds whole. Anything else is none.
func decodeText(json []byte, cut bool) (text string, ok bool) {
	if len(json) == 0 || json[0] != '"' {
		return "", false
	}
	if !cut {
		return text, decoded(json, &text)
	}
	// The longest escape has six bytes, and so much may be of one, or of a character.
	for n := len(json); n > max(0, len(json)-6); n-- {
		if r, size := utf8.DecodeLastRune(json[:n]); r == utf8.RuneError && size == 1 {
			continue
		}
		if decoded(append(json[:n:n], '"'), &text) {
			return text, true
		}
	}
	return "", false
}

// readOn is the call that shows more of a result.
func readOn(id string, from int64) object {
	return begin().text("name", "run").raw("arguments", begin().text("result", id).number("from", uint64(from)).end()).end()
}

// readResult shows more of a result, as the call that run answered asks for it.
func (s *Server) readResult(a *arguments) Answer {
	for _, m := range a.members {
		if m.name != "result" && m.name != "from" && string(m.value) != "null" {
			return failed(invalid(fmt.Sprintf(`run takes "result" with "from" only, not with %q`, m.name), "run", runArguments))
		}
	}
	id, _, f := a.text("result")
	if f != nil {
		return failed(f)
	}
	from, _, f := a.number("from")
	if f != nil {
		return failed(f)
	}
	var k kept
	ok := false
	if s.results != nil {
		k, ok = s.results.get(s, id)
	}
	if !ok {
		return failed(&fault.Fault{
			Kind:    fault.InvalidRequest,
			Message: fmt.Sprintf("there is no result %q to read on", excerpt([]byte(id))),
			Hint:    "Results are kept until newer ones need the room, and no longer than the server runs: run the tool again.",
		})
	}
	if from > uint64(len(k.shown)) {
		return failed(&fault.Fault{
			Kind:    fault.OutOfRange,
			Message: fmt.Sprintf("the result can be read up to byte %d, not from %d", len(k.shown), from),
			Hint:    "A correct call: " + string(readOn(id, 0)) + ".",
		})
	}
	text, at := k.part(int64(from), resultPart)
	o := begin().text("preview", text).number("from", uint64(at)).number("total", uint64(k.total))
	answer := Answer{Text: text}
	next := ""
	if end := at + int64(len(text)); end < int64(len(k.shown)) {
		next = string(readOn(id, end))
		o = o.raw("next", []byte(next))
	}
	answer.Structured = []byte(o.end())
	answer.tell(nil, next)
	return answer
}

// resultURI is the resource of a result.
func resultURI(id string) string { return scheme + "results/" + id }
