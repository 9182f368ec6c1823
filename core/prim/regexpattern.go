package prim

import (
	"cmp"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// The bounds of a pattern: with them compiling one takes at most some milliseconds.
const (
	maxPatternBytes = 4096
	maxInstructions = 1000
	// maxClassRunes is for the ends of all the ranges in a pattern's classes.
	maxClassRunes = 50_000
	// maxWideFolds is how many ranges there may be, in a pattern that ignores case,
	// whose letters are folded one by one.
	maxWideFolds = 4
	// maxTables is how many classes of Unicode there may be, each of which is joined with
	// what stands before it.
	maxTables = 64
)

// A pattern is a compiled regular expression. It doesn't change.
type pattern struct {
	code  []instruction
	start uint32
	// names is the groups' names, the whole match's first; named is set where one has any.
	names []string
	named bool
	// literal is what each match begins with, whole where it is all of it.
	literal string
	whole   bool
	// first has the bytes that a match can begin with; nil: any, or none.
	first *[256]bool
	// atStart is set where a match begins at the beginning of the text.
	atStart bool
	// asserts is set where the pattern asks for what is around a place.
	asserts bool
	// states is set where it can be searched by states: see byStates.
	states bool
	// steps is what compiling it takes, whether it was done before or not.
	steps uint64
	size  int // in bytes
	spare sync.Pool
}

// An instruction is one of [syntax.Prog], with what it takes of ASCII; what a search
// reads of it lies together.
type instruction struct {
	op       syntax.InstOp
	out, arg uint32
	ascii    [2]uint64
	*syntax.Inst
}

func (in *instruction) takes(r rune) bool {
	if uint32(r) < utf8.RuneSelf {
		return in.ascii[r>>6]>>(r&63)&1 != 0
	}
	return r >= 0 && in.MatchRunePos(r) >= 0
}

// groups returns how many groups the pattern has, without the whole match.
func (p *pattern) groups() int { return len(p.names) - 1 }

// compiled keeps the patterns that were compiled last: a loop compiles its pattern once.
// What is kept is the same for everybody, as are the steps that it takes.
var compiled = struct {
	sync.Mutex
	of    map[string]*pattern
	order []string
}{of: map[string]*pattern{}}

const (
	maxCompiled     = 128
	maxCompiledSize = 64 << 10
)

// compile returns the pattern that s spells, for the row of that name, and takes the
// steps for it.
func compile(row, s string, m *Meter) (*pattern, *fault.Fault) {
	compiled.Lock()
	p := compiled.of[s]
	compiled.Unlock()
	if p == nil {
		if !m.Spend(uint64(len(s))) {
			return nil, OutOfFuel(m.Left)
		}
		var f *fault.Fault
		if p, f = newPattern(row, s); f != nil {
			return nil, f
		}
		m.look(len(p.code) * 8)
		if p.size <= maxCompiledSize {
			compiled.Lock()
			if compiled.of[s] == nil {
				if len(compiled.order) == maxCompiled {
					delete(compiled.of, compiled.order[0])
					compiled.order = compiled.order[1:]
				}
				compiled.of[s], compiled.order = p, append(compiled.order, s)
			}
			compiled.Unlock()
		}
	} else if !m.Spend(uint64(len(s))) {
		return nil, OutOfFuel(m.Left)
	}
	if !m.Spend(p.steps) {
		return nil, OutOfFuel(m.Left)
	}
	return p, nil
}

func newPattern(row, s string) (*pattern, *fault.Fault) {
	if len(s) > maxPatternBytes {
		return nil, largePattern(row, fmt.Sprintf("a pattern of at most %d bytes", maxPatternBytes), fmt.Sprintf("%d bytes", len(s)))
	}
	if n := wideFolds(s); n > maxWideFolds {
		return nil, largePattern(row, fmt.Sprintf("at most %d ranges of characters beyond ASCII where case is ignored", maxWideFolds), fmt.Sprint(n))
	}
	escapes := strings.ReplaceAll(s, `\\`, "")
	if n := strings.Count(escapes, `\p`) + strings.Count(escapes, `\P`); n > maxTables {
		return nil, largePattern(row, fmt.Sprintf(`at most %d of \p and \P`, maxTables), fmt.Sprint(n))
	}
	re, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, badPattern(row, s, err)
	}
	most := fmt.Sprintf("a pattern of at most %d instructions", maxInstructions)
	// What repeats is written out as often as it may: that is counted before.
	n, runes := measurePattern(re)
	if n > 2*maxInstructions || runes > maxClassRunes {
		return nil, largePattern(row, most, "more")
	}
	names := re.CapNames()
	for i, name := range names {
		if name != "" && slices.Contains(names[:i], name) {
			return nil, badPattern(row, s, &syntax.Error{Code: syntax.ErrInvalidNamedCapture, Expr: "<" + name + ">"})
		}
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, badPattern(row, s, err)
	}
	if len(prog.Inst) > maxInstructions {
		return nil, largePattern(row, most, fmt.Sprintf("%d instructions", len(prog.Inst)))
	}
	p := &pattern{code: make([]instruction, len(prog.Inst)), start: uint32(prog.Start), names: names, size: 512 + 4*runes}
	for _, name := range names {
		p.named = p.named || name != ""
	}
	for i := range prog.Inst {
		in := &p.code[i]
		in.Inst = &prog.Inst[i]
		in.op, in.out, in.arg = in.Op, in.Out, in.Arg
		p.asserts = p.asserts || in.Op == syntax.InstEmptyWidth
		p.steps += 1 + uint64(len(in.Rune))/8
		p.size += 64 + 4*len(in.Rune)
		for r := rune(0); r < utf8.RuneSelf; r++ {
			if len(in.Rune) > 0 && in.MatchRunePos(r) >= 0 {
				in.ascii[r>>6] |= 1 << (r & 63)
			}
		}
	}
	p.literal, p.whole = prog.Prefix()
	p.whole = p.whole && p.groups() == 0 && p.literal != ""
	p.atStart = prog.StartCond()&syntax.EmptyBeginText != 0
	p.findFirst()
	p.states = p.byStates()
	return p, nil
}

