// Package step walks through a run forwards and backwards.
//
// Nothing of a run is kept but what it depends on: its rounds, each a program with
// its input, its budgets and whatever answers its requests. A [Walk] evaluates that
// anew on the reference evaluator as often as somebody looks at another part of it.
// Since a run's steps, requests and values are the same each time, a point is named
// by its number: the evaluations of terms, the effects, the faults and the ends of
// rounds, in the order in which they come about.
//
// A pass takes about a tenth of a second for a million steps. It keeps the points of
// a window around the one that was asked for, so that going on from there takes no
// pass. The pass of [Walk.Summary] notes of each block of points what they may be: a
// point that is looked for is then found in one more pass, which makes those of one
// block. Values are of the evaluator and as large as the run made them; what
// [Point.View] shows of them is bounded.
//
// What is evaluated acts on nothing: whoever walks through a recorded run answers
// its requests from the record.
package step

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Round is one evaluation of a run that has several where it goes on with
// continuations.
type Round struct {
	Program *core.Program
	Input   core.Input
	Budgets core.Budgets
	// Before is the steps of the rounds before.
	Before uint64
	// Begin returns what the round sees of other tools, and what answers its
	// requests. It is called for each pass, and gives the same each time. nil:
	// there are no tools and every effect is denied.
	Begin func() (core.Tools, func([]core.Request) []core.Answer)
	// Ended, if it isn't nil, is how the round ended after so many Steps of its own
	// for a reason that isn't its program's, such as the clock's.
	Ended *fault.Fault
	Steps uint64
}

// Kind is what a [Point] is.
type Kind string

// The kinds of points.
const (
	Eval   Kind = "eval"   // a term is about to be evaluated
	Effect Kind = "effect" // an effect was asked for and has its outcome
	Fault  Kind = "fault"  // an evaluation failed, which try may catch
	End    Kind = "end"    // the round has its result
	Limit  Kind = "limit"  // the walk ends before the run, or before it is known how that ends
)

// MaxPoints is how many points a walk goes through at most unless [New] is told otherwise.
const MaxPoints = 5_000_000

// window is how many points are kept on each side of the one that was asked for.
const window = 256

// blockPoints is how many points a block has.
const blockPoints = 4096

// ahead is how many points past the window a pass looks for the values of those in it.
const ahead = 100_000

// A Walk is a run to walk through. Its methods may be called concurrently; one at a
// time does something.
type Walk struct {
	rounds []Round
	max    uint64

	mu     sync.Mutex
	kept   []Point // neighbours, the window
	sum    *Summary
	blocks []block // all of them, with the summary
}

// A block is what is known of [blockPoints] points.
type block struct {
	steps    uint64 // at the first
	kinds    uint8  // that some have, a bit each
	lines    uint64 // that some come to, by bits modulo 64
	level    int    // the lowest
	depth    int    // the least of their frames
	branched bool   // some are in a branch of par, or at an end
}

// bit is that of a kind in a block.
func (k Kind) bit() uint8 {
	switch k {
	case Eval:
		return 1
	case Effect:
		return 2
	case Fault:
		return 4
	}
	return 8
}

// A summary is one in the making.
type summary struct {
	*Summary
	blocks []block
}

// add notes a point, whether it is made or not.
func (s *summary) add(n uint64, kind Kind, steps uint64, l *level, scene *core.TraceEvent, moved bool) {
	s.Points, s.Steps = n+1, steps
	if n%blockPoints == 0 {
		s.blocks = append(s.blocks, block{steps: steps, level: scene.Level, depth: l.frame.depth()})
	}
	b := &s.blocks[len(s.blocks)-1]
	b.kinds |= kind.bit()
	if moved {
		b.lines |= 1 << (uint(l.line) % 64)
	}
	b.level, b.depth = min(b.level, scene.Level), min(b.depth, l.frame.depth())
	b.branched = b.branched || scene.Term == nil || scene.Branch() != 0
	switch {
	case kind == Effect && len(s.Effects) < maxMarks:
		s.Effects = append(s.Effects, n)
	case kind == Fault && len(s.Faults) < maxMarks:
		s.Faults = append(s.Faults, n)
	case kind == Limit:
		s.Whole = false
	}
}

