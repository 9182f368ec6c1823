package text

import (
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Writer collects JSON: its first bytes, and the length of all. It is how a
// result of any size is encoded in bounded time and memory: past Max bytes it
// is full, and whoever writes stops.
//
// The zero value keeps nothing and is full at once; use [NewWriter].
type Writer struct {
	out   []byte
	keep  int
	max   int64
	total int64
	// Inexact is set when a number was written that readers which take numbers for
	// doubles would round: an integer beyond ±(2^53-1), or a decimal that isn't the
	// shortest one of its double.
	Inexact bool
	// Function is set when a function was written, as "<function>", Pair when a pair was.
	Function, Pair bool
	// Stop, where not nil, is asked from time to time whether to write no
	// more: the writer is full then.
	Stop    func() bool
	stopped bool
	// err is why a value can't be recorded; the writer is full then.
	err      error
	anyDepth bool // what is only measured may nest deeper than [MaxNesting]
	// drain, where not nil, takes what was collected each time that it is much.
	drain  func([]byte)
	look   int64 // Stop is asked when total gets here
	worked int   // see atWork
	// work is the steps that the digits of long integers take; beyond mostWork, if that isn't 0, the writer is full.
	work, mostWork uint64
	parts          uint64 // values written
	inexpressible  inexpressible
	// ten is 10^tens, the last power of ten that was needed.
	ten  *big.Int
	tens int64
}

// inexpressible says what can't be read back as what was written: as data, code
// and continuations; as a term, an integer of more than 4,096 digits; as either, a
// function.
type inexpressible uint8

const (
	notData inexpressible = 1 << iota
	notTerm
	neither = notData | notTerm
)

// NewWriter returns a writer that keeps the first keep bytes and is full past max.
func NewWriter(keep int, max int64) *Writer { return &Writer{keep: keep, max: max} }

// Full reports whether more than max bytes were written.
func (w *Writer) Full() bool { return w.total > w.max || w.stopped || w.err != nil }

// Bytes returns what was kept: the whole, or the first bytes up to a character's
// end.
func (w *Writer) Bytes() []byte {
	if w.total <= int64(len(w.out)) {
		return w.out
	}
	n := len(w.out)
	for n > 0 && n > len(w.out)-utf8.UTFMax && !utf8.RuneStart(w.out[n-1]) {
		n--
	}
	if n > 0 && !utf8.FullRune(w.out[n-1:]) {
		n--
	} else {
		n = len(w.out)
	}
	return w.out[:n]
}

// room returns how many more bytes are kept.
func (w *Writer) room() int { return w.keep - len(w.out) }

// Raw writes s as it is.
func (w *Writer) Raw(s string) {
	w.total += int64(len(s))
	if w.total >= w.look {
		w.look = w.total + lookEvery
		w.stopped = w.stopped || w.Stop != nil && w.Stop()
		w.flush()
	}
	for w.drain != nil && len(s) > lookEvery && !w.stopped {
		w.out = append(w.out, s[:lookEvery]...)
		w.flush()
		s = s[lookEvery:]
		w.stopped = w.Stop != nil && w.Stop()
	}
	if room := w.room(); room < len(s) {
		s = s[:room]
	}
	w.out = append(w.out, s...)
}

// lookEvery is after how many bytes Stop is asked.
const lookEvery = 256 << 10

// flush gives what was collected to drain.
func (w *Writer) flush() {
	if w.drain != nil {
		w.drain(w.out)
		w.out = w.out[:0]
	}
}

// Byte writes one byte.
func (w *Writer) Byte(c byte) {
	w.total++
	if len(w.out) < w.keep {
		w.out = append(w.out, c)
	}
}

// Int writes an integer of 64 bits.
func (w *Writer) Int(n int64) {
	if n > maxExact || n < -maxExact {
		w.Inexact = true
	}
	var buf [20]byte
	w.Raw(string(strconv.AppendInt(buf[:0], n, 10)))
}

// Decimal writes a decimal as a JSON number with a point and without an exponent.
func (w *Writer) Decimal(d value.Dec) {
	s := d.String()
	w.Raw(s)
	if d.Scale() == 0 {
		w.Raw(".0")
	}
	// A double holds 15 digits of any decimal of moderate size.
	if len(s) > 16 && !w.Inexact {
		w.Inexact = !isShortest(s, d)
	}
}

// isShortest reports whether the shortest decimal of the double nearest to d is d.
func isShortest(s string, d value.Dec) bool {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return false
	}
	back, ok := value.ParseDec(strconv.FormatFloat(f, 'g', -1, 64))
	return ok && back.Cmp(d) == 0
}

// Dec writes a decimal as the term that it is.
func (w *Writer) Dec(d value.Dec) {
	w.Raw(`{"dec":"`)
	w.Raw(d.String())
	w.Raw(`"}`)
}

const (
	maxExact = 1<<53 - 1
	// maxDigits is how many digits an integer may have and still be written as
	// a number; the parser takes no more.
	maxDigits = 4096
)

// String writes a string in quotes.
func (w *Writer) String(s string) {
	w.Byte('"')
	for ; len(s) > lookEvery && !w.Full(); s = s[lookEvery:] {
		w.writeEscaped(s[:lookEvery])
	}
	w.writeEscaped(s)
	w.Byte('"')
}

// writeEscaped writes a part of a string in quotes.
func (w *Writer) writeEscaped(s string) {
	json.WriteEscaped(s, func(part string) bool {
		w.Raw(part)
		return !w.Full()
	})
}

// TooLarge returns the fault of a result whose JSON has more than max bytes.
func TooLarge(max int64) *fault.Fault {
	return &fault.Fault{
		Kind:     fault.ResultTooLarge,
		Message:  "the result's JSON is larger than " + strconv.FormatInt(max, 10) + " bytes, the budget of memory",
		Expected: "a result of at most " + strconv.FormatInt(max, 10) + " bytes as JSON",
		Hint:     `Give back less: a part, a count such as {"length":L}, or a sum.`,
	}
}

// AppendString appends s as a JSON string with no more escapes than it needs.
func AppendString(dst []byte, s string) []byte {
	w := Writer{out: dst, keep: math.MaxInt, max: math.MaxInt64}
	w.String(s)
	return w.out
}