// findFirst notes the bytes that a match can begin with.
func (p *pattern) findFirst() {
	var first [256]bool
	seen := make([]bool, len(p.code))
	any := false
	var visit func(pc uint32)
	visit = func(pc uint32) {
		if seen[pc] {
			return
		}
		seen[pc] = true
		switch in := &p.code[pc]; in.Op {
		case syntax.InstFail:
		case syntax.InstMatch:
			any = true
		case syntax.InstAlt, syntax.InstAltMatch:
			visit(in.Out)
			visit(in.Arg)
		case syntax.InstCapture, syntax.InstEmptyWidth, syntax.InstNop:
			visit(in.Out)
		default:
			ascii := in.Op == syntax.InstRune1 && in.Rune[0] < utf8.RuneSelf ||
				in.Op == syntax.InstRune && len(in.Rune) > 1 && in.Rune[len(in.Rune)-1] < utf8.RuneSelf
			for b := range first {
				first[b] = first[b] || b < utf8.RuneSelf && in.takes(rune(b)) || b >= utf8.RuneSelf && !ascii
			}
		}
	}
	visit(p.start)
	if !any {
		p.first = &first
	}
}

// measurePattern bounds how many instructions a pattern has, as far as one can be,
// and how many ends its ranges have.
func measurePattern(re *syntax.Regexp) (n, runes int) {
	const most = 1 << 30
	for _, sub := range re.Sub {
		k, r := measurePattern(sub)
		n, runes = min(n+k, most), min(runes+r, most)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCharClass:
		runes = len(re.Rune)
	case syntax.OpRepeat:
		times := max(re.Min, re.Max, 1)
		n, runes = min((n+1)*times, most), min(runes*times, most)
	}
	return min(n+1, most), runes
}

// wideFolds returns how many ranges beyond ASCII a pattern that ignores case may have:
// each is folded letter by letter.
func wideFolds(s string) int {
	if !strings.Contains(s, "(?") || !strings.Contains(s, "i") {
		return 0
	}
	n := 0
	for i := 1; i+1 < len(s); i++ {
		if s[i] == '-' && (s[i+1] >= utf8.RuneSelf || s[i+1] == '\\') {
			n++
		}
	}
	return n
}

