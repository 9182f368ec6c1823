// Package parse reads JSON to terms.
//
// It has a JSON reader of its own, since PIF's JSON is stricter and more exact
// than encoding/json's: numbers keep their text until they are integers of any
// size, duplicate keys, lone surrogates and invalid UTF-8 are refused, and
// bytes, nesting ([MaxDepth]), digits ([MaxDigits]) and values are bounded. A
// source is scanned once to a tape of nodes (scan.go); terms are built from
// the tape (build.go), because which key of an object is its operation is
// known only when all keys are.
//
// [Code] reads programs. [Input] reads a run's input: as data (build.go), as a
// term after the predecessor's normalisation (normal.go), or as a term. A number
// with a point or an exponent is an exact decimal; only the last two round it.
// A failure is a fault of kind parse_error that names up to five places, each
// with what stands there, what was expected and a correct term. What is legal
// but probably not meant (a rounded number, an ignored key) becomes a note.
//
// A term's place is its byte offset; [At] and [LocateAll] turn it into a JSON
// Pointer when a fault needs one.
package parse

import (
	"cmp"
	"fmt"
	"strconv"
	"sync"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// The bounds of what is read. More is a parse_error.
const (
	// MaxDepth is how deep arrays and objects may be nested.
	MaxDepth = 10_000
	// MaxDigits is how many digits a number may have, written out.
	MaxDigits = 4096
	// MaxCode is how many bytes code may have, unless Options say otherwise.
	MaxCode = 256 << 10
	// MaxInput is how many bytes an input may have.
	MaxInput = 16 << 20
	// MaxValues is how many values and keys a source may hold.
	MaxValues = 2_000_000
)

// Options change how code is read. The zero value is for inline code.
type Options struct {
	// Tool, if not empty, says that this is the code of a tool of that name:
	// continue is refused outside tail position.
	Tool string
	// MaxBytes bounds the source; 0 means MaxCode.
	MaxBytes int
	// Round rounds a number with a point or an exponent to an integer, as code was
	// read before Semantics 5.
	Round bool
	// Older reads a let as before Semantics 6, when no function saw its own name.
	Older bool
}

// Parsed is what a source says.
type Parsed struct {
	Term term.Term
	// Source is what the places in Term refer to: the text as given, or for a
	// normalised input the JSON it was read as.
	Source *term.Source
	// Notes tell of what was read otherwise than it may have been meant, in
	// the order of the source, each with its place.
	Notes []string
}

// Mode says how an input is read.
type Mode uint8

// The modes of [Input].
const (
	// Data evaluates nothing: JSON as it is, with the shapes of results
	// ({"pair":[a,b]}, {"dec":"…"}, {"int":"…"}, {"record":{…}}) read back.
	Data Mode = iota
	// Auto reads as the predecessor did: it normalises strings, reads a term in
	// which an object without an operation is a record, and rounds numbers to
	// integers.
	Auto
	// Term reads a term, as [Code] does, but rounds numbers to integers.
	Term
	// Rounded is Data with numbers rounded to integers, as before Semantics 5.
	Rounded
)

// Code reads a program. The caller must not change src afterwards. Faults:
// parse_error.
func Code(src []byte, o Options) (*Parsed, *fault.Fault) { return onHeap(ReadCode(src, o)) }

func onHeap(p Parsed, f *fault.Fault) (*Parsed, *fault.Fault) {
	if f != nil {
		return nil, f
	}
	return &p, nil
}

// ReadCode is [Code] without an allocation for what it returns.
func ReadCode(src []byte, o Options) (Parsed, *fault.Fault) {
	limit := cmp.Or(o.MaxBytes, MaxCode)
	if len(src) > limit {
		return Parsed{}, tooLarge(len(src), limit, "code")
	}
	b := builders.Get().(*builder)
	defer b.release()
	b.in, b.rounds, b.older = "code", o.Round, o.Older
	p, f := b.parse(src, code)
	if f == nil && o.Tool != "" {
		if f = b.checkContinue(p.Term); f != nil {
			return Parsed{}, f
		}
	}
	return p, f
}

// Input reads a run's input; an empty one is null. The caller must not change
// src afterwards. Faults: parse_error, with In "input".
func Input(src []byte, mode Mode) (*Parsed, *fault.Fault) { return onHeap(ReadInput(nil, src, mode)) }

// ReadInput is [Input] without an allocation for what it returns. What that refers to may be in the room, which is
// zero, or nil.
func ReadInput(room *Room, src []byte, mode Mode) (Parsed, *fault.Fault) {
	if len(src) > MaxInput {
		return Parsed{}, tooLarge(len(src), MaxInput, "input")
	}
	if n, ok := short(src); ok {
		if room == nil {
			room = new(Room)
		}
		room.ints[0].Value = n
		room.source = term.Source{Text: src, In: "input"}
		return Parsed{&room.ints[0], &room.source, nil}, nil
	}
	b := builders.Get().(*builder)
	defer b.release()
	if len(src) == 0 {
		src = []byte("null")
	}
	b.in, b.room = "input", room
	b.rounds = mode != Data
	switch mode {
	case Term:
		return b.parse(src, strict)
	case Data, Rounded:
		return b.parse(src, data)
	}
	if f := b.read(src); f != nil {
		return Parsed{}, f
	}
	text, note := b.normalise()
	if note == "" {
		return b.build(src, lenient)
	}
	if len(text) > MaxInput {
		return Parsed{}, tooLarge(len(text), MaxInput, "input")
	}
	p, f := b.parse(text, lenient)
	if f == nil {
		p.Notes = append([]string{note}, p.Notes...)
	}
	return p, f
}

// short reads an integer of up to 18 digits that is all there is.
func short(src []byte) (n int64, ok bool) {
	digits := src
	if len(src) > 0 && src[0] == '-' {
		digits = src[1:]
	}
	if len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && len(src) > 1 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(src) {
		n = -n
	}
	return n, true
}

var builders = sync.Pool{New: func() any { return new(builder) }}

// keep is how many nodes a scanner may keep for its next use.
const keep = 1 << 16

func (b *builder) release() {
	nodes := b.nodes[:0]
	if cap(nodes) > keep {
		nodes = nil
	}
	*b = builder{}
	b.nodes = nodes
	builders.Put(b)
}

func tooLarge(n, limit int, in string) *fault.Fault {
	return &fault.Fault{
		Kind: fault.ParseError, In: in,
		Message:  "the " + in + " has " + strconv.Itoa(n) + " bytes, more than " + strconv.Itoa(limit),
		Expected: "at most " + strconv.Itoa(limit) + " bytes",
		Hint:     "Split it into smaller parts.",
	}
}

// parse reads src to a term in the given dialect.
func (b *builder) parse(src []byte, d dialect) (Parsed, *fault.Fault) {
	if f := b.read(src); f != nil {
		return Parsed{}, f
	}
	return b.build(src, d)
}

// read scans src to the tape.
func (b *builder) read(src []byte) *fault.Fault {
	b.reset(string(src))
	b.reserve()
	if bad := b.scan(0, MaxValues); bad != nil {
		return b.syntaxFault(bad)
	}
	return nil
}

// checkContinue refuses every continue of a tool's code that is not in tail position.
func (b *builder) checkContinue(t term.Term) *fault.Fault {
	free := 0
	if _, ok := t.(*term.Lam); !ok {
		free = len(Free(t))
	}
	term.LooseContinues(t, free, func(k *term.Continue) {
		i, ok := b.find(k.Pos())
		if !ok {
			return
		}
		b.refuse(i, &fault.Fault{
			Message:  "continue is not in tail position of the tool's function, so something would still be to do after it",
			Expected: "continue as the last thing the tool's function does",
			Hint:     `Make it the whole result of a branch: {"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},0]},"then":"done","else":{"continue":{"input":{"sub":[{"var":"n"},1]}}}}}}.`,
		})
	})
	if len(b.faults) == 0 {
		return nil
	}
	return b.fault()
}

// build makes the term of the tape, which is that of src.
func (b *builder) build(src []byte, d dialect) (Parsed, *fault.Fault) {
	for _, k := range b.dups {
		b.duplicate(k)
	}
	source := b.start()
	if d != data {
		b.track()
	}
	t := b.term(0, d)
	if b.spread && prim.Nesting(t, 0, MaxDepth) > MaxDepth {
		b.refuse(0, &fault.Fault{
			Message:  fmt.Sprintf("written out, the term is nested more than %d deep", MaxDepth),
			Expected: reasons[tooDeep].expected,
			Hint:     reasons[tooDeep].hint,
		})
	}
	if len(b.faults) > 0 {
		return Parsed{}, b.fault()
	}
	source.Text, source.In = src, b.in
	return Parsed{t, source, b.finishNotes()}, nil
}

// Free returns what [term.Free] does.
func Free(t term.Term) []string { return term.Free(t) }