// New returns a walk through rounds, of at most max points; 0: [MaxPoints].
func New(rounds []Round, max uint64) *Walk {
	max = cmp.Or(max, MaxPoints)
	return &Walk{rounds: rounds, max: max}
}

// ErrNoPoint is the error where a run has no point of that number, or none that is
// looked for.
var ErrNoPoint = errors.New("the run has no such point")

// At returns the point of a number.
func (w *Walk) At(ctx context.Context, n uint64) (*Point, error) {
	return w.find(ctx, Wanted{is: func(p *Point) bool { return p.N == n }}, n, false)
}

// Near returns the last point that is at most so many steps into the run.
func (w *Walk) Near(ctx context.Context, steps uint64) (*Point, error) {
	return w.find(ctx, Wanted{func(p *Point) bool { return p.Steps <= steps }, func(b *block) bool { return b.steps <= steps }}, 1<<63, true)
}

// Window returns the points kept around the point of a number, at most so many on each
// side.
func (w *Walk) Window(ctx context.Context, n uint64, around int) ([]Point, error) {
	p, err := w.At(ctx, n)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.kept, func(q Point) bool { return q.N == p.N })
	if i < 0 {
		return []Point{*p}, nil // another one has looked elsewhere meanwhile
	}
	return slices.Clone(w.kept[max(0, i-around):min(len(w.kept), i+around+1)]), nil
}

// Next returns the first point behind one that is wanted.
func (w *Walk) Next(ctx context.Context, from uint64, wanted Wanted) (*Point, error) {
	return w.find(ctx, wanted, from+1, false)
}

// Previous returns the last point before one that is wanted.
func (w *Walk) Previous(ctx context.Context, from uint64, wanted Wanted) (*Point, error) {
	return w.find(ctx, wanted, from, true)
}

// Each calls visit for each point, in one pass, until it returns false. What an evaluation
// comes to isn't known then.
func (w *Walk) Each(ctx context.Context, visit func(*Point) bool) error {
	return w.newPass(ctx).run(visit)
}

// find looks for the first point that is wanted from the point of a number on, or for
// the last one before it: in the window, and else by a pass.
func (w *Walk) find(ctx context.Context, wanted Wanted, from uint64, back bool) (*Point, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.kept); n > 0 {
		first, last := w.kept[0].N, w.kept[n-1].N
		switch {
		case back && from > first && from <= last+1:
			for i := n - 1; i >= 0; i-- {
				if p := w.kept[i]; p.N < from && wanted.is(&p) {
					return &p, nil
				}
			}
			from = first
		case !back && from >= first && from <= last+1:
			for _, p := range w.kept {
				if p.N >= from && wanted.is(&p) {
					return &p, nil
				}
			}
			from = last + 1
		}
	}
	if !back {
		if w.sum != nil {
			b := int(min(from/blockPoints, uint64(len(w.blocks))))
			for ; b < len(w.blocks) && !wanted.maybe(&w.blocks[b]); b++ {
			}
			if b == len(w.blocks) {
				return nil, ErrNoPoint
			}
			from = max(from, uint64(b)*blockPoints)
		}
		return w.firstFrom(ctx, wanted, from)
	}
	if w.sum != nil {
		from = min(from, w.sum.Points)
		b := int((from + blockPoints - 1) / blockPoints)
		for b--; b >= 0 && !wanted.maybe(&w.blocks[b]); b-- {
		}
		if b < 0 {
			return nil, ErrNoPoint
		}
		first := uint64(b) * blockPoints
		if p, err := w.lastWithin(ctx, wanted, first, min(from, first+blockPoints)); p != nil || err != nil {
			return p, err
		}
		from = first // none of that block's is it
	}
	n, err := w.lastBefore(ctx, wanted, from)
	if err != nil {
		return nil, err
	}
	return w.firstFrom(ctx, Any, n)
}

