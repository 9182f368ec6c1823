package stdio

// A scanner finds where JSON values end, and refuses what RFC 8259 doesn't
// allow. It decodes nothing and, below 1,024 levels, allocates nothing; it keeps
// one bit a level instead of recursing, so that a line of a million brackets
// costs a few kilobytes. It doesn't check UTF-8: [utf8.Valid] does that faster
// for a line as a whole.
type scanner struct {
	b       []byte
	deepest int    // the deepest nesting seen in any value so far
	values  int    // how many were seen
	at      int    // where the last failure was noticed; len(b) if the text just ends
	kinds   bits   // what is open: 1 for an object, 0 for an array
	fault   string // what was wrong there
}

// bits is a stack of bits.
type bits struct {
	words []uint64
	n     int
	first [16]uint64
}

func (s *bits) push(object bool) {
	if s.n == 0 {
		s.words = s.first[:]
	}
	w, m := s.n>>6, uint64(1)<<(s.n&63)
	if w == len(s.words) {
		s.words = append(s.words, 0)
	}
	if object {
		s.words[w] |= m
	} else {
		s.words[w] &^= m
	}
	s.n++
}

func (s *bits) top() bool { return s.words[(s.n-1)>>6]>>((s.n-1)&63)&1 == 1 }

// members calls visit with the key (quotes included) and the value of every
// member of the object that starts at b[i], and returns where the object ends,
// or -1. A member is visited once what follows it has been seen, so that the
// visits before a failure are of whole members only.
func (s *scanner) members(i int, visit func(key, value []byte)) int {
	b := s.b
	i = s.space(i + 1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		key := i
		if i = s.key(i); i < 0 {
			return -1
		}
		keyEnd := i
		if i = s.colon(i); i < 0 {
			return -1
		}
		value := s.space(i)
		end := s.value(value)
		if end < 0 {
			return -1
		}
		i = s.space(end)
		if i >= len(b) {
			return s.fail(i, "unexpected end")
		}
		switch b[i] {
		case ',':
			visit(b[key:keyEnd], b[value:end])
			i = s.space(i + 1)
		case '}':
			visit(b[key:keyEnd], b[value:end])
			return i + 1
		default:
			return s.fail(i, "expected , or }")
		}
	}
}

// value returns where the value that starts at b[i] ends, or -1.
func (s *scanner) value(i int) int {
	b := s.b
	s.kinds.n = 0
	for {
		if i >= len(b) {
			return s.fail(i, "unexpected end")
		}
		s.values++
		switch c := b[i]; {
		case c == '"':
			i = s.str(i)
		case c == '{' || c == '[':
			s.kinds.push(c == '{')
			s.deepest = max(s.deepest, s.kinds.n)
			i = s.space(i + 1)
			if i < len(b) && b[i] == c+2 { // '}' and ']' are two after their openers
				s.kinds.n--
				i++
				break
			}
			if c == '{' {
				if i = s.key(i); i >= 0 {
					i = s.colon(i)
				}
				if i < 0 {
					return -1
				}
				i = s.space(i)
			}
			continue
		case c == '-' || '0' <= c && c <= '9':
			i = s.number(i)
		case c == 't':
			i = s.literal(i, "true")
		case c == 'f':
			i = s.literal(i, "false")
		case c == 'n':
			i = s.literal(i, "null")
		default:
			return s.fail(i, "expected a value")
		}
		if i < 0 {
			return -1
		}
		// A value has ended: close what it closes, then go on to the next.
		for {
			if s.kinds.n == 0 {
				return i
			}
			i = s.space(i)
			if i >= len(b) {
				return s.fail(i, "unexpected end")
			}
			object := s.kinds.top()
			if b[i] == ',' {
				i = s.space(i + 1)
				if object {
					if i = s.key(i); i >= 0 {
						i = s.colon(i)
					}
					if i < 0 {
						return -1
					}
					i = s.space(i)
				}
				break
			}
			if object && b[i] != '}' {
				return s.fail(i, "expected , or }")
			}
			if !object && b[i] != ']' {
				return s.fail(i, "expected , or ]")
			}
			s.kinds.n--
			i++
		}
	}
}

func (s *scanner) fail(at int, fault string) int {
	s.at, s.fault = at, fault
	return -1
}

func (s *scanner) space(i int) int {
	for i < len(s.b) {
		switch s.b[i] {
		case ' ', '\t', '\r', '\n':
			i++
		default:
			return i
		}
	}
	return i
}

func (s *scanner) key(i int) int {
	if i >= len(s.b) {
		return s.fail(i, "unexpected end")
	}
	if s.b[i] != '"' {
		return s.fail(i, "expected a key in quotes")
	}
	return s.str(i)
}

func (s *scanner) colon(i int) int {
	i = s.space(i)
	if i >= len(s.b) {
		return s.fail(i, "unexpected end")
	}
	if s.b[i] != ':' {
		return s.fail(i, "expected :")
	}
	return i + 1
}

// str returns where the string that opens at b[i] ends.
func (s *scanner) str(i int) int {
	b := s.b
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			i++
			if i >= len(b) {
				return s.fail(i, "unexpected end")
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					i++
					if i >= len(b) {
						return s.fail(i, "unexpected end")
					}
					if !hexDigit(b[i]) {
						return s.fail(i, "expected a hexadecimal digit")
					}
				}
			default:
				return s.fail(i, "unknown escape")
			}
		case c < 0x20:
			return s.fail(i, "control character in a string")
		}
	}
	return s.fail(i, "unexpected end")
}

func hexDigit(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// number returns where the number at b[i] ends. What may follow a number is the
// caller's concern, so 01 is the number 0 and then something unexpected.
func (s *scanner) number(i int) int {
	if s.b[i] == '-' {
		i++
	}
	if i < len(s.b) && s.b[i] == '0' {
		i++
	} else if i = s.digits(i); i < 0 {
		return -1
	}
	if i < len(s.b) && s.b[i] == '.' {
		if i = s.digits(i + 1); i < 0 {
			return -1
		}
	}
	if i < len(s.b) && s.b[i]|0x20 == 'e' {
		i++
		if i < len(s.b) && (s.b[i] == '+' || s.b[i] == '-') {
			i++
		}
		return s.digits(i)
	}
	return i
}

// digits skips one digit or more.
func (s *scanner) digits(i int) int {
	start := i
	for i < len(s.b) && '0' <= s.b[i] && s.b[i] <= '9' {
		i++
	}
	switch {
	case i > start:
		return i
	case i >= len(s.b):
		return s.fail(i, "unexpected end")
	}
	return s.fail(i, "expected a digit")
}

func (s *scanner) literal(i int, word string) int {
	if len(s.b)-i >= len(word) && string(s.b[i:i+len(word)]) == word {
		return i + len(word)
	}
	return s.fail(i, "expected a value")
}
