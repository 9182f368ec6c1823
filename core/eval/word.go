package eval

import "github.com/mcp-pif/mcp-pif/core/code"

// A word is a value in a register or in the heap. Bit 0 clear: an integer of
// 63 bits, shifted left by one. Otherwise the low four bits are a tag; for
// those that refer to the heap the rest is the byte offset of an object,
// always a multiple of 16.
type word = uint64

const (
	tagCons    = 0x1 // two words: head, tail
	tagPair    = 0x3 // two words
	tagClosure = 0x5 // a header of kind kClosure or kPartial
	tagBox     = 0x7 // a header of another kind
	tagImm     = 0x9 // nil, unit, false, true, the hole
	tagForward = 0xD // the collector's: where the object went
	tagHeader  = 0xF // the first word of an object that has one
	tagMask    = 0xF
)

const (
	wNil   = code.WordNil
	wUnit  = code.WordUnit
	wFalse = code.WordFalse
	wTrue  = code.WordTrue
	wHole  = code.WordHole
)

// The kinds of objects with a header. The header's bits 4–7 are the kind and,
// but for closures, bits 8–55 the size in words with the header, always even.
// A closure's size is in bits 8–27, its code offset / 16 in 28–55 and its
// arity in 56–63.
const (
	kClosure = iota // captured values
	kPartial        // a closure, arguments so far; arity 255, which no call has
	kStr            // bytes | code points << 32, then the bytes
	kRope           // bytes | code points << 32, left, right
	kBig            // sign, limbs; the count of limbs in bits 56–63 is 1 where the last word is padding
	kRecord         // count, then key, value, …; sorted; at most flatFields of them
	kNode           // of a larger record: count, key, value, left, right
	kCode           // index of the machine's codes
	kCont           // input, index of the tool's name
	kDec            // sign and count of limbs as in kBig, scale, limbs
	kVec            // a long list: root, start, length, shift; see vec.go
	kChunk          // of a vector: count, children or items
	kPending        // what a call in the middle of its arguments gave, and how many it used
)

// shortText is the header of a string of 1 to 16 bytes.
const shortText = tagHeader | kStr<<4 | 4<<8

func header(kind, words int) word { return tagHeader | word(kind)<<4 | word(words)<<8 }

func closureHeader(words int, entry int32, arity int) word {
	return word(code.ClosureHeader(words, entry, arity))
}

func headerKind(h word) int { return int(h >> 4 & 15) }

func headerWords(h word) int {
	if k := headerKind(h); k == kClosure || k == kPartial {
		return int(h >> 8 & (1<<20 - 1))
	}
	return int(h >> 8 & (1<<48 - 1))
}

func headerEntry(h word) uintptr { return uintptr(h>>28&(1<<28-1)) * code.InstrSize }

func headerArity(h word) int { return int(h >> 56) }

func isInt(w word) bool { return w&1 == 0 }

func fromInt(v int64) word { return word(v) << 1 }

func toInt(w word) int64 { return int64(w) >> 1 }

func fromBool(b bool) word {
	if b {
		return wTrue
	}
	return wFalse
}

// even rounds a count of words up to a multiple of two.
func even(n int) int { return (n + 1) &^ 1 }