// lastWithin makes a pass that finds the last wanted point between two, and keeps the window around it; nil:
// there is none.
func (w *Walk) lastWithin(ctx context.Context, wanted Wanted, first, before uint64) (*Point, error) {
	var points []Point
	found, looked := -1, false
	p := w.newPass(ctx)
	p.from = first - min(first, window)
	look := func() {
		looked = true
		for i := range points {
			if q := &points[i]; q.N >= first && q.N < before && wanted.is(q) {
				found = i
			}
		}
		if found >= 0 {
			points = points[max(0, found-window):min(len(points), found+window+1)]
			found = min(found, window)
			for i := range points {
				p.awaits(points[i].ending)
			}
		}
	}
	err := p.run(func(q *Point) bool {
		if !looked {
			if points = append(points, *q); q.N+1 >= before+window {
				look()
			}
		}
		return !looked || p.awaited > 0 && q.N < before+window+ahead
	})
	if err != nil {
		return nil, err
	}
	if !looked {
		look()
	}
	if found < 0 {
		return nil, nil
	}
	w.kept = slices.Clone(points)
	q := w.kept[found]
	return &q, nil
}

// firstFrom makes a pass to the first wanted point from the point of a number on, and
// keeps the window around it. It goes on for a while, to know their values.
func (w *Walk) firstFrom(ctx context.Context, wanted Wanted, from uint64) (*Point, error) {
	var kept []Point
	found, stop := -1, uint64(0)
	p := w.newPass(ctx)
	p.from = from - min(from, 2*window)
	err := p.run(func(q *Point) bool {
		switch {
		case found < 0:
			if len(kept) == 2*window {
				kept = append(kept[:0], kept[window:]...)
			}
			kept = append(kept, *q)
			if q.N < from || !wanted.is(q) {
				return true
			}
			found, stop = len(kept)-1, q.N+window+ahead
			for _, of := range kept {
				p.awaits(of.ending)
			}
		case len(kept) <= found+window:
			kept = append(kept, *q)
			p.awaits(q.ending)
		}
		return len(kept) <= found+window || p.awaited > 0 && q.N < stop
	})
	if err != nil {
		return nil, err
	}
	if found < 0 {
		return nil, ErrNoPoint
	}
	w.kept = kept
	q := kept[found]
	return &q, nil
}

// lastBefore makes a pass that finds the number of the last wanted point before one.
func (w *Walk) lastBefore(ctx context.Context, wanted Wanted, before uint64) (n uint64, err error) {
	err = ErrNoPoint
	failed := w.newPass(ctx).run(func(q *Point) bool {
		if q.N >= before {
			return false
		}
		if wanted.is(q) {
			n, err = q.N, nil
		}
		return true
	})
	if failed != nil {
		err = failed
	}
	return n, err
}

// Summary is what a pass through all of a run tells.
type Summary struct {
	Points  uint64 // of all kinds
	Steps   uint64
	Effects []uint64 // the points at which there are some, at most maxMarks
	Faults  []uint64
	Profile *Profile
	// Whole is false where the run may go on past [MaxPoints], or past what the reference
	// evaluator may allocate for it.
	Whole bool
}

// maxMarks is how many effects and faults are told of each.
const maxMarks = 1000

// Summary makes a pass through the whole run, once.
func (w *Walk) Summary(ctx context.Context) (*Summary, error) { return w.SummaryAt(ctx, 0) }

