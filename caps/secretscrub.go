package caps

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Scrubber takes the values of secrets out of texts and puts their marks there,
// [secret NAME]. It knows a value as it is; in base64, at any place of what was
// encoded; in hexadecimal; and each of these with any of its characters escaped as
// in URLs, JSON, HTML and most languages, twice over too. What somebody made of a
// value in another way (a hash, a part, its reverse) it can't know. A nil Scrubber
// changes nothing. It is safe for concurrent use.
type Scrubber struct {
	forms []form
	// starts is the forms that a character can begin.
	starts [256][]int
	// longest is the bytes that a form can have, escaped.
	longest int
	// digits are the values that a number can have.
	digits bool
}

// A form is one way to write a value.
type form struct {
	text, mark string
	// fold is set where letters of either case are the same.
	fold bool
	// before and after are set where the neighbouring characters of base64 have
	// bits of the value, too.
	before, after bool
}

// NewScrubber makes a scrubber of values; nil if there are none.
func NewScrubber(secrets []*Secret) *Scrubber {
	if len(secrets) == 0 {
		return nil
	}
	s := &Scrubber{}
	for _, secret := range secrets {
		v, mark := secret.Value(), secretMark(secret.Name)
		s.add(form{text: v, mark: mark})
		s.add(form{text: hex.EncodeToString([]byte(v)), mark: mark, fold: true})
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for offset := range 3 {
				s.add(base64Form(v, mark, offset, encoding))
			}
		}
		s.digits = s.digits || strings.Trim(v, "-.0123456789") == ""
	}
	for i, f := range s.forms {
		for b := range 256 {
			if fits(byte(b), f.text[0], f.fold) {
				s.starts[b] = append(s.starts[b], i)
			}
		}
		s.longest = max(s.longest, mostSpelled*len(f.text))
	}
	return s
}

func (s *Scrubber) add(f form) {
	if !slices.Contains(s.forms, f) {
		s.forms = append(s.forms, f)
	}
}

// base64Form is the characters that a value alone decides where so many bytes
// (modulo 3) come before it.
func base64Form(v, mark string, offset int, e *base64.Encoding) form {
	encoded := e.EncodeToString(append(make([]byte, offset), v...))
	bits := 8 * (offset + len(v))
	return form{
		text: encoded[(8*offset+5)/6 : bits/6], mark: mark,
		before: offset > 0, after: bits%6 > 0,
	}
}

// Text gives a text without the values.
func (s *Scrubber) Text(text string) string {
	if s == nil {
		return text
	}
	var out []byte
	done := 0 // what of text is in out, or was left out
	for i := 0; i < len(text); {
		f, end := s.match(text, i)
		if f == nil {
			i++
			continue
		}
		from := i
		if f.before && from > done && isBase64(text[from-1]) {
			from--
		}
		if f.after && end < len(text) && isBase64(text[end]) {
			end++
		}
		out = append(append(out, text[done:from]...), f.mark...)
		done, i = end, end
	}
	if done == 0 {
		return text
	}
	return string(append(out, text[done:]...))
}

// Cut is [Scrubber.Text] for a text whose end may have been cut off: the beginning
// of a value at the end of it goes, too.
func (s *Scrubber) Cut(text string) string {
	if s == nil {
		return text
	}
	text = s.Text(text)
	whole := strings.TrimRight(text, "…. ")
	for i := max(0, len(whole)-s.longest); i < len(whole); i++ {
		for at := range s.forms {
			f := &s.forms[at]
			if _, got := f.match(whole, i); got >= leastCut {
				return whole[:i] + f.mark + "…"
			}
		}
	}
	return text
}

// leastCut is how many characters of a value at the end of a text are its
// beginning, and no accident.
const leastCut = 4

// match gives the form that begins at i and reaches furthest, and its end.
func (s *Scrubber) match(text string, i int) (best *form, end int) {
	look := func(first byte) {
		for _, at := range s.starts[first] {
			if to, _ := s.forms[at].match(text, i); to > end {
				best, end = &s.forms[at], to
			}
		}
	}
	if !escapes(text[i]) {
		look(text[i])
		return best, end
	}
	var room [mostSpellings]spelling
	for _, first := range spellings(room[:0], text, i) {
		look(first.c)
	}
	return best, end
}

