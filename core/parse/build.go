package parse

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/long"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A dialect is what an object may mean at a place.
type dialect uint8

const (
	// code: an object is an operation.
	code dialect = iota
	// lenient: an object without an operation is a record, keys with a dot are
	// only keys. Quoted code inside is code.
	lenient
	// strict: code, but an effect is refused outside quoted code.
	strict
	// data: nothing is an operation.
	data
)

// A builder makes terms from a scanner's tape. Nodes it has built are never
// touched again, so that they can outlive it.
type builder struct {
	scanner
	room   *Room // nil: it is made
	in     string
	faults []failure
	notes  []note
	quiet  int // notes beyond those kept
	grown  int // see prim.DecLiteral
	// rounds is set where a number with a point or an exponent is rounded to an
	// integer, as the predecessor did.
	rounds bool
	older  bool // see [Options]
	// spread is set where canonical JSON is nested deeper than the source.
	spread bool

	ints  slab[term.Int]
	strs  slab[term.Str]
	vars  slab[term.Var]
	lams  slab[term.Lam]
	apps  slab[term.App]
	ifs   slab[term.If]
	prims slab[term.Prim]
	lists slab[term.List]
	args  []term.Term

	// names is what is used where there may be a let; nil: nothing is noted.
	names *prim.Names
}

// A block holds what comes of a small program in one allocation.
type block struct {
	source term.Source
	prims  [2]term.Prim
	args   [4]term.Term
	vars   [3]term.Var
	lams   [2]term.Lam
	ints   [2]term.Int
}

// An op is what comes of a program that is hardly more than one operation.
type op struct {
	source term.Source
	prims  [1]term.Prim
	args   [2]term.Term
	vars   [2]term.Var
	lams   [1]term.Lam
}

// A Room is for what comes of a source that is hardly more than one value.
type Room struct {
	source term.Source
	ints   [1]term.Int
}

// A slab hands out nodes of one type from chunks that grow.
type slab[T any] struct {
	free []T
	made int
}

func (s *slab[T]) get() *T {
	if len(s.free) == 0 {
		s.grow() // apart, so that get is inlined
	}
	t := &s.free[0]
	s.free = s.free[1:]
	return t
}

func (s *slab[T]) grow() {
	n := min(max(s.made, 1), 512)
	s.made += n
	s.free = make([]T, n)
}

// opFrom and blockFrom are how many nodes make an op and a block worth their size.
const opFrom, blockFrom = 8, 14

// start gives the slabs their first chunks.
func (b *builder) start() *term.Source {
	if len(b.nodes) < opFrom {
		k := b.room
		if k == nil {
			k = new(Room)
		}
		b.ints = slab[term.Int]{k.ints[:], len(k.ints)}
		return &k.source
	}
	if len(b.nodes) < blockFrom {
		k := new(op)
		b.prims = slab[term.Prim]{k.prims[:], len(k.prims)}
		b.vars = slab[term.Var]{k.vars[:], len(k.vars)}
		b.lams = slab[term.Lam]{k.lams[:], len(k.lams)}
		b.args = k.args[:]
		return &k.source
	}
	k := new(block)
	b.prims = slab[term.Prim]{k.prims[:], len(k.prims)}
	b.vars = slab[term.Var]{k.vars[:], len(k.vars)}
	b.lams = slab[term.Lam]{k.lams[:], len(k.lams)}
	b.ints = slab[term.Int]{k.ints[:], len(k.ints)}
	b.args = k.args[:]
	return &k.source
}

// operands returns room for n operands.
func (b *builder) operands(n int) []term.Term {
	if n > len(b.args) {
		if n > 64 {
			return make([]term.Term, n)
		}
		b.args = make([]term.Term, min(max(n, len(b.nodes)/4), 256))
	}
	args := b.args[:n:n]
	b.args = b.args[n:]
	return args
}

// reserve makes the tape large enough for a large source at once.
func (b *builder) reserve() {
	if len(b.src) < 64<<10 {
		return
	}
	n := strings.Count(b.src, ",") + strings.Count(b.src, ":") + strings.Count(b.src, "[") + strings.Count(b.src, "{") + 1
	b.nodes = slices.Grow(b.nodes, min(n, MaxValues))
}