func largePattern(row, expected, got string) *fault.Fault {
	return outOfRange(row+" takes "+expected, expected, got, `Split the pattern, or repeat less in it: {"or":[{"re_match":[S,"[0-9]{3}"]},{"re_match":[S,"[a-z]{3}"]}]}.`)
}

// badPattern returns the fault of what is no regular expression.
func badPattern(row, s string, err error) *fault.Fault {
	f := &fault.Fault{
		Kind: fault.ParseError, Expected: "a regular expression (RE2)", Got: quoted(s),
		Hint: `Write it as in {"re_find":["tel 030 12","[0-9]+ [0-9]+"]}; a backslash stands before a sign that means itself.`,
	}
	var bad *syntax.Error
	if !errors.As(err, &bad) {
		f.Message = fmt.Sprintf("%s: the pattern %s is no regular expression: %v", row, quoted(s), err)
		return f
	}
	at := strings.Index(s, bad.Expr)
	switch bad.Code {
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen:
		at = oddParen(s)
	case syntax.ErrTrailingBackslash:
		at = len(s) - 1
	}
	at = max(at, 0)
	what, hint := string(bad.Code), ""
	switch after := s[at:]; {
	case bad.Code == syntax.ErrInternalError || bad.Code == syntax.ErrLarge || bad.Code == syntax.ErrNestingDepth || bad.Code == syntax.ErrInvalidRepeatSize:
		what = "it repeats or nests too much"
		hint = "Repeat at most 1000 times, {0,1000}, and nest less."
	case strings.HasPrefix(after, "(?=") || strings.HasPrefix(after, "(?!") || strings.HasPrefix(after, "(?<=") || strings.HasPrefix(after, "(?<!"):
		what = "there is no look-ahead and no look-behind"
		hint = `Match what is around as well and take a group: {"re_find_all":["a1 b2","[a-z]([0-9])"]}.`
	case strings.HasPrefix(after, "(?>") || bad.Code == syntax.ErrInvalidRepeatOp:
		what = "there are no possessive or atomic repeats"
		hint = "Write one sign of repetition, such as a+; matching never goes back, so it needs no more."
	case len(after) > 1 && after[0] == '\\' && after[1]-'1' < 9 && bad.Code == syntax.ErrInvalidEscape:
		what = "there are no back-references"
		hint = `Find both parts as groups and compare them: {"re_find":["a=a","(\\w+)=(\\w+)"]}.`
	case bad.Code == syntax.ErrMissingParen, bad.Code == syntax.ErrUnexpectedParen:
		hint = `A parenthesis that means itself has a backslash before it: "\\(".`
	case bad.Code == syntax.ErrMissingBracket:
		hint = `A bracket that means itself has a backslash before it: "\\[".`
	case bad.Code == syntax.ErrMissingRepeatArgument:
		hint = fmt.Sprintf(`A %s that means itself has a backslash before it: "\\%s".`, quoted(bad.Expr), bad.Expr)
	case bad.Code == syntax.ErrInvalidNamedCapture:
		hint = `Write a named group as in {"re_find":["k=v","(?P<key>\\w+)=(?P<value>\\w+)"]}, each name once.`
	}
	f.Message = fmt.Sprintf("%s: at character %d of the pattern %s: %s", row, 1+utf8.RuneCountInString(s[:at]), quoted(s), what)
	f.Expected, f.Hint = cmp.Or(what, f.Expected), cmp.Or(hint, f.Hint)
	f.Expected = "a regular expression (RE2)"
	return f
}

// oddParen finds where the parenthesis stands that has no other half.
func oddParen(s string) int {
	var open []int
	class := -1
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case class >= 0:
			if c == ']' && i > class+1 {
				class = -1
			}
		case c == '[':
			if class = i; strings.HasPrefix(s[i+1:], "^") {
				class++
			}
		case c == '(':
			open = append(open, i)
		case c == ')':
			if len(open) == 0 {
				return i
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return open[len(open)-1]
	}
	return 0
}
