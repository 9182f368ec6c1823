package text

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// The bounds of what [Parse] reads, those of JSON. More is a parse_error.
const (
	// MaxDepth is how deep brackets may be nested, in the text and in the
	// canonical JSON of its term.
	MaxDepth = 10_000
	// MaxSource is how many bytes a source may have, unless Options say otherwise.
	MaxSource = 256 << 10
	// MaxTerms is how many terms it may stand for: without short forms it has fewer.
	MaxTerms = 256 << 10
)

// Options change how a source is read. The zero value is for inline code.
type Options struct {
	// Tool, if not empty, says that this is the code of a tool of that name:
	// continue is refused outside tail position.
	Tool string
	// MaxBytes bounds the source; 0 means MaxSource.
	MaxBytes int
	// Semantics is the version of what programs mean by which the source is read, from 6 on; 0 is
	// the newest.
	Semantics int
	// Older reads the source as before Semantics 6: == is eq, no function sees its own
	// name or is passed the parts of a pair, and names of operations that are new since
	// then may be variables.
	Older bool
	// Turned is the places of patterns [a, b] and (a, b) that are read as the other.
	Turned map[int]bool
	// Inline reads self, in code that is a function and no tool's, as that function.
	Inline bool
	// Late is the places of + and ++ that join lists or strings by what they are given.
	Late map[int]bool
}

// before reports whether the source is read as before a version of what programs mean.
func (r *reader) before(semantics int) bool { return 0 < r.semantics && r.semantics < semantics }

// Parsed is what a source in the text form says.
type Parsed struct {
	Term term.Term
	// Source is what the places in Term refer to, with Form [term.PIF].
	Source *term.Source
	// Notes tell of what is legal but may not be meant, each with its place.
	Notes []string
	// Free is the variables that nothing in the term binds, outside quoted
	// code, in the order of their first use.
	Free []Free
	// Open is the operators < <= > >= + and ++ whose operands are of no known kind by their
	// form, outside of quoted code: read as their rows, until [Settle] is told.
	Open []*term.Prim
	// Twos is the places of the patterns [a, b] or (a, b) in each match that has only one
	// of the two.
	Twos []int
}

// Free is a variable that nothing binds.
type Free struct {
	Name string
	// Off is the place of its first use.
	Off int
	// Near is what the name may be a slip for: a variable in scope there, a
	// primitive or a keyword; empty if nothing is near.
	Near string
}

