// The length of this file is its reason: it is one function, the dispatch loop.
// What it called would spill its state, and what was split off would be called.

package eval

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
)

// exit says why the loop returned.
type exit uint8

const (
	exitHalt exit = iota // the outermost function returned
	exitSlow             // the instruction before ip needs slow
)

func reg(r unsafe.Pointer, i uint8) *word { return (*word)(unsafe.Add(r, uintptr(i)*8)) }

func heapWord(hb unsafe.Pointer, off word) *word { return (*word)(unsafe.Add(hb, uintptr(off))) }

func spent(fuel int64) bool { return fuel < 0 || fuel&guard == 0 }

// loop runs instructions until one needs more than it has. It is one function
// that calls nothing, so that its state stays in registers: see section 4 of
// the design, "any call inside the dispatch loop spills". That is the reason
// for its length too. What has many values alive at once (see field) puts the fuel
// away first: one value too many is stored to the stack at each dispatch, which costs a
// fifth of all loops; go tool objdump shows it.
//
// An instruction that can't go on leaves everything as it was, with ip after
// it, and slow does its work from the start.
func (m *Machine) loop() exit {
	ip, r, fuel := m.ip, m.r, m.fuel
	hb := m.hb
	var in *code.Instr
	for {
		in = (*code.Instr)(ip)
		ip = unsafe.Add(ip, code.InstrSize)
		switch in.Op {
		case code.Halt:
			m.ip, m.r, m.fuel = ip, r, fuel
			return exitHalt
		case code.Move:
			*reg(r, in.A) = *reg(r, in.B)
		case code.Move2:
			*reg(r, in.A) = *reg(r, in.B)
			*reg(r, in.C) = *reg(r, uint8(in.D))
		case code.LoadI:
			*reg(r, in.A) = word(in.K)
		case code.LoadK:
			w := m.consts[in.D]
			if w == 0 {
				goto slow
			}
			*reg(r, in.A) = w
		case code.LoadCap:
			*reg(r, in.A) = *heapWord(hb, *reg(r, 0)-tagClosure+8+word(in.D)*8)

		case code.Add:
			a, b := *reg(r, in.B), *reg(r, in.C)
			s := a + b
			if (a|b)&1|((a^s)&(b^s))>>63 != 0 {
				goto decimal
			}
			*reg(r, in.A) = s
		case code.Sub:
			a, b := *reg(r, in.B), *reg(r, in.C)
			s := a - b
			if (a|b)&1|((a^b)&(a^s))>>63 != 0 {
				goto decimal
			}
			*reg(r, in.A) = s
		case code.Mul:
			a, b := *reg(r, in.B), *reg(r, in.C)
			if (a|b)&1 != 0 {
				goto decimal
			}
			y := uint64(int64(b) >> 1)
			hi, lo := bits.Mul64(a, y)
			hi -= (uint64(int64(a)>>63) & y) + (uint64(int64(y)>>63) & a)
			if hi != uint64(int64(lo)>>63) {
				goto slow
			}
			*reg(r, in.A) = lo
		case code.Div:
			a, b := *reg(r, in.B), *reg(r, in.C)
			if (a|b)&1 != 0 || b == 0 || int64(b) == -2 {
				goto slow
			}
			if (a|b)>>32 == 0 {
				*reg(r, in.A) = uint64(uint32(a)/uint32(b)) << 1
				break
			}
			q := int64(a) / int64(b)
			if q*int64(b) != int64(a) && (a^b)>>63 != 0 {
				q--
			}
			*reg(r, in.A) = fromInt(q)
		case code.Mod:
			a, b := *reg(r, in.B), *reg(r, in.C)
			if (a|b)&1 != 0 || b == 0 || int64(b) == -2 {
				goto slow
			}
			if (a|b)>>32 == 0 {
				*reg(r, in.A) = uint64(uint32(a) % uint32(b))
				break
			}
			d := int64(a) % int64(b)
			if d != 0 && (uint64(d)^b)>>63 != 0 {
				d += int64(b)
			}
			*reg(r, in.A) = word(d)
		case code.AddI:
			a, b := *reg(r, in.B), word(in.K)
			s := a + b
			if a&1|((a^s)&(b^s))>>63 != 0 {
				goto slow
			}
			*reg(r, in.A) = s
		case code.MulI:
			a, b := *reg(r, in.B), word(in.K)
			if a&1 != 0 {
				goto slow
			}
			y := uint64(int64(b) >> 1)
			hi, lo := bits.Mul64(a, y)
			hi -= (uint64(int64(a)>>63) & y) + (uint64(int64(y)>>63) & a)
			if hi != uint64(int64(lo)>>63) {
				goto slow
			}
			*reg(r, in.A) = lo
		case code.DivI:
			a, b := *reg(r, in.B), word(in.K)
			if a&1 != 0 || int64(b) == -2 {
				goto slow
			}
			if (a|b)>>32 == 0 {
				*reg(r, in.A) = uint64(uint32(a)/uint32(b)) << 1
				break
			}
			q := int64(a) / int64(b)
			if q*int64(b) != int64(a) && (a^b)>>63 != 0 {
				q--
			}
			*reg(r, in.A) = fromInt(q)
		case code.ModI:
			a, b := *reg(r, in.B), word(in.K)
			if a&1 != 0 || int64(b) == -2 {
				goto slow
			}
			if (a|b)>>32 == 0 {
				*reg(r, in.A) = uint64(uint32(a) % uint32(b))
				break
			}
			d := int64(a) % int64(b)
			if d != 0 && (uint64(d)^b)>>63 != 0 {
				d += int64(b)
			}
			*reg(r, in.A) = word(d)
		case code.AndI:
			a := *reg(r, in.B)
			if a&1 != 0 {
				goto slow
			}
			*reg(r, in.A) = a & word(in.K)
		case code.ShrI:
			a := *reg(r, in.B)
			if a&1 != 0 {
				goto slow
			}
			*reg(r, in.A) = word(int64(a)>>(in.C&63)) &^ 1

		case code.Eq:
			a, b := *reg(r, in.B), *reg(r, in.C)
			if (a|b)&1 != 0 {
				if in.K != 0 {
					goto equal
				}
				goto slow
			}
			*reg(r, in.A) = fromBool(a == b)
		case code.Lt:
			a, b := *reg(r, in.B), *reg(r, in.C)
			if (a|b)&1 != 0 {
				goto slow
			}
			*reg(r, in.A) = fromBool(int64(a) < int64(b))
		case code.Lte:
			a, b := *reg(r, in.B), *reg(r, in.C)
			if (a|b)&1 != 0 {
				goto slow
			}
			*reg(r, in.A) = fromBool(int64(a) <= int64(b))
		case code.Gt:
			a, b := *reg(r, in.B), *reg(r, in.C)
			if (a|b)&1 != 0 {
				goto slow
			}
			*reg(r, in.A) = fromBool(int64(a) > int64(b))
		case code.Gte:
			a, b := *reg(r, in.B), *reg(r, in.C)
			if (a|b)&1 != 0 {
				goto slow
			}
			*reg(r, in.A) = fromBool(int64(a) >= int64(b))
		case code.Not:
			a := *reg(r, in.B)
			if a != wTrue && a != wFalse {
				goto slow
			}
			*reg(r, in.A) = wTrue + wFalse - a

		case code.Cons:
			b, c := *reg(r, in.B), *reg(r, in.C)
			if c&tagMask != tagCons && c != wNil {
				goto slow
			}
			hp := m.hp
			if hp+16 > m.hlim {
				goto slow
			}
			*heapWord(hb, word(hp)) = b
			*heapWord(hb, word(hp)+8) = c
			m.hp = hp + 16
			*reg(r, in.A) = word(hp) | tagCons
		case code.Pair:
			hp := m.hp
			if hp+16 > m.hlim {
				goto slow
			}
			*heapWord(hb, word(hp)) = *reg(r, in.B)
			*heapWord(hb, word(hp)+8) = *reg(r, in.C)
			m.hp = hp + 16
			*reg(r, in.A) = word(hp) | tagPair
		case code.Head:
			a := *reg(r, in.B)
			if a&tagMask != tagCons {
				goto slow
			}
			*reg(r, in.A) = *heapWord(hb, a-tagCons)
		case code.Tail:
			a := *reg(r, in.B)
			if a&tagMask != tagCons {
				goto slow
			}
			*reg(r, in.A) = *heapWord(hb, a-tagCons+8)
		case code.Fst:
			a := *reg(r, in.B)
			if a&tagMask != tagPair {
				goto slow
			}
			*reg(r, in.A) = *heapWord(hb, a-tagPair)
		case code.Snd:
			a := *reg(r, in.B)
			if a&tagMask != tagPair {
				goto slow
			}
			*reg(r, in.A) = *heapWord(hb, a-tagPair+8)
		case code.IsEmpty:
			a := *reg(r, in.B)
			if a == wNil {
				*reg(r, in.A) = wTrue
			} else if a&tagMask == tagCons {
				*reg(r, in.A) = wFalse
			} else {
				goto slow
			}

		case code.Jmp:
			fuel += in.K
			ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
		case code.JF:
			a := *reg(r, in.A)
			if a == wFalse {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			} else if a != wTrue {
				goto slow
			}
		case code.JT:
			a := *reg(r, in.A)
			if a == wTrue {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			} else if a != wFalse {
				goto slow
			}
		case code.JEq:
			a, b := *reg(r, in.A), *reg(r, in.B)
			if (a|b)&1 != 0 {
				if in.C != 0 {
					goto equal
				}
				goto slow
			}
			if a == b {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			}
		case code.JNe:
			a, b := *reg(r, in.A), *reg(r, in.B)
			if (a|b)&1 != 0 {
				if in.C != 0 {
					goto equal
				}
				goto slow
			}
			if a != b {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			}
		case code.JLt:
			a, b := *reg(r, in.A), *reg(r, in.B)
			if (a|b)&1 != 0 {
				goto slow
			}
			if int64(a) < int64(b) {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			}
		case code.JGe:
			a, b := *reg(r, in.A), *reg(r, in.B)
			if (a|b)&1 != 0 {
				goto slow
			}
			if int64(a) >= int64(b) {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			}
		case code.JEqI:
			a := *reg(r, in.A)
			if a&1 != 0 {
				goto slow
			}
			if int64(a) == int64(*(*int16)(unsafe.Pointer(&in.B)))*2 {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			}
		case code.JNeI:
			a := *reg(r, in.A)
			if a&1 != 0 {
				goto slow
			}
			if int64(a) != int64(*(*int16)(unsafe.Pointer(&in.B)))*2 {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			}
		case code.JLtI:
			a := *reg(r, in.A)
			if a&1 != 0 {
				goto slow
			}
			if int64(a) < int64(*(*int16)(unsafe.Pointer(&in.B)))*2 {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			}
		case code.JGeI:
			a := *reg(r, in.A)
			if a&1 != 0 {
				goto slow
			}
			if int64(a) >= int64(*(*int16)(unsafe.Pointer(&in.B)))*2 {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			}
		case code.JGtI:
			a := *reg(r, in.A)
			if a&1 != 0 {
				goto slow
			}
			if int64(a) > int64(*(*int16)(unsafe.Pointer(&in.B)))*2 {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			}
		case code.JLeI:
			a := *reg(r, in.A)
			if a&1 != 0 {
				goto slow
			}
			if int64(a) <= int64(*(*int16)(unsafe.Pointer(&in.B)))*2 {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			}
		case code.TryLt:
			a, b := *reg(r, in.A), *reg(r, in.B)
			if (a|b)&1 == 0 {
				ip = unsafe.Add(ip, 2*code.InstrSize)
				if int64(a) < int64(b) {
					fuel += in.K
					ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
				}
			}
		case code.TryGe:
			a, b := *reg(r, in.A), *reg(r, in.B)
			if (a|b)&1 == 0 {
				ip = unsafe.Add(ip, 2*code.InstrSize)
				if int64(a) >= int64(b) {
					fuel += in.K
					ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
				}
			}
		case code.TryMax, code.TryMin:
			a, b := *reg(r, in.B), *reg(r, in.C)
			f := fuel + in.K
			if (a|b)&1 != 0 || fuel < code.Depth1 || spent(f) {
				break
			}
			fuel = f
			if (int64(a) < int64(b)) == (in.Op == code.TryMax) {
				a = b
			}
			*reg(r, in.A) = a
			ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
		case code.JEmpty:
			a := *reg(r, in.A)
			if a == wNil {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			} else if a&tagMask != tagCons {
				goto slow
			}
		case code.JCons:
			a := *reg(r, in.A)
			if a&tagMask == tagCons {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			} else if a != wNil {
				goto slow
			}

		case code.CallK:
			f := fuel + in.K
			nr := unsafe.Add(r, uintptr(in.A)*8)
			if spent(f) || uintptr(nr) > m.slim {
				goto slow
			}
			*(*word)(unsafe.Add(nr, uintptr(in.B)*8+8)) = word(uintptr(ip)-uintptr(m.cb)) | word(in.A)<<35
			fuel, r = f, nr
			ip = unsafe.Add(m.cb, int(in.D))
		case code.CallKReg:
			f := fuel + in.K
			nr := unsafe.Add(r, uintptr(in.A)*8)
			if spent(f) || uintptr(nr) > m.slim {
				goto slow
			}
			*(*word)(unsafe.Add(nr, 8)) = *reg(r, in.C)
			*(*word)(unsafe.Add(nr, 16)) = word(uintptr(ip)-uintptr(m.cb)) | word(in.A)<<35
			fuel, r = f, nr
			ip = unsafe.Add(m.cb, int(in.D))
		case code.CallKSubI:
			f := fuel + in.K
			a, b := *reg(r, in.B), word(in.C)*2
			s := a - b
			nr := unsafe.Add(r, uintptr(in.A)*8)
			if a&1|((a^b)&(a^s))>>63 != 0 || spent(f) || uintptr(nr) > m.slim {
				goto slow
			}
			*(*word)(unsafe.Add(nr, 8)) = s
			*(*word)(unsafe.Add(nr, 16)) = word(uintptr(ip)-uintptr(m.cb)) | word(in.A)<<35
			fuel, r = f, nr
			ip = unsafe.Add(m.cb, int(in.D))
		case code.Call:
			f := fuel + in.K
			nr := unsafe.Add(r, uintptr(in.A)*8)
			w := *(*word)(nr)
			if w&tagMask != tagClosure || spent(f) || uintptr(nr) > m.slim {
				goto slow
			}
			h := *heapWord(hb, w-tagClosure)
			if h>>56 != word(in.B) {
				goto slow
			}
			*(*word)(unsafe.Add(nr, uintptr(in.B)*8+8)) = word(uintptr(ip)-uintptr(m.cb)) | word(in.A)<<35
			fuel, r = f, nr
			ip = unsafe.Add(m.cb, uintptr(h>>28&(1<<28-1))*code.InstrSize)
		case code.Check:
			w := *reg(r, in.A)
			if w&tagMask != tagClosure {
				goto slow
			}
			if *heapWord(hb, w-tagClosure)>>56 != word(in.C) {
				goto slow
			}
			ip = unsafe.Add(ip, code.InstrSize)
		case code.TailK:
			fuel += in.K
			if spent(fuel) {
				fuel -= in.K
				goto slow
			}
			ret := *reg(r, in.C)
			src := unsafe.Add(r, uintptr(in.A)*8)
			*(*word)(r) = *(*word)(src)
			*reg(r, 1) = *(*word)(unsafe.Add(src, 8))
			*reg(r, 2) = *(*word)(unsafe.Add(src, 16))
			for n := uint8(3); n <= in.B; n++ {
				*reg(r, n) = *(*word)(unsafe.Add(src, uintptr(n)*8))
			}
			*reg(r, in.B+1) = ret
			ip = unsafe.Add(m.cb, int(in.D))
		case code.TailIn:
			f := fuel + in.K
			if spent(f) {
				goto slow
			}
			fuel = f
			ip = unsafe.Add(m.cb, int(in.D))
		case code.TailCall:
			f := fuel + in.K
			w := *reg(r, in.A)
			if w&tagMask != tagClosure || spent(f) {
				goto slow
			}
			h := *heapWord(hb, w-tagClosure)
			if h>>56 != word(in.B) {
				goto slow
			}
			fuel = f
			ret := *reg(r, in.C)
			src := unsafe.Add(r, uintptr(in.A)*8)
			*(*word)(r) = *(*word)(src)
			*reg(r, 1) = *(*word)(unsafe.Add(src, 8))
			*reg(r, 2) = *(*word)(unsafe.Add(src, 16))
			for n := uint8(3); n <= in.B; n++ {
				*reg(r, n) = *(*word)(unsafe.Add(src, uintptr(n)*8))
			}
			*reg(r, in.B+1) = ret
			ip = unsafe.Add(m.cb, uintptr(h>>28&(1<<28-1))*code.InstrSize)
		case code.Loop0:
			f := fuel + in.K
			if spent(f) {
				goto slow
			}
			fuel = f
			ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
		case code.Loop1:
			f := fuel + in.K
			if spent(f) {
				goto slow
			}
			fuel = f
			*reg(r, in.B) = *reg(r, in.A)
			ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
		case code.Loop2:
			f := fuel + in.K
			if spent(f) {
				goto slow
			}
			fuel = f
			a, b := *reg(r, in.A), *reg(r, in.A+1)
			*reg(r, in.B) = a
			*reg(r, in.C) = b
			ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
		case code.Ret:
			w := *reg(r, in.C)
			*(*word)(r) = *reg(r, in.A)
			fuel += in.K
			r = unsafe.Add(r, -int(w>>32))
			ip = unsafe.Add(m.cb, uintptr(uint32(w)))
		case code.RetImm:
			w := *reg(r, in.C)
			*(*word)(r) = word(int64(in.D))
			fuel += in.K
			r = unsafe.Add(r, -int(w>>32))
			ip = unsafe.Add(m.cb, uintptr(uint32(w)))
		case code.RetAdd:
			a, b := *reg(r, in.A), *reg(r, in.B)
			s := a + b
			if (a|b)&1|((a^s)&(b^s))>>63 != 0 {
				goto slow
			}
			w := *reg(r, in.C)
			*(*word)(r) = s
			fuel += in.K
			r = unsafe.Add(r, -int(w>>32))
			ip = unsafe.Add(m.cb, uintptr(uint32(w)))

		case code.FoldInit:
			l := *reg(r, in.A+1)
			if l&tagMask == tagCons {
				f := fuel - code.Depth1
				if f < 0 {
					goto slow
				}
				fuel = f
				*reg(r, in.A+1) = *heapWord(hb, l-tagCons)
				*reg(r, in.A+2) = *heapWord(hb, l-tagCons+8)
			} else if l == wNil {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			} else {
				goto slow
			}
		case code.FoldLoop:
			l := *reg(r, in.A+2)
			if l == wNil {
				fuel += code.Depth1
				break
			}
			f := fuel + in.K
			if l&tagMask != tagCons || spent(f) {
				goto slow
			}
			fuel = f
			*reg(r, in.A+1) = *heapWord(hb, l-tagCons)
			*reg(r, in.A+2) = *heapWord(hb, l-tagCons+8)
			ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
		case code.FoldCons:
			acc, l := *reg(r, in.A), *reg(r, in.A+2)
			f := fuel + in.K
			hp := m.hp
			if l&tagMask != tagCons || acc&tagMask != tagCons && acc != wNil || hp+16 > m.hlim || spent(f) {
				break
			}
			fuel = f
			*heapWord(hb, word(hp)) = *reg(r, in.B)
			*heapWord(hb, word(hp)+8) = acc
			m.hp = hp + 16
			*reg(r, in.A) = word(hp) | tagCons
			*reg(r, in.A+1) = *heapWord(hb, l-tagCons)
			*reg(r, in.A+2) = *heapWord(hb, l-tagCons+8)
			ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
		case code.FoldRev:
			m.fuel = fuel
			acc, l, item := *reg(r, in.A), *reg(r, in.A+2), *reg(r, in.A+1)
			if acc&tagMask != tagCons && acc != wNil {
			} else if in.C != 0 {
				for l&tagMask == tagCons && !spent(m.fuel+in.K) {
					m.fuel += in.K
					cell := (*[2]word)(unsafe.Pointer(heapWord(hb, l-tagCons)))
					cell[0], cell[1], item, acc, l = item, acc, cell[0], l, cell[1]
				}
				*reg(r, in.A), *reg(r, in.A+2), *reg(r, in.A+1) = acc, l, item
			} else {
				hp := m.hp
				for l&tagMask == tagCons && hp+16 <= m.hlim && !spent(m.fuel+in.K) {
					m.fuel += in.K
					*heapWord(hb, word(hp)) = item
					*heapWord(hb, word(hp)+8) = acc
					acc = word(hp) | tagCons
					hp += 16
					item = *heapWord(hb, l-tagCons)
					l = *heapWord(hb, l-tagCons+8)
				}
				m.hp = hp
				*reg(r, in.A), *reg(r, in.A+2), *reg(r, in.A+1) = acc, l, item
			}
			fuel = m.fuel
		case code.FoldAdd:
			m.fuel = fuel
			acc, l, item := *reg(r, in.A), *reg(r, in.A+2), *reg(r, in.A+1)
			for l&tagMask == tagCons && !spent(m.fuel+in.K) {
				s := acc + item
				if (acc|item)&1|((acc^s)&(item^s))>>63 != 0 {
					break
				}
				m.fuel += in.K
				acc, item, l = s, *heapWord(hb, l-tagCons), *heapWord(hb, l-tagCons+8)
			}
			*reg(r, in.A), *reg(r, in.A+2), *reg(r, in.A+1) = acc, l, item
			fuel = m.fuel
		case code.FoldPair:
			l := *reg(r, in.A+1)
			if l&tagMask == tagCons {
				f := fuel - code.Depth1
				hp := m.hp
				if f < 0 || hp+16 > m.hlim {
					goto slow
				}
				fuel = f
				*heapWord(hb, word(hp)) = *reg(r, in.A)
				*heapWord(hb, word(hp)+8) = *heapWord(hb, l-tagCons)
				m.hp = hp + 16
				*reg(r, in.A+1) = word(hp) | tagPair
				*reg(r, in.A+2) = *heapWord(hb, l-tagCons+8)
			} else if l == wNil {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			} else {
				goto slow
			}
		case code.FoldPLoop:
			l := *reg(r, in.A+2)
			if l == wNil {
				fuel += code.Depth1
				break
			}
			hp := m.hp
			if l&tagMask != tagCons || hp+16 > m.hlim {
				goto slow
			}
			f := fuel + in.K
			if spent(f) {
				goto slow
			}
			fuel = f
			*heapWord(hb, word(hp)) = *reg(r, in.A)
			*heapWord(hb, word(hp)+8) = *heapWord(hb, l-tagCons)
			m.hp = hp + 16
			*reg(r, in.A+1) = word(hp) | tagPair
			*reg(r, in.A+2) = *heapWord(hb, l-tagCons+8)
			ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
		case code.FoldFn:
			l := *reg(r, in.A+2)
			if l&tagMask != tagCons && l != wNil || *reg(r, in.A)&tagMask != tagClosure {
				goto slow
			}
			if l == wNil {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			}
		case code.FoldCall:
			l := *reg(r, in.A+2)
			if l == wNil {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
				break
			}
			hp := m.hp
			if l&tagMask != tagCons || hp+16 > m.hlim {
				goto slow
			}
			*heapWord(hb, word(hp)) = *reg(r, in.A+1)
			*heapWord(hb, word(hp)+8) = *heapWord(hb, l-tagCons)
			m.hp = hp + 16
			*reg(r, in.A+3) = *reg(r, in.A)
			*reg(r, in.A+4) = word(hp) | tagPair
			*reg(r, in.A+2) = *heapWord(hb, l-tagCons+8)

		case code.Get:
			goto field
		case code.GetK:
			goto field
		case code.Round:
			goto round
		case code.At:
			if *reg(r, in.Unpacked(1))&1 != 0 {
				goto field
			}
			goto item
		case code.Nth:
			goto item
		case code.Push:
			goto push
		case code.Concat, code.ConcatT:
			goto join
		case code.ToText:
			w := *reg(r, in.Unpacked(0))
			if w&1 == 0 {
				goto digits
			}
			if w&tagMask != tagBox {
				goto slow
			}
			if k := *heapWord(hb, w-tagBox) >> 4 & 15; k != kStr && k != kRope {
				goto slow
			}
			*reg(r, in.A) = w
		case code.PutOwn:
			if *reg(r, in.B) != wTrue {
				goto slow
			}
			goto field
		case code.Length:
			w := *reg(r, in.B)
			if w&tagMask != tagBox {
				goto slow
			}
			if k := *heapWord(hb, w-tagBox) >> 4 & 15; k != kStr && k != kRope {
				goto slow
			}
			*reg(r, in.A) = *heapWord(hb, w-tagBox+8) >> 32 << 1
		case code.Compare:
			a, b := *reg(r, in.Unpacked(0)), *reg(r, in.Unpacked(1))
			if (a|b)&1 != 0 {
				goto slow
			}
			w := word(0)
			if int64(a) < int64(b) {
				w = ^word(1)
			} else if a != b {
				w = 2
			}
			*reg(r, in.A) = w
		case code.Record:
			t := m.consts[in.D]
			n := uintptr(in.B)
			hp := m.hp
			if t == 0 || hp+n*16+16 > m.hlim {
				goto slow
			}
			m.fuel = fuel
			t -= tagBox
			p := unsafe.Add(hb, hp)
			*(*word)(p), *(*word)(unsafe.Add(p, 8)) = *heapWord(hb, t), *heapWord(hb, t+8)
			for i := uintptr(0); i < n; i++ {
				*(*word)(unsafe.Add(p, 16+16*i)) = *heapWord(hb, t+16+word(16*i))
				*(*word)(unsafe.Add(p, 24+16*i)) = *(*word)(unsafe.Add(r, (uintptr(in.C)+i)*8))
			}
			m.hp = hp + n*16 + 16
			*reg(r, in.A) = word(hp) | tagBox
			fuel = m.fuel

		case code.Closure:
			n := uintptr(in.B)
			size := (n + 2) &^ 1 * 8
			hp := m.hp
			if in.C != 0 || n > 6 || hp+size > m.hlim {
				goto slow
			}
			p := unsafe.Add(hb, hp)
			*(*word)(unsafe.Add(p, size-8)) = 0
			*(*word)(p) = word(in.K)
			for i := uintptr(0); i < n; i++ {
				s := int(*(*int16)(unsafe.Add(ip, 4+2*i)))
				if s >= 0 {
					*(*word)(unsafe.Add(p, 8+8*i)) = *(*word)(unsafe.Add(r, s*8))
				} else {
					*(*word)(unsafe.Add(p, 8+8*i)) = *heapWord(hb, *(*word)(r)-tagClosure+8+word(-1-s)*8)
				}
			}
			ip = unsafe.Add(ip, code.InstrSize)
			m.hp = hp + size
			*reg(r, in.A) = word(hp) | tagClosure
		case code.Auth:
			*reg(r, in.A) = fromInt(int64(m.dyn))
		case code.Narrow:
			if h := *heapWord(hb, *reg(r, 0)-tagClosure+8); h != 0 && h != fromInt(int64(m.dyn)) {
				goto slow
			}
		case code.Unpair:
			a := *reg(r, 1)
			if a&tagMask == tagPair {
				*reg(r, 3) = *reg(r, 2)
				*reg(r, 1) = *heapWord(hb, a-tagPair)
				*reg(r, 2) = *heapWord(hb, a-tagPair+8)
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			}
		case code.List:
			n := uintptr(in.B)
			hp := m.hp
			if hp+n*16 > m.hlim {
				goto slow
			}
			l := word(wNil)
			for i := int(n) - 1; i >= 0; i-- {
				*heapWord(hb, word(hp)) = *(*word)(unsafe.Add(r, (int(in.C)+i)*8))
				*heapWord(hb, word(hp)+8) = l
				l = word(hp) | tagCons
				hp += 16
			}
			m.hp = hp
			*reg(r, in.A) = l
		case code.Prim, code.ConsN, code.Rev, code.RecordL, code.Pend, code.Caps, code.Alike,
			code.Eval, code.TailEval, code.CodeOf, code.CodeOfV, code.Cont, code.Restrict, code.Effect, code.CallTool,
			code.Par, code.Branch, code.EndPar, code.Unbound, code.NoSelf, code.Sort, code.Try, code.EndTry,
			code.Restore, code.CallCode, code.CallDone,
			116, 117, 118, 119, 120, 121, 122, 123, 124,
			125, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 139, 140, 141, 142, 143, 144, 145, 146,
			147, 148, 149, 150, 151, 152, 153, 154, 155, 156, 157, 158, 159, 160, 161, 162, 163, 164, 165, 166, 167, 168,
			169, 170, 171, 172, 173, 174, 175, 176, 177, 178, 179, 180, 181, 182, 183, 184, 185, 186, 187, 188, 189, 190,
			191, 192, 193, 194, 195, 196, 197, 198, 199, 200, 201, 202, 203, 204, 205, 206, 207, 208, 209, 210, 211, 212,
			213, 214, 215, 216, 217, 218, 219, 220, 221, 222, 223, 224, 225, 226, 227, 228, 229, 230, 231, 232, 233, 234,
			235, 236, 237, 238, 239, 240, 241, 242, 243, 244, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255:
			// All 256 are cases, so that the jump to them needs no test of its bounds.
			goto slow
		}
		continue

		// What several instructions do.
	equal:
		{
			// Of equal, or a jump on it, where the operands aren't both small integers.
			a, b := *reg(r, in.A), *reg(r, in.B)
			if in.Op == code.Eq {
				a, b = b, *reg(r, in.C)
			}
			same := a == b
			if a&tagMask == tagBox && b&tagMask == tagBox {
				if *heapWord(hb, a-tagBox) != shortText || *heapWord(hb, b-tagBox) != shortText {
					goto slow
				}
				same = *heapWord(hb, a-tagBox+8) == *heapWord(hb, b-tagBox+8) &&
					*heapWord(hb, a-tagBox+16) == *heapWord(hb, b-tagBox+16) &&
					*heapWord(hb, a-tagBox+24) == *heapWord(hb, b-tagBox+24)
			} else if a&tagMask != tagImm && b&tagMask != tagImm {
				goto slow
			}
			if in.Op == code.Eq {
				*reg(r, in.A) = fromBool(same)
			} else if same == (in.Op == code.JEq) {
				fuel += in.K
				ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			}
			continue
		}
	field:
		m.fuel = fuel // so that what follows has registers
		{
			var w, k word
			if in.Op == code.GetK {
				w, k = *reg(r, in.B)-tagBox, m.consts[in.D]-tagBox
			} else {
				w, k = *reg(r, in.Unpacked(0))-tagBox, *reg(r, in.Unpacked(1))-tagBox
			}
			if (w|k)&tagMask != 0 {
				goto stored
			}
			h := *heapWord(hb, w)
			if h>>4&15 != kRecord || *heapWord(hb, k) != shortText {
				goto stored
			}
			// Of short strings the words are alike where the text is.
			size, k0, k1 := *heapWord(hb, k+8), *heapWord(hb, k+16), *heapWord(hb, k+24)
			end := w + h>>8*8
			for w += 16; w < end; w += 16 {
				q := *heapWord(hb, w) - tagBox
				if *heapWord(hb, q+8) == size && *heapWord(hb, q+16) == k0 && *heapWord(hb, q+24) == k1 {
					break
				}
			}
			if w != end {
				if in.Op == code.PutOwn {
					*heapWord(hb, w+8) = *reg(r, in.Unpacked(2))
					*reg(r, in.A) = *reg(r, in.Unpacked(0))
				} else {
					*reg(r, in.A) = *heapWord(hb, w+8)
				}
			} else if in.B == 3 && in.Op == code.Get {
				*reg(r, in.A) = *reg(r, in.Unpacked(2))
			} else {
				goto stored
			}
			goto restored
		}
	item:
		m.fuel = fuel
		{
			w, i := *reg(r, in.Unpacked(0)), *reg(r, in.Unpacked(1))
			if i&1 != 0 {
				goto stored
			}
			if w&tagMask == tagCons {
				if i >= 2*nearCells {
					goto stored
				}
				for ; i > 0; i -= 2 {
					if w = *heapWord(hb, w-tagCons+8); w&tagMask != tagCons {
						goto stored
					}
				}
				*reg(r, in.A) = *heapWord(hb, w-tagCons)
				goto restored
			}
			if w -= tagBox; w&tagMask != 0 || *heapWord(hb, w) != vecHeader || i >= *heapWord(hb, w+24) {
				goto stored
			}
			i = (i + *heapWord(hb, w+16)) >> 1
			node := *heapWord(hb, w+8)
			for s := *heapWord(hb, w+32) >> 1; s > 0; s -= vecBits {
				node = *heapWord(hb, node-tagBox+16+i>>(s&63)&vecMask*8)
			}
			*reg(r, in.A) = *heapWord(hb, node-tagBox+16+i&vecMask*8)
			goto restored
		}
	push:
		m.fuel = fuel
		{
			// As vecAdd does it.
			w := *reg(r, in.Unpacked(0)) - tagBox
			if w&tagMask != 0 || *heapWord(hb, w) != vecHeader || m.hp+vecWords*8 > m.hlim {
				goto stored
			}
			i := (*heapWord(hb, w+16) + *heapWord(hb, w+24)) >> 1
			s := *heapWord(hb, w+32) >> 1
			node := *heapWord(hb, w+8) - tagBox
			if i>>((s+vecBits)&63) > 0 {
				goto stored
			}
			for ; s > 0; s -= vecBits {
				if i>>(s&63)&vecMask >= *heapWord(hb, node+8)>>1 {
					goto stored
				}
				node = *heapWord(hb, node+16+i>>(s&63)&vecMask*8) - tagBox
			}
			i &= vecMask
			if *heapWord(hb, node+8) != i<<1 || i+2 >= *heapWord(hb, node)>>8 {
				goto stored
			}
			*heapWord(hb, node+8) = (i + 1) << 1
			*heapWord(hb, node+16+i*8) = *reg(r, in.Unpacked(1))
			node = word(m.hp)
			m.hp += vecWords * 8
			*heapWord(hb, node) = vecHeader
			*heapWord(hb, node+8) = *heapWord(hb, w+8)
			*heapWord(hb, node+16) = *heapWord(hb, w+16)
			*heapWord(hb, node+24) = *heapWord(hb, w+24) + 2
			*heapWord(hb, node+32) = *heapWord(hb, w+32)
			*heapWord(hb, node+40) = 0
			*reg(r, in.A) = node | tagBox
			goto restored
		}

	decimal:
		// Of Add, Sub or Mul: decimals of one word each, or one and an integer.
		m.fuel = fuel
		{
			a, b := *reg(r, in.B), *reg(r, in.C)
			x, y, scale := int64(a)>>1, int64(b)>>1, word(0)
			if a&1 != 0 {
				if a -= tagBox; a&tagMask != 0 || *heapWord(hb, a) != decHeader || *heapWord(hb, a+8)>>1 != 1 {
					goto stored
				}
				if x, scale = int64(*heapWord(hb, a+24)), *heapWord(hb, a+16); uint64(x) > mostLoop {
					goto stored
				}
				if *heapWord(hb, a+8)&1 != 0 {
					x = -x
				}
			}
			if b&1 != 0 {
				if b -= tagBox; b&tagMask != 0 || *heapWord(hb, b) != decHeader || *heapWord(hb, b+8)>>1 != 1 {
					goto stored
				}
				if y = int64(*heapWord(hb, b+24)); uint64(y) > mostLoop {
					goto stored
				}
				if *heapWord(hb, b+8)&1 != 0 {
					y = -y
				}
				b = *heapWord(hb, b+16)
			} else if a = *reg(r, in.B); a&1 == 0 {
				goto stored // an integer that doesn't fit
			} else {
				b = 0
			}
			if uint64(x+mostLoop) > 2*mostLoop || uint64(y+mostLoop) > 2*mostLoop || scale+b > maxShortScale {
				goto stored
			}
			if in.Op == code.Mul {
				x, scale = x*y, scale+b
			} else {
				if scale < b {
					if b-scale >= loopPowers {
						goto stored
					}
					x, scale = x*powers[b-scale], b
				} else if b < scale {
					if scale-b >= loopPowers {
						goto stored
					}
					y *= powers[scale-b]
				}
				if in.Op == code.Sub {
					y = -y
				}
				x += y
			}
			hp := m.hp
			if hp+32 > m.hlim {
				goto stored
			}
			p := unsafe.Add(hb, hp)
			*(*word)(p), *(*word)(unsafe.Add(p, 8)), *(*word)(unsafe.Add(p, 16)), *(*word)(unsafe.Add(p, 24)) = decHeader, 1<<1, scale, word(x)
			if x <= 0 {
				*(*word)(unsafe.Add(p, 8)), *(*word)(unsafe.Add(p, 24)) = 1<<1|1, word(-x)
				if x == 0 {
					*(*word)(unsafe.Add(p, 8)) = 0
				}
			}
			m.hp = hp + 32
			*reg(r, in.A) = word(hp) | tagBox
			goto restored
		}
	join:
		m.ip, m.r, m.fuel = ip, r, fuel
		{
			// Texts that are one of up to 16 bytes together, or where the first grows where it is, as
			// grow does it; the second may be a number.
			a, b, fresh, op, to := *reg(r, in.B)-tagBox, *reg(r, in.C), in.K&code.JoinsFresh != 0, in.Op, in.A
			if a&tagMask != 0 || *heapWord(hb, a)&255 != tagHeader|kStr<<4 || m.hp+48 > m.hlim {
				goto kept
			}
			p := unsafe.Pointer(heapWord(hb, a))
			text, rest, size := word(0), word(0), word(0)
			if b&tagMask == tagBox {
				q := unsafe.Pointer(heapWord(hb, b-tagBox))
				if *(*word)(q) != shortText {
					goto kept
				}
				size, text, rest = *(*word)(unsafe.Add(q, 8)), *(*word)(unsafe.Add(q, 16)), *(*word)(unsafe.Add(q, 24))
			} else {
				if b >= 2e8 || b&1 != 0 || op == code.Concat {
					goto kept
				}
				b >>= 1
				for more := true; more; more = b > 0 {
					q := b * 0xCCCCCCCD >> 35
					text = text<<8 | (b - q*10 + '0')
					size += 1<<32 | 1
					b = q
				}
			}
			hb = m.hb
			at := uintptr(*(*uint32)(unsafe.Add(p, 8)))
			size += *(*word)(unsafe.Add(p, 8))
			if end := uintptr(uint32(size)); end > 16 || at == 0 {
				old := uintptr(*(*word)(p) >> 8 * 8)
				if !fresh || uintptr(p)-uintptr(hb)+old != m.hp || end > mostGrown {
					goto kept
				}
				if end = (end+15)&^15 + 16; end > old {
					*(*word)(p) = tagHeader | kStr<<4 | word(end)<<5
					*(*word)(unsafe.Add(p, end-16)), *(*word)(unsafe.Add(p, end-8)) = 0, 0
					m.hp += end - old
				}
				*(*word)(unsafe.Add(p, 8)) = size
				*(*word)(unsafe.Add(p, 16+at)), *(*word)(unsafe.Add(p, 24+at)) = text, rest
			} else {
				if at *= 8; at < 64 {
					rest = text>>1>>(63-at) | rest<<at
					text = text<<at | *(*word)(unsafe.Add(p, 16))
				} else {
					rest = text<<(at&63) | *(*word)(unsafe.Add(p, 24))
					text = *(*word)(unsafe.Add(p, 16))
				}
				if !fresh || uintptr(p)-uintptr(hb)+32 != m.hp {
					p = unsafe.Add(hb, m.hp)
					m.hp += 32
				}
				*(*word)(p), *(*word)(unsafe.Add(p, 8)), *(*word)(unsafe.Add(p, 16)), *(*word)(unsafe.Add(p, 24)) = shortText, size, text, rest
			}
			r, ip = m.r, m.ip
			*reg(r, to) = word(uintptr(p)-uintptr(hb)) | tagBox
			if op == code.ConcatT {
				ip = unsafe.Add(ip, 2*code.InstrSize)
			}
			goto restored
		}
	digits:
		m.fuel = fuel
		{
			// The text of a number of up to eight digits, the first in the lowest byte.
			w, text, size := *reg(r, in.Unpacked(0))>>1, word(0), word(0)
			if w >= 1e8 || m.hp+32 > m.hlim {
				goto stored
			}
			for more := true; more; more = w > 0 {
				q := w * 0xCCCCCCCD >> 35 // w / 10
				text = text<<8 | (w - q*10 + '0')
				size += 1<<32 | 1
				w = q
			}
			p := unsafe.Add(hb, m.hp)
			*(*word)(p), *(*word)(unsafe.Add(p, 8)), *(*word)(unsafe.Add(p, 16)), *(*word)(unsafe.Add(p, 24)) = shortText, size, text, 0
			*reg(r, in.A) = word(m.hp) | tagBox
			m.hp += 32
			goto restored
		}
	round:
		m.fuel = fuel
		{
			// Of a decimal of one word to fewer digits.
			a := *reg(r, in.B) - tagBox
			if a&tagMask != 0 || *heapWord(hb, a) != decHeader || *heapWord(hb, a+8)>>1 != 1 {
				goto stored
			}
			by, x := *heapWord(hb, a+16)-word(in.K)>>8&255, *heapWord(hb, a+24)
			if by >= word(len(powers)) || x > math.MaxInt64 || m.hp+32 > m.hlim {
				goto stored
			}
			unit := word(powers[by])
			if unit == 0 {
				goto stored // it never is: the division needs no test of its own
			}
			m.ip, m.r = ip, r
			q := x / unit
			x = (x-q*unit)*2 - unit // not negative as a signed number: half or more is left
			r, ip = m.r, m.ip
			switch in.K >> 16 {
			case code.RoundHalfUp:
				q += 1 - x>>63
			case code.RoundHalfEven:
				q += 1 - (x-1+q&1)>>63
			}
			p := unsafe.Add(hb, m.hp)
			*(*word)(p), *(*word)(unsafe.Add(p, 8)), *(*word)(unsafe.Add(p, 16)), *(*word)(unsafe.Add(p, 24)) = decHeader, *heapWord(hb, a+8), word(in.K)>>8&255, q
			if q == 0 {
				*(*word)(unsafe.Add(p, 8)) = 0
			}
			*reg(r, in.A) = word(m.hp) | tagBox
			m.hp += 32
			goto restored
		}
	restored:
		fuel = m.fuel
	}
stored:
	m.ip, m.r = ip, r
kept:
	return exitSlow
slow:
	m.ip, m.r, m.fuel = ip, r, fuel
	return exitSlow
}