// SummaryAt is [Walk.Summary]; where it makes its pass, that keeps the window around the point of a number, too.
func (w *Walk) SummaryAt(ctx context.Context, n uint64) (*Summary, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sum != nil {
		return w.sum, nil
	}
	root := &Node{}
	s := &summary{Summary: &Summary{Profile: &Profile{Root: root, at: root, nodes: 1}, Whole: true}}
	p := w.newPass(ctx)
	p.profile, p.sum, p.from, p.to = s.Profile, s, n-min(n, window), n+window+1
	var kept []Point
	err := p.run(func(q *Point) bool {
		if q.N >= p.from && q.N < p.to {
			kept = append(kept, *q)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	w.sum, w.blocks, w.kept = s.Summary, s.blocks, kept
	return w.sum, nil
}

// A Request is what an effect asked for, and what it was given.
type Request struct {
	core.Request
	Answer core.Answer
}

// A Point is a moment of a run. It may be kept; its values must not be changed.
type Point struct {
	N     uint64 // from 0
	Kind  Kind
	Round int    // from 0
	Steps uint64 // used up to then, over all rounds
	// Request is that of an effect.
	Request *Request
	// Result is what a round gave, at its end, where it didn't fail.
	Result core.Encoded

	scene  core.TraceEvent // the evaluation that it's about
	some   bool            // there is one, which isn't so at an end
	frame  *frame
	line   int
	moved  bool // into another line or another frame
	ending *ending
}

// An ending is what became of an evaluation; it is shared by the points that it has.
type ending struct {
	known   bool
	awaited bool
	value   value.Value // nil where it failed, or was abandoned
	fault   *fault.Fault
}

// Value is what comes of the evaluation: a value or a fault, or neither where that
// isn't known yet, which is so far ahead, or where it comes to no end.
func (p *Point) Value() (value.Value, *fault.Fault) { return p.ending.value, p.ending.fault }

// Wanted is a point that is looked for.
type Wanted struct {
	is  func(*Point) bool
	may func(*block) bool // whether a block may have one; nil: any may
}

func (w *Wanted) maybe(b *block) bool { return w.may == nil || w.may(b) }

// Where is a point of which something is so.
func Where(is func(*Point) bool) Wanted { return Wanted{is: is} }

// Failed is an evaluation that fails, Acted an effect that has its outcome, Any any point.
var Failed, Acted, Any = OfKind(Fault), OfKind(Effect), Where(func(*Point) bool { return true })

// OfKind is a point of a kind.
func OfKind(k Kind) Wanted {
	return Wanted{func(p *Point) bool { return p.Kind == k }, func(b *block) bool { return b.kinds&k.bit() != 0 }}
}

// Or is what one of several is.
func Or(all ...Wanted) Wanted {
	return Wanted{
		func(p *Point) bool { return slices.ContainsFunc(all, func(w Wanted) bool { return w.is(p) }) },
		func(b *block) bool { return slices.ContainsFunc(all, func(w Wanted) bool { return w.maybe(b) }) },
	}
}

// Over is where the run is beyond the term of p, in the same function or after it has returned.
func Over(p *Point) Wanted {
	path := p.path()
	return Wanted{func(q *Point) bool {
		if q.last(p) {
			return true
		}
		if at := q.path(); at != path {
			return strings.HasPrefix(path, at) && p.frame.in(q.frame)
		}
		return q.scene.Level <= p.scene.Level && p.frame.in(q.frame)
	}, func(b *block) bool { return b.branched || b.level <= p.scene.Level }}
}

// Out is where the function that p is in has returned.
func Out(p *Point) Wanted {
	return Wanted{func(q *Point) bool { return q.last(p) || !q.frame.in(p.frame) },
		func(b *block) bool { return b.branched || b.depth <= p.frame.depth() }}
}

// last reports whether the round of a point before is over.
func (p *Point) last(before *Point) bool { return !p.some || p.Round != before.Round }

func (p *Point) path() string {
	if !p.some {
		return ""
	}
	path, _ := p.scene.Path()
	return path
}

// Line is where the run comes to a line of a document, "" of any.
func Line(in string, line int) Wanted {
	return Wanted{func(p *Point) bool {
		return p.Kind == Eval && p.moved && p.line == line && (in == "" || in == p.scene.In())
	}, func(b *block) bool { return b.lines&(1<<(uint(line)%64)) != 0 }}
}