// Parse reads a term in the text form. The caller must not change src
// afterwards. Faults: parse_error, with Line and Col, and up to four more in
// More; [Caret] shows one in its source.
//
// A name is the variable of that name in scope, else the primitive, else a
// free variable; what to do about free ones is the caller's business.
func Parse(src []byte, o Options) (read *Parsed, f *fault.Fault) {
	if limit := cmp.Or(o.MaxBytes, MaxSource); len(src) > limit {
		return nil, &fault.Fault{
			Kind: fault.ParseError, In: "code",
			Message:  fmt.Sprintf("the code has %d bytes, more than %d", len(src), limit),
			Expected: fmt.Sprintf("at most %d bytes", limit),
			Hint:     "Split it into smaller parts.",
		}
	}
	r := reader{src: string(src), semantics: o.Semantics, older: o.Older, turned: o.Turned, late: o.Late}
	defer func() {
		if p := recover(); p != nil {
			read, f = nil, fault.Newf(fault.Internal, "the reader of code has a defect: %.200v", p).
				Hinted("Report it at https://github.com/mcp-pif/mcp-pif/issues with this code, and write the code in another way.")
			if r.i < len(r.toks) {
				f.In = "code"
				f.Line, f.Col = Position(src, int(r.toks[r.i].off))
			}
		}
	}()
	r.kinds.open = func(t *term.Prim) bool { return r.open[t] }
	if !utf8.ValidString(r.src) {
		r.refuse(display.InvalidAt(r.src), &fault.Fault{Message: "this is not valid UTF-8", Expected: "valid UTF-8", Hint: "Send the text as UTF-8."})
		return nil, r.fault()
	}
	r.toks, r.bad = lexAs(r.src, r.before(14))
	r.readDivisions()
	r.bindWords()
	r.statements()
	r.track()
	if r.noteComments(); len(r.faults) > 0 && r.before(14) {
		return nil, r.fault()
	}
	r.lines = true
	if r.inline = o.Inline && r.isInline(); r.inline {
		r.bind(selfName)
		r.kinds.is(selfName, prim.KindFunction)
	}
	t, ok := r.sequence()
	if ok && r.tok().kind != tokEnd {
		r.afterEnd()
	}
	if ok && r.inline {
		t = ofItself(t)
	}
	if ok && len(r.faults) == 0 {
		r.gives(0, t)
	}
	if len(r.faults) == 0 {
		r.checkRoot(t)
		if prim.Nesting(t, 0, MaxDepth) > MaxDepth {
			r.refuse(0, &fault.Fault{Message: fmt.Sprintf("as JSON, the term is nested more than %d deep", MaxDepth), Expected: fmt.Sprintf("at most %d brackets inside each other", MaxDepth), Hint: deepHint})
		}
		if prim.Terms(t, MaxTerms) > MaxTerms {
			r.refuse(0, &fault.Fault{Message: fmt.Sprintf("written out, the code has more than %d terms", MaxTerms), Expected: "shorter code", Hint: "Name with let what is written again and again; ??, ** and the like stand for many terms each."})
		}
	}
	if len(r.faults) == 0 && o.Tool != "" {
		term.LooseContinues(t, len(r.free), func(k *term.Continue) {
			r.refuse(k.Pos(), &fault.Fault{
				Message:  "continue is not in tail position of the tool's function, so something would still be to do after it",
				Expected: "continue as the last thing the tool's function does",
				Got:      "continue as an operand",
				Hint:     `Make it the whole result of a branch: n => if n <= 0 then "done" else continue(n - 1).`,
			})
		})
	}
	if len(r.faults) > 0 {
		return nil, r.fault()
	}
	return &Parsed{Term: t, Source: &term.Source{Text: src, In: "code", Form: term.PIF}, Notes: r.finishNotes(), Free: r.free, Open: slices.Collect(maps.Keys(r.open)), Twos: r.twos}, nil
}

// Lone gives the name that is all there is in a source, bare or in backquotes,
// and false where there is anything else or the word has a meaning of its own:
// a keyword, a primitive, or True. A lone name is hardly ever a program; a caller may
// take it for a tool's name or for a string.
func Lone(src []byte) (string, bool) {
	s := string(src)
	if !utf8.ValidString(s) || len(s) > MaxSource {
		return "", false
	}
	l := lexer{src: s}
	if !l.next() || l.next() {
		return "", false
	}
	switch t := l.toks[0]; t.kind {
	case tokName:
		name := s[t.off:t.end]
		_, _, ok := prim.Lookup(name)
		return name, !ok && constants[name] == ""
	case tokQuoted:
		name, _, _ := unescape(s[t.off+1 : t.end-1])
		return name, true
	}
	return "", false
}

// checkRoot refuses a record that is surely meant as JSON: code in JSON that
// isn't well-formed may be well-formed as text.
func (r *reader) checkRoot(t term.Term) {
	if _, ok := t.(*term.Record); !ok {
		return
	}
	open := 0 // brackets
	for i := 0; i+1 < len(r.toks); i++ {
		if kind := r.toks[i].kind; kind.opens() {
			open++
		} else if kind.closes() {
			open--
		}
		if r.toks[i].kind != tokString || r.toks[i+1].kind != tokColon || i > 0 && r.toks[i-1].kind == tokAsk || open != 1 {
			continue
		}
		name := r.text(r.toks[i])
		if _, row, ok := prim.Lookup(name); ok {
			r.refuse(int(r.toks[i].off), &fault.Fault{
				Message:  fmt.Sprintf("this is not well-formed JSON, and in the text form it would be a record with the key %q", name),
				Expected: "a program in JSON as a whole, or in the text form as a whole",
				Got:      fmt.Sprintf("the operation %q among other text", name),
				Hint:     fmt.Sprintf("Write JSON without comments and without commas before a closing bracket; for a record write its key without quotes: {%s: …}. In the text form the operation is %s.", name, Shape(row)),
			})
			return
		}
	}
}
