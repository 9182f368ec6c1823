package parse

import (
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// A node is one JSON value or one key of an object, in document order. The
// nodes of a document are its tape: an object's are itself, then key, value,
// key, value…; an array's are itself and its items.
type node struct {
	off, end uint32 // the bytes of the source
	next     uint32 // index of the first node after this one and all inside it
	meta     uint32 // kind, escaped, and above them members, items or key
}

type kind uint32

const (
	null kind = iota
	yes
	no
	number
	text
	array
	object
)

const (
	kindMask = 0xf
	escaped  = 0x10 // a string with a backslash in it
	fraction = 0x20 // a number with a point or an exponent
	isKey    = 0x40 // a string that is a key
	above    = 8
)

func (n *node) kind() kind { return kind(n.meta & kindMask) }

// count returns an object's members or an array's items.
func (n *node) count() int { return int(n.meta >> above) }

// key returns what the lexer knows of an object's key.
func (n *node) key() uint32 { return n.meta >> above }

const noParent = ^uint32(0)

// A scanner reads JSON to a tape. It can be used again after reset.
type scanner struct {
	src   string
	nodes []node
	dups  []uint32 // keys that stand in their object for the second time
	seen  map[string]struct{}
	// open is the innermost container that is not closed yet.
	open  uint32
	depth int
	lets  bool // one of the keys is let or letrec
}

func (s *scanner) reset(src string) {
	s.src, s.nodes, s.dups, s.open, s.depth, s.lets = src, s.nodes[:0], s.dups[:0], noParent, 0, false
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// scan reads one JSON value and nothing after it; depth is how deep in another
// document it stands. It returns nil, or where and why the source isn't JSON.
func (s *scanner) scan(depth, maxNodes int) *syntax {
	src := s.src
	i := 0
	s.depth = depth
value:
	for i < len(src) && isSpace(src[i]) {
		i++
	}
	if i == len(src) {
		return &syntax{i, wantValue}
	}
	if len(s.nodes) >= maxNodes {
		return &syntax{i, tooMany}
	}
	switch c := src[i]; c {
	case '{', '[':
		if s.depth >= MaxDepth {
			return &syntax{i, tooDeep}
		}
		s.depth++
		at := uint32(len(s.nodes))
		kind, closing := array, byte(']')
		if c == '{' {
			kind, closing = object, '}'
		}
		// Until it is closed, next is the container around it.
		s.nodes = append(s.nodes, node{off: uint32(i), next: s.open, meta: uint32(kind)})
		s.open = at
		i++
		for i < len(src) && isSpace(src[i]) {
			i++
		}
		if i < len(src) && src[i] == closing {
			i++
			s.close(i)
			goto after
		}
		if kind == object {
			goto key
		}
		goto value
	case '"':
		end, meta, bad := lexString(src, i)
		if bad != nil {
			return bad
		}
		s.leaf(i, end, uint32(text)|meta)
		i = end
	case 't':
		if len(src)-i < 4 || src[i:i+4] != "true" {
			return &syntax{i, wantValue}
		}
		s.leaf(i, i+4, uint32(yes))
		i += 4
	case 'f':
		if len(src)-i < 5 || src[i:i+5] != "false" {
			return &syntax{i, wantValue}
		}
		s.leaf(i, i+5, uint32(no))
		i += 5
	case 'n':
		if len(src)-i < 4 || src[i:i+4] != "null" {
			return &syntax{i, wantValue}
		}
		s.leaf(i, i+4, uint32(null))
		i += 4
	default:
		if c != '-' && (c < '0' || c > '9') {
			return &syntax{i, wantValue}
		}
		end, meta, bad := lexNumber(src, i)
		if bad != nil {
			return bad
		}
		s.leaf(i, end, uint32(number)|meta)
		i = end
	}
after:
	for i < len(src) && isSpace(src[i]) {
		i++
	}
	if s.open == noParent {
		if i < len(src) {
			return &syntax{i, wantEnd}
		}
		return nil
	}
	{
		parent := &s.nodes[s.open]
		isObject := parent.kind() == object
		parent.meta += 1 << above
		if i == len(src) {
			return &syntax{i, wantMore}
		}
		switch c := src[i]; {
		case c == ',':
			i++
			if isObject {
				goto key
			}
			goto value
		case c == '}' && isObject:
			i++
			s.duplicates()
			s.close(i)
			goto after
		case c == ']' && !isObject:
			i++
			s.close(i)
			goto after
		}
		return &syntax{i, wantMore}
	}
key:
	for i < len(src) && isSpace(src[i]) {
		i++
	}
	if i == len(src) || src[i] != '"' {
		return &syntax{i, wantKey}
	}
	{
		end, meta, bad := lexString(src, i)
		if bad != nil {
			return bad
		}
		k := uint32(0)
		if meta == 0 {
			k = keys.find(src[i+1 : end-1])
		} else {
			k = keys.find(unescape(src[i+1 : end-1]))
		}
		s.lets = s.lets || k == keyLet || k == keyLetrec
		s.leaf(i, end, uint32(text)|isKey|meta|k<<above)
		i = end
	}
	for i < len(src) && isSpace(src[i]) {
		i++
	}
	if i == len(src) || src[i] != ':' {
		return &syntax{i, wantColon}
	}
	i++
	goto value
}

func (s *scanner) leaf(off, end int, meta uint32) {
	s.nodes = append(s.nodes, node{off: uint32(off), end: uint32(end), next: uint32(len(s.nodes) + 1), meta: meta})
}

// close ends the innermost container before offset end.
func (s *scanner) close(end int) {
	n := &s.nodes[s.open]
	s.open, n.next, n.end = n.next, uint32(len(s.nodes)), uint32(end)
	s.depth--
}

// maxComparedKeys is how many keys are compared with each other before a map is worth it.
const maxComparedKeys = 16

// duplicates looks for keys that stand twice in the innermost object.
func (s *scanner) duplicates() {
	n := s.nodes[s.open].count()
	if n < 2 {
		return
	}
	first := s.open + 1
	end := uint32(len(s.nodes))
	if n > maxComparedKeys {
		if s.seen == nil {
			s.seen = make(map[string]struct{}, n)
		}
		clear(s.seen)
		for k := first; k < end; k = s.nodes[k+1].next {
			name := s.string(k)
			if _, dup := s.seen[name]; dup {
				s.dups = append(s.dups, k)
			}
			s.seen[name] = struct{}{}
		}
		return
	}
	for k := s.nodes[first+1].next; k < end; k = s.nodes[k+1].next {
		for j := first; j < k; j = s.nodes[j+1].next {
			if s.same(j, k) {
				s.dups = append(s.dups, k)
				break
			}
		}
	}
}

func (s *scanner) same(j, k uint32) bool {
	a, b := &s.nodes[j], &s.nodes[k]
	if (a.meta|b.meta)&escaped != 0 {
		return s.string(j) == s.string(k)
	}
	return s.src[a.off:a.end] == s.src[b.off:b.end]
}

// string returns the value of a string or key. It shares the source's bytes unless
// something in it is escaped.
func (s *scanner) string(i uint32) string {
	n := &s.nodes[i]
	raw := s.src[n.off+1 : n.end-1]
	if n.meta&escaped == 0 {
		return raw
	}
	return unescape(raw)
}

// lexString reads the string that begins at src[i], a quote; end is after its
// closing quote.
func lexString(src string, i int) (end int, meta uint32, bad *syntax) {
	start := i + 1
	wide := byte(0)
	for j := start; j < len(src); j++ {
		c := src[j]
		if c == '"' {
			if wide >= utf8.RuneSelf && !utf8.ValidString(src[start:j]) {
				return 0, 0, &syntax{start + display.InvalidAt(src[start:j]), badUTF8}
			}
			return j + 1, meta, nil
		}
		if c == '\\' {
			meta = escaped
			_, n, half := json.Unescape(src, j)
			switch {
			case half:
				return 0, 0, &syntax{j, loneSurrogate}
			case n == 0:
				return 0, 0, &syntax{j, badEscape}
			}
			j += n - 1
			continue
		}
		if c < ' ' {
			return 0, 0, &syntax{j, control}
		}
		wide |= c
	}
	return 0, 0, &syntax{i, openString}
}

// unescape returns the value of what stands between a string's quotes. The
// escapes in it are known to be right.
func unescape(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			b = append(b, s[i])
			i++
			continue
		}
		c, n, _ := json.Unescape(s, i)
		b = utf8.AppendRune(b, c)
		i += n
	}
	return string(b)
}