// term builds the term of node i.
func (b *builder) term(i uint32, d dialect) term.Term {
	n := &b.nodes[i]
	at := term.At(n.off)
	switch n.kind() {
	case null:
		return &term.Unit{At: at}
	case yes, no:
		return &term.Bool{At: at, Value: n.kind() == yes}
	case number:
		return b.number(i)
	case text:
		t := b.strs.get()
		t.At, t.Value = at, b.string(i)
		return t
	case array:
		t := b.lists.get()
		t.At = at
		if count := n.count(); count > 0 {
			t.Items = b.operands(count)
			b.items(i, t.Items, d)
		}
		return t
	}
	if d == data {
		return b.datum(i)
	}
	return b.object(i, d)
}

// items builds the items of the array i.
func (b *builder) items(i uint32, to []term.Term, d dialect) {
	j := i + 1
	for k := range to {
		to[k] = b.term(j, d)
		j = b.nodes[j].next
	}
}

// object builds the operation that the object i is.
func (b *builder) object(i uint32, d dialect) term.Term {
	n := &b.nodes[i]
	count := n.count()
	if count == 1 {
		if k := b.nodes[i+1].key(); k != 0 {
			if r := &prim.Table[k-1]; (!r.Falls || b.fits(r, i+2)) && (d != lenient || r.Rank < prim.NewRank) {
				return b.operation(i, term.ID(k-1), i+2, d)
			}
		}
	}
	// best is the value of the winning key, wrong that of the first key whose
	// shape let it fall through, dotted the first key that is an effect's.
	var best, wrong, dotted uint32
	var bestID, wrongID uint32
	for k := i + 1; k < n.next; k = b.nodes[k+1].next {
		key := b.nodes[k].key()
		if key == 0 {
			if dotted == 0 && d != lenient && b.isEffect(k) {
				dotted = k
			}
			continue
		}
		r := &prim.Table[key-1]
		if r.Falls && !b.fits(r, k+1) {
			if wrong == 0 {
				wrong, wrongID = k+1, key-1
			}
			continue
		}
		if best == 0 || r.Rank < prim.Table[bestID].Rank {
			best, bestID = k+1, key-1
		}
	}
	switch {
	case dotted != 0 && count > 1:
		return b.failAlone(i, dotted)
	case dotted != 0 && d == strict:
		return b.failEffect(i, dotted)
	case dotted != 0:
		return b.effect(i, dotted)
	case best != 0 && d == lenient && !b.stands(i, &prim.Table[bestID], best):
		return b.record(i, i, d)
	case best != 0 && !b.alone(i, &prim.Table[bestID]):
		return b.failAlone(i, best-1)
	case best != 0:
		return b.operation(i, term.ID(bestID), best, d)
	case wrong != 0:
		return b.failShape(i, &prim.Table[wrongID], wrong, d)
	case d == lenient:
		return b.record(i, i, d)
	}
	return b.failUnknown(i)
}

// alone reports whether nothing stands beside the row's key in the object i
// but what belongs there. The predecessor's keys put up with others.
func (b *builder) alone(i uint32, r *prim.Row) bool {
	n := b.nodes[i].count()
	return r.Rank < prim.NewRank || n == 1 || n == 2 && r.With != "" && b.member(i, r.With) != 0
}

// stands reports whether the object i, in an input, is the operation r and not
// a record that happens to have its name for a key.
func (b *builder) stands(i uint32, r *prim.Row, v uint32) bool {
	if r.Rank < prim.NewRank || r.Shape == prim.Members {
		return true
	}
	value := &b.nodes[v]
	switch r.Shape {
	case prim.Named:
		return b.alone(i, r) && value.kind() == text
	case prim.Array:
		return b.alone(i, r) && value.kind() == array && r.Takes(value.count())
	case prim.Keyed:
		return b.alone(i, r) && value.kind() == object && value.count() == len(r.Params) && !slices.ContainsFunc(r.Params, func(p prim.Param) bool { return b.member(v, p.Name) == 0 })
	case prim.Recursive, prim.Bindings, prim.Branches, prim.Patterns:
		return b.nodes[i].count() == 2 && b.member(i, r.With) != 0
	}
	return b.alone(i, r)
}

// fits reports whether a key that may fall through has the shape it needs.
func (b *builder) fits(r *prim.Row, v uint32) bool {
	n := &b.nodes[v]
	if r.Shape == prim.Named {
		return n.kind() == text
	}
	return n.kind() == array && r.Takes(n.count())
}

// maxLong is how many digits {"int":"…"} may have.
const maxLong = 1_000_000