// match gives where the form ends that begins at i, 0 where there is none; and,
// where the text ends before it does, how much of the form there is.
func (f *form) match(text string, i int) (end, partial int) {
	var a, b [8]int
	here, next := append(a[:0], i), b[:0]
	for n := range len(f.text) {
		for _, at := range here {
			if at == len(text) || len(text)-at < mostSpelled && escapes(text[at]) {
				partial = n // maybe, if this is an escape that was cut
			}
		}
		next = next[:0]
		for _, at := range here {
			next = spelled(next, text, at, f.text[n], f.fold)
		}
		if len(next) == 0 {
			return 0, partial
		}
		partial = 0
		here, next = next, here
	}
	return slices.Max(here), 0
}

// What escapes may take: so many backslashes before a character, so many times a
// percent sign's own escape. mostSpelled is the bytes of the longest spelling,
// mostSpellings how many there may be at one place.
const (
	mostSlashes   = 8
	mostPercent   = 3
	mostSpelled   = 16
	mostSpellings = mostSlashes + 2
)

// A spelling is a character as it may be written, and where that ends.
type spelling struct {
	c   byte
	end int
}

// spellings adds the characters that may be written at i, as they are and escaped.
func spellings(to []spelling, text string, i int) []spelling {
	if i >= len(text) {
		return to
	}
	add := func(n, end int) {
		if n >= 0 && n < 128 {
			to = append(to, spelling{byte(n), end})
		}
	}
	entity := func(from int) { // amp; #38; #x26;
		name, _, closed := strings.Cut(text[from:min(len(text), from+11)], ";")
		if !closed {
			return
		}
		end := from + len(name) + 1
		if number, isNumber := strings.CutPrefix(name, "#"); !isNumber {
			if c, ok := entities[name]; ok {
				add(int(c), end)
			}
		} else if number != "" && lower(number[0]) == 'x' {
			add(ascii(number[1:], 16), end)
		} else {
			add(ascii(number, 10), end)
		}
	}
	digits := func(from, n int) {
		if from+n <= len(text) {
			add(ascii(text[from:from+n], 16), from+n)
		}
	}
	to = append(to, spelling{text[i], i + 1})
	switch text[i] {
	case '%': // %2B, %252B
		at := i + 1
		for range mostPercent {
			digits(at, 2)
			if !strings.HasPrefix(text[at:], "25") {
				break
			}
			at += 2
		}
	case '\\': // \/ \" \\ \u002B \x2B
		at := i
		for at < len(text) && at-i < mostSlashes && text[at] == '\\' {
			if at++; at-i > 1 {
				add('\\', at)
			}
		}
		switch {
		case at == len(text):
		case text[at] == 'u':
			digits(at+1, 4)
			if strings.HasPrefix(text[at:], "u0026") {
				entity(at + 5)
			}
		case text[at] == 'x':
			digits(at+1, 2)
		case !isLetterOrDigit(text[at]) && text[at] != '\\':
			to = append(to, spelling{text[at], at + 1})
		}
	case '&': // &#43; &#x2B; &amp;
		entity(i + 1)
	}
	return to
}

// ascii is the number of less than 128 that digits write; -1: they write none.
func ascii(digits string, base int) int {
	n := 0
	for i := range len(digits) {
		d := strings.IndexByte("0123456789abcdef", lower(digits[i]))
		if d < 0 || d >= base {
			return -1
		}
		if n = n*base + d; n >= 128 {
			return -1
		}
	}
	if digits == "" {
		return -1
	}
	return n
}

// escapes tells the characters that an escape begins with.
func escapes(c byte) bool { return c == '%' || c == '\\' || c == '&' }

// fits reports whether a character that is written may be one of the form's.
func fits(got, c byte, fold bool) bool {
	return got == c || fold && lower(got) == lower(c) || got == '+' && c == ' '
}

