package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-pif/mcp-pif/plugins/internal/jsonvalue"
)

// A frame is one line that a server wrote.
type frame struct {
	line []byte // nil: it has more bytes than were allowed
	size int64
	id   jsonrpc.ID // of the message, as far as it can be seen without parsing
	// isDeep is set if it is nested deeper than any parser should follow.
	isDeep bool
}

// maxDepth is how deep a message may be nested: more than a value in it may be.
const maxDepth = jsonvalue.Deepest + 20

// isDeep reports whether a message is nested deeper.
func isDeep(text []byte) bool {
	var s idScanner
	s.scan(text)
	return s.deepest > maxDepth
}

// readFrame reads one line of at most the bytes that most gives; of a longer one it reads
// on to the end and keeps nothing but the identifier.
func readFrame(r *bufio.Reader, most func() int64) (f frame, err error) {
	var ids idScanner
	limit, kept := most(), []byte{}
	for {
		part, err := r.ReadSlice('\n')
		f.size += int64(len(part))
		ids.scan(part)
		switch {
		case f.size > limit:
			kept = nil
		case kept != nil:
			kept = append(kept, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		f.id, f.isDeep = ids.id(), ids.deepest > maxDepth
		f.line = bytes.TrimSpace(kept)
		if kept == nil {
			f.line = nil
		}
		return f, err
	}
}

// An idScanner finds the member "id" of an object whose text comes in parts, and keeps
// nothing else.
type idScanner struct {
	depth, deepest  int
	inText, escaped bool
	isKey, isID     bool
	key, found      []byte
}

func (s *idScanner) scan(part []byte) {
	for _, c := range part {
		if s.inText {
			s.text(c)
			continue
		}
		switch c {
		case '"':
			s.inText = true
			s.key = s.key[:0]
		case '{', '[':
			s.depth++
			s.deepest = max(s.deepest, s.depth)
			s.isKey = s.depth == 1
		case '}', ']':
			s.depth--
			s.isID = s.isID && s.depth > 0
		case ':':
			if s.depth == 1 {
				s.isID = s.isKey && string(s.key) == "id"
				s.isKey = false
			}
		case ',':
			if s.depth == 1 {
				s.isKey, s.isID = true, false
			}
		case ' ', '\t', '\r', '\n':
		default:
			if s.isID && s.depth == 1 && len(s.found) < 20 {
				s.found = append(s.found, c)
			}
		}
	}
}

func (s *idScanner) text(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.inText = false
		return
	}
	if s.isKey && s.depth == 1 && len(s.key) < 4 {
		s.key = append(s.key, c)
	}
}

// id is what was found, if it is one of ours: they are integers.
func (s *idScanner) id() (id jsonrpc.ID) {
	if n, err := strconv.ParseInt(string(s.found), 10, 52); err == nil {
		id, _ = jsonrpc.MakeID(float64(n))
	}
	return id
}
