package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/internal/jsonvalue"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A frame is one line that a server wrote.
type frame struct {
	line []byte // nil: it has more bytes than were allowed
	size int64
	id   jsonrpc.ID // of the message, as far as it can be seen without parsing
	// isHuge is set if it is nested deeper, or made of more values, than any parser should follow.
	isHuge bool
	noRoom error // why it isn't kept
}

// maxDepth is how deep a message may be nested: more than a value in it may be.
const maxDepth = jsonvalue.Deepest + 20

// maxValues is how many values a message may be made of: as many as what is made of it may have. A parser takes
// over a hundred bytes for each.
const maxValues = 1_000_000

func (s *idScanner) isHuge() bool { return s.deepest > maxDepth || s.values > maxValues }

// isHuge reports whether a message is nested deeper, or made of more values.
func isHuge(text []byte) bool {
	var s idScanner
	s.scan(text)
	return s.isHuge()
}

// readFrame reads one line of at most the bytes that most gives; of a longer one it reads
// on to the end and keeps nothing but the identifier, as it does where room, which waits for room for so many, fails.
func readFrame(r *bufio.Reader, most func() int64, room func(jsonrpc.ID, int64) error) (f frame, err error) {
	var ids idScanner
	limit, kept, may := int64(-1), []byte{}, int64(maxOwn/16)
	for {
		part, err := r.ReadSlice('\n')
		if limit < 0 { // what may come is asked when it comes, not when the wait for it began
			limit = most()
		}
		f.size += int64(len(part))
		ids.scan(part)
		switch {
		case f.size > limit:
			kept = nil
		case kept != nil && f.size > may:
			if may = 2 * f.size; room != nil {
				f.noRoom = room(ids.id(), may)
			}
			if f.noRoom != nil {
				kept = nil
				break
			}
			fallthrough
		case kept != nil:
			kept = append(kept, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		f.id, f.isHuge = ids.id(), ids.isHuge()
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
	values          int // about: what opens or separates them
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
			s.values++
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
			s.values++
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

// An event is one of a stream of server-sent events (WHATWG HTML, section 9.2).
type event struct {
	id    string
	retry time.Duration
	name  string
	data  []byte
	// noRoom is why the data aren't kept; answers is the identifier in them, as far as it can be seen.
	noRoom  error
	answers jsonrpc.ID
}

// maxField is the bytes of a field that isn't data.
const maxField = 1 << 10

// readEvent reads the next event of at most so many bytes; errTooLarge if it has more. room, where not nil, waits for room for
// so many bytes of one; where it fails the data aren't kept.
func readEvent(r *bufio.Reader, most int64, room func(int64) error) (e event, err error) {
	size, may := int64(0), int64(maxOwn/16)
	var ids idScanner
	for {
		var line []byte
		for isWhole, isData := false, false; !isWhole; {
			part, err := r.ReadSlice('\n')
			if isWhole = err == nil; err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return e, err
			}
			if size += int64(len(part)); size > most+maxField {
				return e, errTooLarge
			}
			text, begins := bytes.CutPrefix(part, []byte("data:"))
			if isData = isData || line == nil && begins; isData {
				ids.scan(text)
			}
			if size > may && room != nil && e.noRoom == nil {
				may = 2 * size
				e.noRoom = room(may)
			}
			if line = append(line, part...); e.noRoom != nil { // the beginning says which field it is
				line, e.data = bytes.Clone(line[:min(len(line), 2*maxField)]), nil
			}
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			if e.data != nil || e.id != "" || e.retry != 0 || e.noRoom != nil {
				e.data, e.answers = bytes.TrimSuffix(e.data, []byte("\n")), ids.id()
				return e, nil
			}
			size, may = 0, maxOwn/16
			continue
		}
		name, text, _ := bytes.Cut(line, []byte(":"))
		text = bytes.TrimPrefix(text, []byte(" "))
		if string(name) == "data" {
			if e.noRoom != nil {
				continue
			}
			if e.data == nil {
				e.data = text[:0] // the line is nobody else's
			}
			e.data = append(append(e.data, text...), '\n')
			continue
		}
		if len(text) > maxField {
			return e, errTooLarge
		}
		switch string(name) {
		case "event":
			e.name = string(text)
		case "id":
			e.id = string(text)
		case "retry":
			if n, err := strconv.ParseUint(string(text), 10, 31); err == nil {
				e.retry = time.Duration(n) * time.Millisecond
			}
		}
	}
}
