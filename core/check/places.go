package check

import (
	"cmp"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// report says what was found.
func (c *checker) report() *Report {
	r := &Report{Type: Dynamic, Steps: min(c.steps+c.took, c.limit), Open: c.over && mayAsk(c.root), Params: term.Params(c.root)}
	if !c.over {
		r.Type = c.mainType()
		if c.oneKind != nil {
			r.Reads = c.oneKind.mainType()
		}
	} else if len(r.Params) > 0 {
		r.Type = Function(Dynamic, Dynamic, Row{Open: r.Open})
	}
	told := &advice{}
	if !c.over && (len(c.failed) > 0 || c.env.Tool != "") {
		told = c.newAdvice()
	}
	if !c.over {
		if at, said := c.rounded(); said != "" {
			told.pos, told.notes = append(told.pos, at), append(told.notes, Note{Message: said})
		}
		found := datesIn(c.root, c.src)
		for i, said := range found.notes {
			told.pos, told.notes = append(told.pos, found.pos[i]), append(told.notes, Note{Message: said})
		}
	}
	places := newPlaces(c, told.pos)
	guarded := c.guarded()
	var applied map[int]bool
	for _, x := range c.failed {
		place, f := places.of(x.pos), *x.f
		if x.name != "" {
			if applied == nil {
				applied = term.Applied(c.root)
			}
			if applied[x.pos] {
				prim.Applied(&f, x.name)
			}
		}
		c.blame(&f, x, told.at[x.pos])
		if told.isText {
			prim.NamePattern(&f, c.src.Text, x.pos)
		}
		if hint := told.hint(x); hint != "" {
			f.Hint = hint
		}
		r.Diagnostics = append(r.Diagnostics, Diagnostic{
			Kind: f.Kind, Place: place, Message: f.Message, Expected: f.Expected, Got: f.Got, Hint: f.Hint,
			Guarded: guarded[x.pos],
		})
	}
	slices.SortStableFunc(r.Diagnostics, func(a, b Diagnostic) int { return a.compare(b.Place) })
	for _, u := range c.found {
		r.Dynamic = append(r.Dynamic, Unknown{Place: places.of(u.pos), Reason: u.reason, Message: u.message})
	}
	slices.SortStableFunc(r.Dynamic, func(a, b Unknown) int { return cmp.Or(a.compare(b.Place), cmp.Compare(a.Reason, b.Reason)) })
	for _, x := range c.remarked {
		if x.stands() && !told.excused[x.pos] {
			r.Notes = append(r.Notes, Note{places.of(x.pos), x.message})
		}
	}
	for i, n := range told.notes {
		r.Notes = append(r.Notes, Note{places.of(told.pos[i]), n.Message})
	}
	slices.SortStableFunc(r.Notes, func(a, b Note) int { return a.compare(b.Place) })
	c.reportEffects(r, places)
	r.Typed = r.Sound()
	return r
}

// mayAsk reports whether a term has anything in it that asks for an operation.
func mayAsk(t term.Term) (asks bool) {
	switch t := t.(type) {
	case *term.Effect:
		return true
	case *term.Prim:
		asks = t.ID == prim.Call || t.ID == prim.Eval
	}
	term.Children(t, func(c term.Term) bool {
		asks = asks || mayAsk(c)
		return !asks
	})
	return asks
}

// blame makes a failure in what a row of the library means one of the row, as a fault at
// run time is.
func (c *checker) blame(f *fault.Fault, x *failure, use term.Term) {
	t, ok := use.(*term.Prim)
	if !ok || x.test == nil || x.test.t == use || c.expanded[t] == nil {
		return
	}
	var uses prim.Uses
	var find func(ours, placed term.Term) (pos int)
	find = func(ours, placed term.Term) (pos int) {
		if ours == x.test.t {
			return placed.Pos()
		}
		if p, ok := ours.(*term.Prim); ok && c.expanded[p] != nil {
			if pos = find(c.expanded[p], uses.Expand(placed.(*term.Prim))); pos < 0 {
				return pos
			}
		}
		all, i := operandsOf(placed), 0
		term.Children(ours, func(child term.Term) bool {
			if i < len(all) {
				pos = find(child, all[i])
			}
			i++
			return pos >= 0
		})
		return pos
	}
	if pos := find(c.expanded[t], uses.Expand(t)); pos < 0 {
		uses.Blame(f, pos)
	}
}

// compare orders places as they stand in the source; what has none comes last.
func (p Place) compare(q Place) int {
	return cmp.Or(cmp.Compare(uint(p.Line-1), uint(q.Line-1)), cmp.Compare(p.Col, q.Col), cmp.Compare(p.At, q.At))
}

func (c *checker) reportEffects(r *Report, places *places) {
	for _, s := range c.effects.lower {
		a := s.atom
		if a == nil {
			continue
		}
		e := Effect{Op: a.op, In: a.in, Place: places.of(a.pos), Via: a.via, With: a.with, Inert: a.inert || !permits(a.with, a.op)}
		r.Open = r.Open || a.op == "*" && a.via == "" && len(a.with) == 0
		r.Effects = append(r.Effects, e)
	}
	slices.SortStableFunc(r.Effects, func(a, b Effect) int {
		return cmp.Or(a.compare(b.Place), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Via, b.Via))
	})
}

