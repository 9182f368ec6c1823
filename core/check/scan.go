package check

// A scan goes through JSON without a stack, however deep it nests. What is no
// JSON it stops at: whoever reads the data says what is wrong with it.
type scan struct {
	src []byte
	at  int
}

// space goes on to what isn't white space, and gives it; 0: there is nothing.
func (s *scan) space() byte {
	for ; s.at < len(s.src); s.at++ {
		switch c := s.src[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// string goes past a string, if one begins here.
func (s *scan) string() bool {
	if s.at >= len(s.src) || s.src[s.at] != '"' {
		return false
	}
	for s.at++; s.at < len(s.src); s.at++ {
		switch s.src[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return true
		}
	}
	s.at = len(s.src)
	return false
}

// word goes past a number, or another value without parts.
func (s *scan) word() bool {
	from := s.at
	for ; s.at < len(s.src); s.at++ {
		switch s.src[s.at] {
		case ',', ':', ']', '}', '[', '{', '"', ' ', '\t', '\n', '\r':
			return s.at > from
		}
	}
	return s.at > from
}

// value goes past a value.
func (s *scan) value() bool {
	for depth := 0; ; {
		switch c := s.space(); c {
		case 0:
			return false
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			depth--
			s.at++
		case ',', ':':
			if depth == 0 {
				return false
			}
			s.at++
			continue
		case '"':
			if !s.string() {
				return false
			}
		default:
			if !s.word() {
				return false
			}
		}
		if depth <= 0 {
			return depth == 0
		}
	}
}

// object goes past an object. member is given each key as it stands there, in
// quotes, and goes past the value.
func (s *scan) object(member func(key []byte) bool) bool {
	return s.parts('{', '}', func() bool {
		from := s.at
		if !s.string() {
			return false
		}
		key := s.src[from:s.at]
		if s.space() != ':' {
			return false
		}
		s.at++
		s.space()
		return member(key)
	})
}

// parts goes past an array or an object, part by part.
func (s *scan) parts(open, end byte, part func() bool) bool {
	if s.space() != open {
		return false
	}
	s.at++
	if s.space() == end {
		s.at++
		return true
	}
	for {
		s.space()
		if !part() {
			return false
		}
		switch s.space() {
		case end:
			s.at++
			return true
		case ',':
			s.at++
		default:
			return false
		}
	}
}
