package eval

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// CSV is written and read in the heap, as JSON is, where it is plain: records with the
// same few keys and short values, lines as long as the first, with no carriage return.
// All else, and whatever fails, is left to the table's rows.

// longCell is how many bytes a cell has at most that is written here.
const longCell = 1 << 10

// A csvWriter writes lines behind the last object of the heap.
type csvWriter struct {
	m      *Machine
	to     []byte
	writes int // that the row counts
	spent  uint64
	lone   bool // there is one column, so that an empty value needs quotes
}

func (m *Machine) nativeToCSV(in *code.Instr) (done, stop bool) {
	if in.B > 1 || !m.isList(*m.reg(in.C)) {
		return false, false
	}
	var w csvWriter
	done, stop = m.inFree(in, 256, func() unfit {
		free := m.unused()
		w = csvWriter{m: m, to: free[:0]}
		return w.records(*m.reg(in.C))
	})
	if !done || stop {
		return done, stop
	}
	if m.spend(w.spent + prim.CSVCost(len(w.to), w.writes)) {
		return true, true
	}
	return m.set(in, m.keepText(w.to))
}

func (w *csvWriter) records(list word) unfit {
	m := w.m
	first, n := word(0), 0
	for l := m.walkList(list); ; {
		r, ok := l.next()
		switch {
		case !ok && n > 0:
			return fits
		case !ok || !m.isKind(r, kRecord) || n > 0 && m.recordLen(r) != n || m.recordLen(r) == 0:
			return noForm
		}
		if n == 0 {
			first, n = r, m.recordLen(r)
			w.lone = n == 1
			for i := range n {
				if bad := w.cell(i, m.view(*m.obj(first, 2+2*i))); bad != fits {
					return bad
				}
			}
			w.line()
		}
		m.look(n)
		w.spent += prim.CSVRecordCost(n)
		for i := range n {
			key := *m.obj(r, 2+2*i)
			if mine := *m.obj(first, 2+2*i); key != mine && !bytes.Equal(m.view(key), m.view(mine)) {
				return noForm
			}
			v := *m.obj(r, 3+2*i)
			var buf [24]byte
			text := buf[:0]
			switch {
			case v == wUnit:
			case isInt(v) || v == wTrue || v == wFalse:
				text, _ = m.appendShort(text, v)
			case m.isFlat(v):
				text = m.view(v)
			default:
				return noForm
			}
			if bad := w.cell(i, text); bad != fits {
				return bad
			}
		}
		w.line()
	}
}

// line ends one; cell has seen to the room.
func (w *csvWriter) line() {
	w.to = append(w.to, '\n')
	w.writes++
}

var byteOrderMark = []byte("\ufeff")

// cell writes value i of a line.
func (w *csvWriter) cell(i int, s []byte) unfit {
	if len(s) > longCell {
		return noForm
	}
	if cap(w.to)-len(w.to) < 2*len(s)+8 {
		return noRoom
	}
	if i > 0 {
		w.to = append(w.to, ',')
		w.writes++
	}
	if w.lone && len(s) == 0 {
		w.to = append(w.to, `""`...)
		w.writes += 2
		return fits
	}
	plain := len(s) == 0 || s[0] != ' ' && s[0] != '\t' && !bytes.HasPrefix(s, byteOrderMark)
	for _, c := range s {
		plain = plain && c != ',' && c != '"' && c != '\r' && c != '\n'
	}
	w.writes++
	if plain {
		w.to = append(w.to, s...)
		return fits
	}
	w.writes += 2
	w.to = append(w.to, '"')
	for _, c := range s {
		if c == '"' {
			w.to = append(w.to, c)
		}
		w.to = append(w.to, c)
	}
	w.to = append(w.to, '"')
	return fits
}

// A csvCell is what csvNext finds: the text is from from to to, with so many doubled
// quotes in it; the next cell begins at next, on another line if last is set.
type csvCell struct {
	from, to, quotes, next int
	last                   bool
}