// places turns offsets into words, with one reading of the source.
type places struct {
	known map[int]Place
}

func newPlaces(c *checker, noted []int) *places {
	p := &places{known: map[int]Place{}}
	if c.src == nil {
		return p
	}
	var failed, found, asked []int
	noted = slices.Clone(noted)
	for _, x := range c.remarked {
		noted = append(noted, x.pos)
	}
	for _, x := range c.failed {
		failed = append(failed, x.pos)
	}
	for _, u := range c.found {
		found = append(found, u.pos)
	}
	for _, s := range c.effects.lower {
		if s.atom != nil {
			asked = append(asked, s.atom.pos)
		}
	}
	at := slices.Concat(c.first(failed), c.first(found), c.first(asked), c.first(noted))
	if len(at) == 0 {
		return p
	}
	slices.Sort(at)
	at = slices.Compact(at)
	for i, place := range Locate(c.src, c.root, at) {
		p.known[at[i]] = place
	}
	return p
}

// Locate returns the places of terms of the code root, of which at is the offsets in
// ascending order.
func Locate(src *term.Source, root term.Term, at []int) []Place {
	all := make([]Place, len(at))
	lines := text.Lines(src.Text)
	for i, pointer := range parse.LocateAll(src, root.Pos(), at) {
		line, col := lines.Position(at[i])
		all[i] = Place{pointer, line, col}
	}
	return all
}

// first is those of some offsets whose places are told.
func (c *checker) first(at []int) []int {
	if c.places == 0 || len(at) <= c.places {
		return at
	}
	slices.Sort(at)
	at = slices.Compact(at)
	return at[:min(len(at), c.places)]
}

func (p *places) of(pos int) Place { return p.known[pos] }

// Type is the type of what a term gives, in whatever evaluation; nil for one that
// is never evaluated, as far as is known.
func (d *Derivation) Type(t term.Term) *Type {
	v := d.c.nodes[t]
	if v == nil || d.c.over {
		return nil
	}
	// Terms often have one variable.
	typ, ok := d.types[v]
	switch {
	case ok:
	case d.parts > min(maxDerived, d.c.limit):
		typ = Dynamic
	default:
		show := d.c.buildTypes(true)
		typ = show.finish(show.given(v))
		d.types[v] = typ
		d.parts += show.parts
	}
	return typ
}

// Shown is [Derivation.Type] as a report writes a type: unknowns are a, b and so on.
func (d *Derivation) Shown(t term.Term) *Type {
	v := d.c.nodes[t]
	if v == nil || d.c.over {
		return nil
	}
	show := d.c.buildTypes(false)
	return show.finish(show.given(v))
}

// maxDerived is how many parts the types of a derivation have together, and no more
// than there are steps; terms beyond are dynamic.
const maxDerived = 1_000_000
