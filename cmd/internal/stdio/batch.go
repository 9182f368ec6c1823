package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// noBatches is the first version of the protocol without batches: the one before
// it has servers take them, the one before that says nothing against them.
const noBatches = "2025-06-18"

// maxBatch is how many messages a batch may have.
const maxBatch = 1000

// A batch is a line with several messages, whose answers go back as one line. Once
// more of them than [highWater] wait for the last, they go as a line of their own:
// clients tell answers by their ids, and one slow call mustn't hold all the memory
// that a thousand answers may take.
type batch struct {
	mu    sync.Mutex
	left  int    // messages that are neither answered nor known to have no answer
	lines []byte // the answers so far, each behind a comma
}

// leave records that a message is done with, by an answer or, nil, without one. It
// returns what is to be sent now, if anything is.
func (b *batch) leave(answer *line) (line, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left--
	if answer != nil {
		b.lines = append(b.lines, ',')
		b.lines = bytes.TrimSuffix(answer.appendTo(b.lines), []byte("\n"))
	}
	if len(b.lines) == 0 || b.left > 0 && len(b.lines) < highWater {
		return line{}, false
	}
	whole := slices.Concat([]byte("["), b.lines[1:], []byte("]"))
	b.lines = nil
	return line{whole: whole}, true
}

// part is a message that came in a batch; without one in a line of its own.
type part struct {
	frame
	batch *batch
}

// unpack makes of a line that is an array the messages in it. It reports false for
// any other line, and where the session's version has no batches.
func (c *conn) unpack(f frame) (*refusal, bool) {
	if !c.batches.Load() || f.long != nil || !isArray(f.line) {
		return nil, false
	}
	parts, refused := elements(f.line)
	if refused != nil {
		return refused, true
	}
	b := &batch{left: len(parts)}
	for _, p := range parts {
		c.parts = append(c.parts, part{frame{line: p, owned: f.owned}, b})
	}
	return nil, true
}

// leave finishes with a message of a batch that has no answer.
func (c *conn) leave(b *batch) {
	if b == nil {
		return
	}
	if l, ok := b.leave(nil); ok {
		_ = c.out.send(context.Background(), l) // what makes it fail ends the session too
	}
}

// negotiate takes note of the version that an initialize settled.
func (c *conn) negotiate(result []byte) {
	var said struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(result, &said) == nil {
		c.batches.Store(said.ProtocolVersion != "" && said.ProtocolVersion < noBatches)
	}
}

func isArray(text []byte) bool {
	s := scanner{b: text}
	i := s.space(0)
	return i < len(text) && text[i] == '['
}

// elements takes an array of messages apart. What isn't JSON, or has no or too many
// elements, is refused as a whole.
func elements(text []byte) ([][]byte, *refusal) {
	s := scanner{b: text}
	start := s.space(0)
	end := s.value(start)
	if end >= 0 {
		if rest := s.space(end); rest < len(text) {
			end = s.fail(rest, "more after the message")
		}
	}
	if end < 0 {
		return nil, &refusal{jsonrpc.CodeParseError, nil, fmt.Sprintf("parse error: %s at byte %d", s.fault, s.at)}
	}
	var parts [][]byte
	for i := s.space(start + 1); text[i] != ']'; {
		if len(parts) == maxBatch {
			return nil, invalid(nil, "a batch of over %d messages", maxBatch)
		}
		after := s.value(i)
		parts = append(parts, text[i:after])
		if i = s.space(after); text[i] == ',' {
			i = s.space(i + 1)
		}
	}
	if len(parts) == 0 {
		return nil, invalid(nil, "an empty batch")
	}
	return parts, nil
}

// maxExactInt is the largest integer id that comes back over HTTP as it was.
const maxExactInt = 1 << 53

// Refusal returns the answer to a text that is no message: not JSON, not JSON-RPC, or
// with an id that can't be given back. It is nil for a message, and, where batches
// may be, for an array of them. It is for the transport over HTTP, which is the
// SDK's: that one answers such texts without a code, or takes 1.5 for the id 1.
func Refusal(text []byte, batches bool) []byte {
	parts := [][]byte{text}
	if batches && isArray(text) {
		var refused *refusal
		if parts, refused = elements(text); refused != nil {
			return refused.answer()
		}
	}
	for _, p := range parts {
		m, refused := parse(p)
		if refused != nil {
			return refused.answer()
		}
		if m == nil || !m.call {
			continue
		}
		if m.id.big() {
			return invalid([]byte(m.id.echo), "over HTTP an integer id is at most %d", int64(maxExactInt)).answer()
		}
	}
	return nil
}

// answer returns the refusal as a message.
func (r *refusal) answer() []byte {
	l := line{echo: string(r.id), kind: fault, body: errorBody(&jsonrpc.Error{Code: r.code, Message: r.reason})}
	return bytes.TrimSuffix(l.appendTo(nil), []byte("\n"))
}