// spelled adds the ends of the spellings of a character that begin at i, each once
// and at most 8 altogether.
func spelled(ends []int, text string, i int, c byte, fold bool) []int {
	if i < len(text) && !escapes(text[i]) {
		if fits(text[i], c, fold) && len(ends) < 8 && !slices.Contains(ends, i+1) {
			ends = append(ends, i+1)
		}
		return ends
	}
	var room [mostSpellings]spelling
	for _, at := range spellings(room[:0], text, i) {
		if fits(at.c, c, fold) && len(ends) < 8 && !slices.Contains(ends, at.end) {
			ends = append(ends, at.end)
		}
	}
	return ends
}

// entities is what HTML calls the characters that it has to escape.
var entities = map[string]byte{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// isBase64 tells the characters of both alphabets.
func isBase64(c byte) bool {
	return isLetterOrDigit(c) || strings.IndexByte("+/-_", c) >= 0
}

func isLetterOrDigit(c byte) bool {
	return c >= '0' && c <= '9' || lower(c) >= 'a' && lower(c) <= 'z'
}

// codeText is a quoted term as it is written.
func codeText(c *value.Code) string { return string(text.Canonical(c.Term)) }

// Value gives a value without the secrets' in its texts, keys and, where a secret
// could be one, numbers. What has none is given as it is.
func (s *Scrubber) Value(v value.Value) value.Value {
	if s == nil {
		return v
	}
	v, _ = s.value(v)
	return v
}

func (s *Scrubber) value(v value.Value) (_ value.Value, changed bool) {
	switch v := v.(type) {
	case value.Str:
		text := s.Text(string(v))
		return value.Str(text), text != string(v)
	case value.Int:
		if s.digits && v.Words() > maxLooked {
			return value.Str("[an integer too large to look for secrets in]"), true
		}
		return s.number(v, v.String)
	case value.Dec:
		return s.number(v, v.String)
	case *value.Pair:
		first, one := s.value(v.First)
		second, two := s.value(v.Second)
		if one || two {
			return &value.Pair{First: first, Second: second}, true
		}
	case *value.Cons:
		items, ok := value.Slice(v)
		if !ok {
			return v, false
		}
		for i, item := range items {
			clean, is := s.value(item)
			items[i], changed = clean, changed || is
		}
		if changed {
			return value.FromSlice(items), true
		}
	case *value.Record:
		return s.record(v)
	case *value.Code:
		if v.Term != nil {
			written := codeText(v)
			if clean := s.Text(written); clean != written {
				return value.Str(clean), true
			}
		}
	}
	return v, false
}

// maxLooked is how many words an integer may have, the digits of which are worked out in one piece.
const maxLooked = 32 << 10

// number hides a number that has a value's digits in it.
func (s *Scrubber) number(v value.Value, digits func() string) (value.Value, bool) {
	if !s.digits {
		return v, false
	}
	text := digits()
	clean := s.Text(text)
	if clean == text {
		return v, false
	}
	return value.Str(clean), true
}

// record hides what is in members and in their names. Names that are the same
// afterwards are told apart by numbers.
func (s *Scrubber) record(r *value.Record) (value.Value, bool) {
	changed, renamed := false, false
	fields := make([]value.Field, len(r.Fields))
	for i, f := range r.Fields {
		item, is := s.value(f.Value)
		key := s.Text(f.Key)
		fields[i] = value.Field{Key: key, Value: item}
		renamed = renamed || key != f.Key
		changed = changed || is || renamed
	}
	if !changed {
		return r, false
	}
	if renamed {
		taken := map[string]bool{}
		for i := range fields {
			key := fields[i].Key
			for n := 2; taken[fields[i].Key]; n++ {
				fields[i].Key = key + " " + strconv.Itoa(n)
			}
			taken[fields[i].Key] = true
		}
		slices.SortFunc(fields, func(a, b value.Field) int { return strings.Compare(a.Key, b.Key) })
	}
	return &value.Record{Fields: fields}, true
}