// lexNumber reads the number that begins at src[i].
func lexNumber(src string, i int) (end int, meta uint32, bad *syntax) {
	j := i
	if src[j] == '-' {
		j++
	}
	whole := digits(src, j)
	switch {
	case whole == 0:
		return 0, 0, &syntax{i, badNumber}
	case whole > 1 && src[j] == '0':
		return 0, 0, &syntax{i, leadingZero}
	}
	j += whole
	total := whole
	if j < len(src) && src[j] == '.' {
		meta = fraction
		n := digits(src, j+1)
		if n == 0 {
			return 0, 0, &syntax{i, badNumber}
		}
		total += n
		j += n + 1
	}
	if total > MaxDigits {
		return 0, 0, &syntax{i, tooManyDigits}
	}
	if j < len(src) && src[j]|0x20 == 'e' {
		meta = fraction
		j++
		minus := false
		if j < len(src) && (src[j] == '+' || src[j] == '-') {
			minus = src[j] == '-'
			j++
		}
		n := digits(src, j)
		if n == 0 {
			return 0, 0, &syntax{i, badNumber}
		}
		exp := 0
		for _, c := range []byte(src[j : j+n]) {
			if exp = exp*10 + int(c-'0'); exp > MaxDigits {
				return 0, 0, &syntax{i, tooManyDigits}
			}
		}
		if !minus && whole+exp > MaxDigits {
			return 0, 0, &syntax{i, tooManyDigits}
		}
		j += n
	}
	return j, meta, nil
}

