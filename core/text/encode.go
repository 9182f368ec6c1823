package text

import (
	"math"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Encoded is a value as a result's JSON.
type Encoded struct {
	// JSON is the first bytes, the whole where its length is Total. A part ends
	// with a whole character.
	JSON []byte
	// Total is the bytes of the whole.
	Total int64
	Type  value.Type
	// Truncated is set where JSON is not the whole.
	Truncated bool
	// Inexact, Function and Pair are as in [Writer].
	Inexact, Function, Pair bool
}

// ContinueMessage is what a continuation tells its reader.
const ContinueMessage = "One step is done; run the tool again with next_input to go on."

// Encode writes v as a result's JSON and keeps its first keep bytes. Past max
// bytes it stops with result_too_large.
func Encode(v value.Value, keep int, max int64) (Encoded, *fault.Fault) {
	return EncodeUntil(v, keep, max, nil)
}

// EncodeUntil does what Encode does, and asks stop, where not nil, from time to time
// whether to give up: the fault is of kind cancelled then.
func EncodeUntil(v value.Value, keep int, max int64, stop func() bool) (Encoded, *fault.Fault) {
	w := NewWriter(keep, max)
	w.Stop = stop
	return w.encode(v)
}

func (w *Writer) encode(v value.Value) (Encoded, *fault.Fault) {
	v = value.Force(v)
	w.Value(v)
	if w.stopped {
		return Encoded{}, &fault.Fault{Kind: fault.Cancelled, Message: "the result was not wanted any more before all of it was written"}
	}
	if w.Full() {
		return Encoded{}, TooLarge(w.max)
	}
	e := Encoded{JSON: w.Bytes(), Total: w.total, Type: v.Type(), Inexact: w.Inexact, Function: w.Function, Pair: w.Pair}
	e.Truncated = e.Total > int64(len(e.JSON))
	return e, nil
}

// What writing a result costs: nothing for its first MiB, which hardly any value needs
// that was as much work to make; beyond, a step for each bytesPerStep, and what the digits of long integers take.
const (
	freeBytes    = 1 << 20
	bytesPerStep = 512
)

var freeWork = prim.DigitsCost(freeBytes)

// EncodeWithin does what EncodeUntil does for a run that has used so many of its
// budget's steps. It returns how many more the result took; a result that takes more
// than there are is out_of_fuel.
func EncodeWithin(v value.Value, keep int, max int64, used, budget uint64, stop func() bool) (e Encoded, steps uint64, f *fault.Fault) {
	room, left := max, budget-used
	if left < uint64(max)/bytesPerStep {
		room = min(max, freeBytes+int64(left+1)*bytesPerStep-1)
	}
	w := NewWriter(keep, room)
	w.Stop, w.mostWork = stop, min(left, math.MaxUint64-freeWork)+freeWork
	e, f = w.encode(v)
	if f == nil && e.Total > freeBytes {
		steps = uint64(e.Total-freeBytes) / bytesPerStep
	}
	if w.work > freeWork {
		steps += w.work - freeWork
	}
	if steps > left || f != nil && f.Kind == fault.ResultTooLarge && room < max {
		return e, left, prim.OutOfFuel(budget)
	}
	if f != nil {
		steps = 0
	}
	return e, steps, f
}

// A style is what JSON a value is written as.
type style uint8

const (
	asResult style = iota
	// asTerm writes the term that evaluates to the value.
	asTerm
	// asRecord writes what is read back as the very value; see [AppendRecorded].
	asRecord
)

// Value writes v as a result's JSON. The work is done on a stack of its own.
func (w *Writer) Value(v value.Value) { w.value(v, asResult) }

// Term writes JSON of a term that evaluates to v; for a function there is none
// and it writes "<function>".
func (w *Writer) Term(v value.Value) { w.value(v, asTerm) }

func (w *Writer) value(v value.Value, as style) {
	var todo stack
	if !todo.enter(w, v, as) {
		return
	}
	for n := 0; !w.Full(); n++ {
		if n&0xFFF == 0xFFF && w.Stop != nil && w.Stop() {
			w.stopped = true
			return
		}
		top := todo.top()
		var part value.Value
		switch v := top.v.(type) {
		case *value.Cons:
			part = w.list(top, v)
		case *value.Pair:
			part = w.pair(top, v)
		case *value.Record:
			part = w.record(top, v)
		case *value.Continuation:
			part = w.continuation(top, v)
		}
		if part == nil {
			if todo.pop() {
				return
			}
			continue
		}
		todo.enter(w, part, top.as)
	}
}

// list writes up to the next item of a list and returns it; nil at the end.
func (w *Writer) list(p *pending, c *value.Cons) value.Value {
	if p.done == 0 {
		w.Byte('[')
		p.done = 1
		return c.Head
	}
	rest, ok := value.Force(c.Tail).(*value.Cons)
	if !ok {
		w.Byte(']')
		return nil
	}
	w.Byte(',')
	p.v = rest
	return rest.Head
}

func (w *Writer) pair(p *pending, v *value.Pair) value.Value {
	p.done++
	switch p.done {
	case 1:
		w.Pair = true
		w.Raw(`{"pair":[`)
		return v.First
	case 2:
		w.Byte(',')
		return v.Second
	}
	w.Raw("]}")
	return nil
}

func (w *Writer) record(p *pending, v *value.Record) value.Value {
	i := int(p.done)
	p.done++
	wrap := p.as == asTerm || len(v.Fields) == 1 && Wrapped(v.Fields[0].Key)
	if p.as == asRecord {
		wrap = len(v.Fields) > 0 && isMarker(v.Fields[0].Key)
	}
	switch {
	case i == 0 && wrap:
		w.Raw(`{"record":{`)
	case i == 0:
		w.Byte('{')
	case i < len(v.Fields):
		w.Byte(',')
	}
	if i == len(v.Fields) {
		w.Byte('}')
		if wrap {
			w.Byte('}')
		}
		return nil
	}
	w.string(v.Fields[i].Key, p.as)
	w.Byte(':')
	return v.Fields[i].Value
}

func (w *Writer) continuation(p *pending, v *value.Continuation) value.Value {
	p.done++
	switch p.done {
	case 1:
		w.Raw(`{"type":"continuation","message":`)
		w.String(ContinueMessage)
		w.Raw(`,"tool":`)
		w.String(v.Tool)
		w.Raw(`,"next_input":`)
		// What can say next_input, data or a term, is known when it is written.
		p.as, p.around, w.inexpressible = asResult, w.inexpressible, 0
		return v.Input
	case 2:
		w.Raw(`,"step":1`)
		if w.inexpressible != neither {
			w.Raw(`,"next":{"name":"run","arguments":{"tool":`)
			w.String(v.Tool)
			if w.inexpressible&notData != 0 {
				w.Raw(`,"input_as":"term"`)
				p.as = asTerm
			}
			w.Raw(`,"input":`)
			return v.Input
		}
	case 3:
		w.Raw("}}")
	}
	w.Byte('}')
	w.inexpressible = neither
	return nil
}

// leaf writes a value without parts.
func (w *Writer) leaf(v value.Value, s style) {
	switch v := v.(type) {
	case value.Int:
		if n, ok := v.Int64(); ok {
			w.Int(n)
		} else if s == asRecord {
			w.recordBig(v)
		} else {
			w.Big(v.Big())
		}
	case value.Dec:
		if s != asResult {
			w.Dec(v)
		} else {
			w.Decimal(v)
		}
	case value.Bool:
		if v {
			w.Raw("true")
		} else {
			w.Raw("false")
		}
	case value.Str:
		w.string(string(v), s)
	case value.Unit:
		w.Raw("null")
	case value.Nil:
		w.Raw("[]")
	case *value.Closure:
		if s == asRecord {
			w.refuse(v)
			return
		}
		w.Function, w.inexpressible = true, neither
		w.Raw(`"<function>"`)
	case *value.Code:
		w.inexpressible |= notData
		if s != asResult {
			w.Raw(`{"quote":`)
			w.Canonical(v.Term)
			w.Byte('}')
		} else {
			w.Quoted(v.Term)
		}
	}
}

// Wrapped reports whether a record whose only key is this is written as
// {"record":{…}}, since the bare object means something else.
func Wrapped(key string) bool {
	return key == "pair" || key == "dec" || key == "int" || key == "record"
}

// A pending is a value of which a part is written.
type pending struct {
	v value.Value
	// done is how much is written: items, fields, parts.
	done int32
	as   style
	// around keeps what the writer found inexpressible before a continuation.
	around inexpressible
}

// A stack holds the values around the one that is written. It grows in pieces,
// so that a value nested a million deep is never copied with its surroundings.
type stack struct {
	first [16]pending
	now   []pending
	full  [][]pending
	spare []pending
	depth int
}

// piece is the most entries of one piece.
const piece = 4096

func (s *stack) top() *pending { return &s.now[len(s.now)-1] }

// enter writes a value without parts, and keeps one with parts to be written;
// it reports whether it did the latter.
func (s *stack) enter(w *Writer, v value.Value, as style) bool {
	v = value.Force(v)
	w.parts++
	if as == asRecord && !w.recordable(v, s.depth) {
		return false
	}
	switch v.(type) {
	case *value.Cons, *value.Pair, *value.Record, *value.Continuation:
	default:
		w.leaf(v, as)
		return false
	}
	switch {
	case s.now == nil:
		s.now = s.first[:0]
	case len(s.now) == cap(s.now):
		s.full = append(s.full, s.now)
		if s.spare != nil {
			s.now, s.spare = s.spare, nil
		} else {
			s.now = make([]pending, 0, min(4*cap(s.now), piece))
		}
	}
	s.now = append(s.now, pending{v: v, as: as})
	s.depth++
	return true
}

// pop drops the innermost value and reports whether it was the last.
func (s *stack) pop() (last bool) {
	s.now = s.now[:len(s.now)-1]
	s.depth--
	if len(s.now) > 0 {
		return false
	}
	n := len(s.full) - 1
	if n < 0 {
		return true
	}
	s.spare = s.now
	s.now, s.full = s.full[n], s.full[:n]
	return false
}
