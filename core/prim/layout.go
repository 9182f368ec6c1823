package prim

import (
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A field is a part of a layout: one of a moment's, or a text where it has no name.
type layoutPart struct{ name, text string }

// layoutNames are the parts of a layout, those that begin as another does before it.
// What stands for the same is in one line, the name that messages use first.
var layoutNames = [][]string{
	{"YYYY", "yyyy"}, {"YY", "yy"}, {"MMMM"}, {"MMM"}, {"MM"}, {"M"},
	{"dddd", "EEEE"}, {"ddd", "EEE"}, {"DD", "dd"}, {"D", "d"},
	{"HH"}, {"H"}, {"hh"}, {"h"}, {"mm"}, {"m"}, {"ss"}, {"s"},
	{"SSSSSSSSS"}, {"SSSSSSSS"}, {"SSSSSSS"}, {"SSSSSS"}, {"SSSSS"}, {"SSSS"}, {"SSS"}, {"SS"}, {"S"}, {"A"}, {"a"}, {"ZZ"}, {"Z"},
}

// percent is the parts of a layout that are written as C's strftime does.
var percent = map[byte]string{
	'Y': "YYYY", 'y': "YY", 'm': "MM", 'd': "DD", 'e': "D", 'H': "HH", 'I': "hh", 'M': "mm", 'S': "ss", 'f': "SSSSSS", 'p': "A",
	'B': "MMMM", 'b': "MMM", 'A': "dddd", 'a': "ddd", 'z': "ZZ", 'F': "YYYY-MM-DD", 'T': "HH:mm:ss",
}

// readLayout takes a layout apart, and refuses one that can't be meant.
func readLayout(row, s string) ([]layoutPart, *fault.Fault) {
	if len(s) > maxTimeText {
		return nil, badLayout(row, "it is too long")
	}
	parts, f := splitLayout(row, s)
	if f != nil {
		return nil, f
	}
	parts = byPlace(parts)
	has := map[string]bool{}
	for _, p := range parts {
		has[p.name] = true
	}
	delete(has, "")
	month, dated := has["MM"] || has["M"] || has["MMM"] || has["MMMM"], has["YYYY"] || has["YY"] || has["DD"] || has["D"]
	switch {
	case len(has) == 0:
		return nil, badLayout(row, quoted(s)+" has no part of a time in it")
	case dated && !month && has["mm"] && !has["HH"] && !has["hh"] && !has["H"] && !has["h"]:
		return nil, badLayout(row, "mm is the minute, MM the month")
	}
	return parts, nil
}

// byPlace reads MM after the hour as the minute, SS after that as the second.
func byPlace(parts []layoutPart) (all []layoutPart) {
	last := ""
	for _, p := range parts {
		n := p.name
		hour, minute := strings.EqualFold(last, "HH") || strings.EqualFold(last, "h"), last == "mm" || last == "m"
		if hour && (n == "MM" || n == "M") || minute && (n == "SS" || n == "S") {
			p.name = strings.ToLower(n)
		}
		if all = append(all, p); p.name != "" {
			last = p.name
		}
	}
	return all
}

func splitLayout(row, s string) ([]layoutPart, *fault.Fault) {
	var parts []layoutPart
	text := func(t string) { parts = append(parts, layoutPart{"", t}) }
	for rest := s; rest != ""; {
		c := rest[0]
		if c == '%' && len(rest) > 1 {
			name, known := percent[rest[1]]
			switch {
			case known:
				inner, _ := splitLayout(row, name)
				parts = append(parts, inner...)
			case rest[1] == '%':
				text("%")
			default:
				return nil, badLayout(row, fmt.Sprintf("%s is no part of a time", quoted(rest[:2])))
			}
			rest = rest[2:]
			continue
		}
		if end := strings.IndexAny(rest, "]'"); c == '[' && end > 0 && rest[end] == ']' {
			text(rest[1:end])
			rest = rest[end+1:]
			continue
		}
		if end := strings.IndexByte(rest[1:], '\''); c == '\'' && end >= 0 {
			text(rest[1 : 1+end])
			rest = rest[end+2:]
			continue
		}
		name, read := layoutName(rest)
		switch letter := c|0x20 >= 'a' && c|0x20 <= 'z'; {
		case strings.IndexByte(s, '%') >= 0, read == 0 && (!letter || c == 'T'):
			text(rest[:1])
			rest = rest[1:]
		case read == 0:
			return nil, badLayout(row, fmt.Sprintf("%s is no part of a time", quoted(rest[:1])))
		default:
			parts = append(parts, layoutPart{name, ""})
			rest = rest[read:]
		}
	}
	return parts, nil
}

// layoutName returns the part that a layout begins with, and how long its name is
// there.
func layoutName(s string) (name string, read int) {
	for _, same := range layoutNames {
		for _, n := range same {
			if strings.HasPrefix(s, n) {
				return same[0], len(n)
			}
		}
	}
	return "", 0
}

func badLayout(row, problem string) *fault.Fault {
	return outOfRange(row+": "+problem, "a layout of YYYY MM DD HH mm ss, MMMM and dddd (names), hh and A (12 hours), SSS (milliseconds), Z (offset)", problem,
		`Write it as in {"format_time":["2026-11-22T09:30:00Z","dddd, D MMMM YYYY [at] HH:mm"]}, text of letters in brackets.`)
}

// format writes a moment by a layout.
func (t moment) format(parts []layoutPart) string {
	var b strings.Builder
	hour := (t.hour+11)%12 + 1
	half := "AM"
	if t.hour >= 12 {
		half = "PM"
	}
	for _, p := range parts {
		switch p.name {
		case "":
			b.WriteString(p.text)
		case "YYYY":
			fmt.Fprintf(&b, "%04d", t.year)
		case "YY":
			fmt.Fprintf(&b, "%02d", t.year%100)
		case "MMMM":
			b.WriteString(monthNames[t.month-1])
		case "MMM":
			b.WriteString(monthNames[t.month-1][:3])
		case "dddd":
			b.WriteString(t.weekday())
		case "ddd":
			b.WriteString(t.weekday()[:3])
		case "A":
			b.WriteString(half)
		case "a":
			b.WriteString(strings.ToLower(half))
		case "Z":
			b.WriteString(offsetText(t.offset, ":"))
		case "ZZ":
			b.WriteString(offsetText(t.offset, ""))
		default:
			if p.name[0] == 'S' {
				b.WriteString(fmt.Sprintf("%09d", t.nanos)[:len(p.name)])
				continue
			}
			n := map[byte]int64{'M': t.month, 'D': t.day, 'H': t.hour, 'h': hour, 'm': t.minute, 's': t.second}[p.name[0]]
			fmt.Fprintf(&b, "%0*d", len(p.name), n)
		}
	}
	return b.String()
}

// parseLayout reads a text by a layout.
func parseLayout(row, s string, parts []layoutPart) (moment, *fault.Fault) {
	t := moment{month: 1, day: 1, year: -1, form: form{clock: true, zone: true, seconds: true}}
	r := scanner{s}
	half := byte(0)
	for _, p := range parts {
		ok := true
		switch p.name {
		case "":
			r.s, ok = strings.CutPrefix(r.s, p.text)
		case "YYYY":
			t.year, _, ok = r.digits(4, 4)
		case "YY":
			if ok = r.two(&t.year); t.year < 69 {
				t.year += 100
			}
			t.year += 1900
		case "MMMM", "MMM":
			t.month, ok = r.word(monthNames[:])
			t.month++
		case "dddd", "ddd":
			_, ok = r.word(weekdayNames[:])
		case "A", "a":
			if half, ok = r.one("AaPp"); ok {
				_, ok = r.one("Mm")
			}
		case "Z", "ZZ":
			t.offset, ok = r.zone()
		default:
			if p.name[0] == 'S' {
				t.nanos, _, ok = r.fraction()
				break
			}
			to := map[byte]*int64{'M': &t.month, 'D': &t.day, 'H': &t.hour, 'h': &t.hour, 'm': &t.minute, 's': &t.second}[p.name[0]]
			*to, _, ok = r.digits(1, 2)
		}
		if !ok {
			at := 1 + len(s) - len(r.s)
			want := p.name
			if want == "" {
				want = quoted(p.text)
			}
			return t, &fault.Fault{
				Kind: fault.ParseError, Message: fmt.Sprintf("%s: at character %d of %s: expected %s of the layout", row, at, quoted(s), want),
				Expected: want, Got: quoted(r.s), Hint: `Give the layout that the text has: {"parse_time":["22.11.2026","DD.MM.YYYY"]}, or catch the failure with try.`,
			}
		}
	}
	switch {
	case half|0x20 == 'a' && t.hour > 12:
		return t, badTime(row, s, fmt.Sprintf("an hour of AM is from 0 to 12, not %d", t.hour))
	case half|0x20 == 'a':
		t.hour %= 12
	case half|0x20 == 'p' && t.hour < 12:
		t.hour += 12
	}
	switch {
	case r.s != "":
		return t, badTime(row, s, "the layout ends before "+quoted(r.s))
	case t.year < 0:
		return t, badLayout(row, "the layout has no year")
	}
	if problem := t.check(); problem != "" {
		return t, badTime(row, s, problem)
	}
	return t, nil
}

// word reads one of the words, or its first three letters, in any case.
func (r *scanner) word(words []string) (int64, bool) {
	for _, short := range []bool{false, true} {
		for i, w := range words {
			if short {
				w = w[:3]
			}
			if len(r.s) >= len(w) && strings.EqualFold(r.s[:len(w)], w) {
				r.s = r.s[len(w):]
				return int64(i), true
			}
		}
	}
	return 0, false
}
