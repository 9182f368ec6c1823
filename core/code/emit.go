package code

import "math"

// capsPer is how many captures one Caps instruction holds: 7 bytes after the
// operation would be odd, so two bytes each in the upper 12.
const capsPer = 6

// A label is a place that jumps lead to. Each jump says how many steps were
// pending where it was taken, and is patched to carry the difference to what
// is pending where the label stands.
type label struct {
	refs []ref
}

type ref struct {
	at   int
	pend int64
}

func (f *fn) emit(in Instr, pos int32) int {
	f.code = append(f.code, in)
	f.meta = append(f.meta, Meta{Pend: int32(f.pend), Pos: pos})
	return len(f.code) - 1
}

func (f *fn) op(op Op, a, b, c uint8, d int32, pos int32) {
	if n := len(f.code); op == Move && n > f.bound && f.code[n-1].Op == Move {
		last := &f.code[n-1]
		last.Op, last.C, last.D = Move2, a, int32(b)
		return
	}
	f.emit(Instr{Op: op, A: a, B: b, C: c, D: d}, pos)
}

func (f *fn) jump(in Instr, l *label, pos int32) {
	l.refs = append(l.refs, ref{f.emit(in, pos), f.pend})
}

// bind puts the label here.
func (f *fn) bind(l *label) {
	if len(l.refs) == 0 {
		return
	}
	if f.dead {
		f.pend = l.refs[0].pend
	}
	f.dead, f.bound = false, len(f.code)
	for _, r := range l.refs {
		in := &f.code[r.at]
		in.D = int32(len(f.code)-r.at) * InstrSize
		in.K += f.pend - r.pend
	}
}

// end emits an instruction that takes the pending steps and changes the depth.
func (f *fn) end(in Instr, depth int64, pos int32) {
	at := f.emit(in, pos)
	f.code[at].K = depth*Depth1 - f.pend // the pending steps, with the change of depth
	f.pend = 0
}

// retDepth returns what a return gives back: the depth its call took.
func (f *fn) retDepth() int64 {
	if f.outline {
		return 0
	}
	return 1
}

// smallInt returns v as an immediate word of 63 bits.
func smallInt(v int64) (int64, bool) {
	if v > MaxInt || v < MinInt {
		return 0, false
	}
	return v << 1, true
}

func fits16(v int64) bool { return v >= math.MinInt16 && v <= math.MaxInt16 }

func fits32(w int64) bool { return w >= math.MinInt32 && w <= math.MaxInt32 }

// where says how a function's code reaches a variable.
type where struct {
	kind whereKind
	n    int32
}

type whereKind uint8

const (
	inReg whereKind = iota
	inCap
	inConst
	inGroup // its group's closure has to be made its own: see [compiler.member]
)

// locate finds a variable from f, capturing it where it is another
// function's. half is 0 for the value, 1 or 2 for a half of a pair that was
// never built.
func (c *compiler) locate(f *fn, b *binder, half uint8) where {
	if b.info != nil && b.info.Closed && !b.half {
		return where{inConst, c.closure(b.info)}
	}
	if b.group != nil {
		return where{kind: inGroup}
	}
	if b.owner == f {
		if b.self {
			return where{inReg, 0}
		}
		r := int32(b.reg)
		switch half {
		case 2:
			r++
		case 3, 4:
			r = int32(b.acc + half - 3)
		}
		return where{inReg, r}
	}
	if i, ok := f.captured(b, half); ok {
		return where{inCap, int32(i)}
	}
	c.take(1)
	f.caps = append(f.caps, capture{b, half})
	return where{inCap, int32(len(f.caps) - 1)}
}

// maxDirectCaptures is how many captures are looked through before they get an index.
const maxDirectCaptures = 24

// captured finds a captured variable.
func (f *fn) captured(b *binder, half uint8) (int, bool) {
	if len(f.caps) <= maxDirectCaptures {
		for i, k := range f.caps {
			if k.b == b && k.half == half {
				return i, true
			}
		}
		return 0, false
	}
	if f.capAt == nil {
		f.capAt = make(map[capture]int)
	}
	for i := len(f.capAt); i < len(f.caps); i++ {
		f.capAt[f.caps[i]] = i
	}
	i, ok := f.capAt[capture{b, half}]
	return i, ok
}

// load brings a variable into dst.
func (c *compiler) load(b *binder, half uint8, dst uint8, pos int32) {
	f := c.f
	switch w := c.locate(f, b, half); w.kind {
	case inReg:
		if uint8(w.n) != dst {
			f.op(Move, dst, uint8(w.n), 0, 0, pos)
		}
	case inCap:
		f.op(LoadCap, dst, 0, 0, w.n, pos)
	case inConst:
		// Everything evaluated so far lies below f.top.
		f.emit(Instr{Op: LoadK, A: dst, D: w.n, K: int64(f.top)}, pos)
	}
}