// csvNext reads the cell that begins at a place; ok is false where it isn't plain.
func csvNext(s []byte, at int) (c csvCell, ok bool) {
	c.from = at
	if at < len(s) && s[at] == '"' {
		c.from++
		for i := c.from; ; i += 2 {
			n := bytes.IndexByte(s[i:], '"')
			if n < 0 {
				return c, false
			}
			if i += n; i+1 == len(s) || s[i+1] != '"' {
				c.to, at = i, i+1
				break
			}
			c.quotes++
		}
	} else {
		for at < len(s) && s[at] != ',' && s[at] != '\n' {
			if s[at] == '"' {
				return c, false
			}
			at++
		}
		c.to = at
	}
	c.last = at == len(s) || s[at] == '\n'
	if c.next = at + 1; !c.last && s[at] != ',' {
		return c, false
	}
	return c, true
}

func (m *Machine) nativeParseCSV(in *code.Instr) (done, stop bool) {
	w := *m.reg(in.C)
	if in.B > 1 || !m.isFlat(w) || m.strLen(w) > longText {
		return false, false
	}
	s := m.view(w)
	cells := 1 + bytes.Count(s, []byte{','}) + 2*bytes.Count(s, []byte{'\n'})
	if bytes.IndexByte(s, '\r') >= 0 || bytes.HasPrefix(s, []byte("\ufeff")) || int64(len(s))+64*int64(cells) > m.budget.Memory {
		return false, false
	}
	cost := prim.BytesCost(len(s)) + prim.ItemsCost(cells)
	if left := m.stepsIn() + int64(m.left) - m.pending(); left < 0 || cost > uint64(left) {
		return false, false
	}
	columns, lines, words := 0, 0, 0
	for at, k := 0, 0; at < len(s) || k > 0; {
		if k == 0 && s[at] == '\n' {
			at++
			continue
		}
		c, ok := csvNext(s, at)
		if !ok {
			return false, false
		}
		k++
		words += strWords(c.to - c.from - c.quotes)
		if at = c.next; !c.last {
			continue
		}
		if lines == 0 {
			columns = k
		}
		if k != columns || k > flatFields {
			return false, false
		}
		lines, k = lines+1, 0
	}
	if lines < 2 {
		return false, false
	}
	m.look(cells)
	if !m.reserve(words+(lines-1)*recordWords(columns)+listWords(lines-1), int(in.K)) {
		return true, true
	}
	w = *m.reg(in.C)
	s = m.view(w)
	ascii := m.runes(w) == len(s)
	at := 0
	row := make([]word, columns)
	read := func() {
		for at < len(s) && s[at] == '\n' {
			at++
		}
		for k := range row {
			c, _ := csvNext(s, at)
			row[k] = m.csvText(s[c.from:c.to], c.quotes, ascii)
			at = c.next
		}
	}
	before := m.hp
	read()
	names := slices.Clone(row)
	order := make([]int, columns)
	for i := range order {
		order[i] = i
	}
	compare := func(a, b int) int { return bytes.Compare(m.view(names[a]), m.view(names[b])) }
	slices.SortFunc(order, compare)
	for i := 1; i < columns; i++ {
		if compare(order[i-1], order[i]) == 0 {
			m.hp = before
			return false, false
		}
	}
	list := m.makeList(lines-1, func(int) word {
		read()
		return m.makeRecord(0, columns, func(i int) (key, val word) { return names[order[i]], row[order[i]] })
	})
	if m.spend(cost) {
		return true, true
	}
	return m.set(in, list)
}

// csvText makes the string of a cell.
func (m *Machine) csvText(s []byte, quotes int, ascii bool) word {
	n := len(s) - quotes
	w, to := m.newText(n, n)
	if quotes == 0 {
		copy(to, s)
	} else {
		for i, k := 0, 0; i < len(s); i, k = i+1, k+1 {
			if to[k] = s[i]; s[i] == '"' {
				i++
			}
		}
	}
	if !ascii {
		*m.obj(w, 1) = word(n) | word(utf8.RuneCount(to))<<32
	}
	return w
}
