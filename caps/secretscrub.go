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
	// starts is the forms that a byte can begin.
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
			if len(spelled(nil, string([]byte{byte(b)}), 0, f.text[0], f.fold)) > 0 || strings.IndexByte(`%\&`, byte(b)) >= 0 {
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
		for _, at := range s.starts[whole[i]] {
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
	for _, at := range s.starts[text[i]] {
		if to, _ := s.forms[at].match(text, i); to > end {
			best, end = &s.forms[at], to
		}
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
			if at == len(text) || len(text)-at < mostSpelled && strings.IndexByte(`%\&`, text[at]) >= 0 {
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
// percent sign's own escape. mostSpelled is the bytes of the longest spelling.
const (
	mostSlashes = 8
	mostPercent = 3
	mostSpelled = 16
)

// spelled adds the ends of the spellings of a character that begin at i, each once
// and at most 8 altogether.
func spelled(ends []int, text string, i int, c byte, fold bool) []int {
	if i >= len(text) {
		return ends
	}
	add := func(end int) {
		if len(ends) < 8 && !slices.Contains(ends, end) {
			ends = append(ends, end)
		}
	}
	is := func(got byte) bool { return got == c || fold && lower(got) == lower(c) || got == '+' && c == ' ' }
	code := func(from, digits, base int) {
		if from+digits > len(text) {
			return
		}
		if n, err := strconv.ParseUint(text[from:from+digits], base, 32); err == nil && n < 128 && is(byte(n)) {
			add(from + digits)
		}
	}
	entity := func(from int) { // amp; #38; #x26;
		name, _, closed := strings.Cut(text[from:min(len(text), from+11)], ";")
		if !closed {
			return
		}
		number, isNumber := strings.CutPrefix(name, "#")
		base := 10
		if isNumber && number != "" && lower(number[0]) == 'x' {
			number, base = number[1:], 16
		}
		if n, err := strconv.ParseUint(number, base, 32); isNumber && err == nil && n < 128 && is(byte(n)) {
			add(from + len(name) + 1)
		} else if named, ok := entities[name]; ok && is(named) {
			add(from + len(name) + 1)
		}
	}
	if is(text[i]) {
		add(i + 1)
	}
	switch text[i] {
	case '%': // %2B, %252B
		at := i + 1
		for range mostPercent {
			code(at, 2, 16)
			if !strings.HasPrefix(text[at:], "25") {
				break
			}
			at += 2
		}
	case '\\': // \/ \" \\ \u002B \x2B
		at := i
		for at < len(text) && at-i < mostSlashes && text[at] == '\\' {
			at++
			if c == '\\' && at-i > 1 {
				add(at)
			}
		}
		switch {
		case at == len(text):
		case text[at] == 'u':
			code(at+1, 4, 16)
			if strings.HasPrefix(text[at:], "u0026") {
				entity(at + 5)
			}
		case text[at] == 'x':
			code(at+1, 2, 16)
		case is(text[at]) && !isLetterOrDigit(c) && c != '\\':
			add(at + 1)
		}
	case '&': // &#43; &#x2B; &amp;
		entity(i + 1)
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
