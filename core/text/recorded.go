package text

import (
	"errors"
	"fmt"
	"hash"
	"math"
	"math/big"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// MaxNesting is how deep a value may nest to be recorded.
const MaxNesting = 1000

// The ways in which a value can't be recorded.
var (
	ErrNesting = fmt.Errorf("it nests deeper than %d", MaxNesting)
	ErrSize    = errors.New("it is larger as JSON than the run's memory")
)

// AppendRecorded appends a value as it is recorded: as it is shown, but so that
// reading it gives the very value back, with quoted code as {"quote":T}. It fails
// with [ErrSize] past max bytes, having written hardly more, with [ErrNesting],
// and for functions and continuations.
func AppendRecorded(dst []byte, v value.Value, max int64) ([]byte, error) {
	w := Writer{out: dst, keep: math.MaxInt, max: max}
	w.value(v, asRecord)
	return w.out, w.recordError()
}

// HashRecorded writes to h what [AppendRecorded] appends, in pieces, and returns
// how many bytes that was.
func HashRecorded(h hash.Hash, v value.Value, max int64) (int64, error) {
	w := Writer{keep: math.MaxInt, max: max}
	w.drain = func(b []byte) { h.Write(b) }
	w.value(v, asRecord)
	w.flush()
	return w.total, w.recordError()
}

// AppendRecordedString appends a string as it is recorded.
func AppendRecordedString(dst []byte, s string) []byte {
	if verbatim(s) {
		return append(append(append(dst, '"'), s...), '"')
	}
	w := Writer{out: dst, keep: math.MaxInt, max: math.MaxInt64}
	w.string(s, asRecord)
	return w.out
}

// MeasureRecorded returns how many bytes [AppendRecorded] appends, where that is
// no more than max; of more it tells only that it is more, and so of an integer of
// over a million digits. How deep a value nests doesn't matter; one with a function or
// a continuation is measured up to there. steps is what writing it takes, as
// to_json counts them; it ends soon after those are more than left. stop, where not
// nil, is asked from time to time whether to give up.
func MeasureRecorded(v value.Value, max int64, left uint64, stop func() bool) (size int64, steps uint64) {
	w := Writer{max: max, anyDepth: true}
	cost := func() uint64 { return prim.WriteCost(uint64(min(w.total, max)), w.parts) }
	w.Stop = func() bool { return cost() > left || stop != nil && stop() }
	w.value(v, asRecord)
	return min(w.total, max+1), cost()
}

// CheckRecorded returns why [AppendRecorded] would fail, or nil.
func CheckRecorded(v value.Value, max int64) error {
	w := Writer{max: max}
	w.value(v, asRecord)
	return w.recordError()
}

func (w *Writer) recordError() error {
	switch {
	case w.err != nil:
		return w.err
	case w.stopped:
		return errors.New("it wasn't wanted any more")
	case w.total > w.max:
		return ErrSize
	}
	return nil
}

// recordable reports whether a value that has so many around it can be recorded,
// as far as it shows before its parts are looked at.
func (w *Writer) recordable(v value.Value, depth int) bool {
	if depth > MaxNesting && !w.anyDepth {
		w.err = ErrNesting
	} else if k, ok := v.(*value.Continuation); ok {
		w.refuse(k)
	}
	return w.err == nil
}

func (w *Writer) refuse(v value.Value) { w.err = fmt.Errorf("a %s can't be recorded", v.Type()) }

// isMarker reports whether an object whose first key this is, is no record.
func isMarker(key string) bool { return key == "quote" || Wrapped(key) }

// recordBig writes an integer that doesn't fit 64 bits.
func (w *Writer) recordBig(v value.Int) {
	if v.Words() == 1 {
		w.Raw(v.String())
		return
	}
	abs := v.Big()
	if abs.BitLen() > maxIntDigits*10/3 {
		w.total = w.max + 1 // working out the digits takes more than its bytes say
		return
	}
	w.Raw(`{"int":"`)
	if abs.Sign() < 0 {
		w.Byte('-')
		abs = new(big.Int).Neg(abs)
	}
	w.digits(abs, int64(float64(abs.BitLen()-1)*math.Log10(2)))
	w.Raw(`"}`)
}

// string writes a string in a style. What is recorded escapes the ends of lines of
// JavaScript, too, and has no bytes that aren't UTF-8.
func (w *Writer) string(s string, as style) {
	if as != asRecord {
		w.String(s)
		return
	}
	if verbatim(s) {
		w.Byte('"')
		w.Raw(s)
		w.Byte('"')
		return
	}
	w.Byte('"')
	start := 0
	for i := 0; i < len(s) && !w.Full(); {
		if i-start >= lookEvery {
			w.Raw(s[start:i])
			start = i
		}
		escape, n := "", 1
		if c := s[i]; c < utf8.RuneSelf {
			escape = json.Escape(c)
		} else {
			var r rune
			switch r, n = utf8.DecodeRuneInString(s[i:]); {
			case r == '\u2028':
				escape = `\u2028`
			case r == '\u2029':
				escape = `\u2029`
			case r == utf8.RuneError && n == 1:
				escape = `\ufffd`
			}
		}
		if escape != "" {
			w.Raw(s[start:i])
			w.Raw(escape)
			start = i + n
		}
		i += n
	}
	w.Raw(s[start:])
	w.Byte('"')
}

// verbatim reports whether a string is all printable ASCII that JSON doesn't escape,
// eight bytes at a time: what is borrowed, or has a high bit, is not.
func verbatim(s string) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for len(s) >= 8 {
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		quote, slash, del := w^ones*'"', w^ones*'\\', w^ones*0x7f
		if (w|(w-ones*' ')|(quote-ones)|(slash-ones)|(del-ones))&high != 0 {
			return false
		}
		s = s[8:]
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			return false
		}
	}
	return true
}