// datum builds an object of data: the shapes that results have for what JSON
// can't say are read back, everything else is a record.
func (b *builder) datum(i uint32) term.Term {
	n := &b.nodes[i]
	if n.count() != 1 {
		return b.record(i, i, data)
	}
	at := term.At(n.off)
	v := i + 2
	inner := &b.nodes[v]
	switch b.string(i + 1) {
	case "pair":
		if inner.kind() == array && inner.count() == 2 {
			args := b.operands(2)
			b.items(v, args, data)
			return b.prim(at, prim.Pair, args)
		}
	case "dec":
		if inner.kind() == text {
			if t, ok := prim.DecLiteral(at, b.string(v), &b.grown); ok {
				return t
			}
			if b.grown > value.MaxGrown {
				return b.refuseGrown(v)
			}
		}
	case "record":
		if inner.kind() == object {
			return b.record(i, v, data)
		}
	case "int":
		if inner.kind() != text {
			break
		}
		if s := b.string(v); isInteger(s) {
			if len(s) > maxLong {
				return b.refuse(i, &fault.Fault{
					Message:  "the integer has more than a million digits",
					Expected: "at most 1000000 digits",
					Hint:     "Compute large numbers in the program, with mul.",
				})
			}
			if large := long.Parse(s, nil); !large.IsInt64() {
				return &term.Big{At: at, Value: large}
			} else {
				return &term.Int{At: at, Value: large.Int64()}
			}
		}
	}
	return b.record(i, i, data)
}

func isInteger(s string) bool {
	if s != "" && s[0] == '-' {
		s = s[1:]
	}
	return s != "" && digits(s, 0) == len(s)
}

// record builds the object v as a record literal at the place of node i.
func (b *builder) record(i, v uint32, d dialect) term.Term {
	n := &b.nodes[v]
	t := &term.Record{At: term.At(b.nodes[i].off)}
	if n.count() == 0 {
		return t
	}
	t.Fields = make([]term.Field, 0, n.count())
	for k := v + 1; k < n.next; k = b.nodes[k+1].next {
		t.Fields = append(t.Fields, term.Field{Key: b.string(k), Value: b.term(k+1, d)})
	}
	slices.SortFunc(t.Fields, func(x, y term.Field) int { return strings.Compare(x.Key, y.Key) })
	return t
}

// isEffect reports whether a key asks for an operation of a capability.
func (b *builder) isEffect(k uint32) bool {
	name := b.string(k)
	_, alias := prim.Aliases[name]
	return alias || strings.IndexByte(name, '.') >= 0
}

// effect builds the effect whose key is k. Its argument is a record if it is
// an object without an operation, and a term otherwise.
func (b *builder) effect(i, k uint32) term.Term {
	op := b.string(k)
	if full, ok := prim.Aliases[op]; ok {
		op = full
	}
	if kind, verb, _ := strings.Cut(op, "."); kind == "" || verb == "" {
		return b.failEffectName(i, k)
	}
	arg, fields := k+1, uint32(0)
	var argument term.Term
	switch {
	case b.nodes[arg].kind() != object:
		argument = b.term(arg, code)
	case b.isTerm(arg):
		argument = b.term(arg, code)
		fields = b.member(arg, "record")
	default:
		b.spread = true
		argument, fields = b.record(arg, arg, code), arg
	}
	t, ok := term.NewEffect(term.At(b.nodes[i].off), op, argument)
	if !ok {
		return b.failIn(fields)
	}
	return t
}

// isTerm reports whether an effect's argument, the object i, is a term: its keys
// together are those of one form, or its only key is an operation. Otherwise it
// is the record of the arguments, whatever their names.
func (b *builder) isTerm(i uint32) bool {
	switch b.nodes[i].count() {
	case 1:
		return b.nodes[i+1].key() != 0 || b.isEffect(i+1)
	case 2:
		for _, form := range twoKeys {
			if b.member(i, form[0]) != 0 && b.member(i, form[1]) != 0 {
				return true
			}
		}
	}
	return false
}

// twoKeys is the keys of the forms that are written with two.
var twoKeys = func() [][2]string {
	forms := [][2]string{{"lam", "body"}, {"eval", "with"}}
	for i := range prim.Table {
		if r := &prim.Table[i]; r.With != "" {
			forms = append(forms, [2]string{r.Name, r.With})
		}
	}
	return forms
}()