func digits(s string, i int) int {
	j := i
	for j < len(s) && s[j]-'0' <= 9 {
		j++
	}
	return j - i
}

// keys knows the operation keys of the table.
var (
	keys              = newKeyTable()
	keyLet, keyLetrec = keys.find("let"), keys.find("letrec")
)

// A keyTable finds a name's row without allocation: open addressing over the
// few dozen names of the table.
type keyTable struct {
	slots [1024]struct {
		name string
		key  uint32
	}
}

// The value of a key that is not 0 is its row's id plus 1.
func newKeyTable() *keyTable {
	t := new(keyTable)
	if len(prim.Table) > len(t.slots)/2 {
		panic("parse: the key table is too small")
	}
	for i := range prim.Table {
		if r := &prim.Table[i]; r.Operation() {
			h := hash(r.Name)
			for t.slots[h].key != 0 {
				h = (h + 1) % uint32(len(t.slots))
			}
			t.slots[h].name, t.slots[h].key = r.Name, uint32(i)+1
		}
	}
	return t
}

func hash(s string) uint32 {
	n := len(s)
	h := uint32(n)*0x9e3779b1 ^ uint32(s[0])*0x85ebca6b ^ uint32(s[n-1])*0xc2b2ae35 ^ uint32(s[n/2])*0x27d4eb2f
	return (h ^ h>>15) % 1024
}

func (t *keyTable) find(s string) uint32 {
	if len(s) == 0 {
		return 0
	}
	for h := hash(s); ; h = (h + 1) % 1024 {
		if e := &t.slots[h]; e.key == 0 || e.name == s {
			return e.key
		}
	}
}
