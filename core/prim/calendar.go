package prim

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A moment is a date of the proleptic Gregorian calendar, with a time of day at a fixed
// offset from UTC.
type moment struct {
	year, month, day     int64
	hour, minute, second int64
	nanos                int64
	offset               int64 // in minutes
	// form is how its text is written.
	form form
}

// A form is how a moment was written: a date alone has no clock, a local time no zone.
type form struct {
	clock, zone, seconds bool
	space                bool // between date and time
	digits               int  // of the fraction
}

const (
	secondsPerDay = 86_400
	nanosPerSec   = 1_000_000_000
	maxYear       = 9999
	maxOffset     = 24*60 - 1
	// maxTimeText is for texts and layouts: none that means something is longer.
	maxTimeText = 1000
)

var (
	monthNames   = [...]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
	weekdayNames = [...]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
)

func daysInMonth(year, month int64) int64 {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// dayNumber counts days from 1970-01-01 (Howard Hinnant, «chrono-Compatible Low-Level
// Date Algorithms», days_from_civil).
func dayNumber(year, month, day int64) int64 {
	if month <= 2 {
		year--
	}
	era := floorDiv(year, 400)
	inEra := year - era*400
	inYear := (153*((month+9)%12)+2)/5 + day - 1
	return era*146_097 + inEra*365 + inEra/4 - inEra/100 + inYear - 719_468
}

// dateOf returns the date of a day's number (civil_from_days).
func dateOf(n int64) (year, month, day int64) {
	n += 719_468
	era := floorDiv(n, 146_097)
	inEra := n - era*146_097
	years := (inEra - inEra/1460 + inEra/36_524 - inEra/146_096) / 365
	inYear := inEra - (365*years + years/4 - years/100)
	m := (5*inYear + 2) / 153
	year, month, day = years+era*400, m+3, inYear-(153*m+2)/5+1
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, day
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// unix returns the seconds from 1970 in UTC.
func (t moment) unix() int64 {
	return dayNumber(t.year, t.month, t.day)*secondsPerDay + t.hour*3600 + t.minute*60 + t.second - t.offset*60
}

// at returns the moment of so many seconds from 1970, at the offset of t and in its
// form.
func (t moment) at(unix, nanos int64) moment {
	local := unix + t.offset*60
	n := floorDiv(local, secondsPerDay)
	local -= n * secondsPerDay
	t.year, t.month, t.day = dateOf(n)
	t.hour, t.minute, t.second, t.nanos = local/3600, local/60%60, local%60, nanos
	return t
}

func (t moment) weekday() string {
	n := dayNumber(t.year, t.month, t.day) + 4
	return weekdayNames[n-floorDiv(n, 7)*7]
}

// check returns what no moment has.
func (t moment) check() (problem string) {
	for _, p := range []struct {
		n, least, most int64
		what           string
	}{
		{t.year, 0, maxYear, "the year"}, {t.month, 1, 12, "the month"},
		{t.hour, 0, 23, "the hour"}, {t.minute, 0, 59, "the minute"}, {t.second, 0, 59, "the second"}, {t.offset, -maxOffset, maxOffset, "the offset in minutes"},
	} {
		if p.n < p.least || p.n > p.most {
			return fmt.Sprintf("%s is from %d to %d, not %d", p.what, p.least, p.most, p.n)
		}
	}
	if n := daysInMonth(t.year, t.month); t.day < 1 || t.day > n {
		return fmt.Sprintf("%s %d has the days 1 to %d, not %d", monthNames[t.month-1], t.year, n, t.day)
	}
	return ""
}

// String writes the moment in its form.
func (t moment) String() string {
	s := fmt.Sprintf("%04d-%02d-%02d", t.year, t.month, t.day)
	if !t.form.clock {
		return s
	}
	sep := "T"
	if t.form.space {
		sep = " "
	}
	s += fmt.Sprintf("%s%02d:%02d", sep, t.hour, t.minute)
	fraction := strings.TrimRight(fmt.Sprintf("%09d", t.nanos), "0")
	if t.form.seconds || t.second > 0 || fraction != "" {
		s += fmt.Sprintf(":%02d", t.second)
	}
	if n := t.form.digits - len(fraction); n > 0 {
		fraction += strings.Repeat("0", n)
	}
	if fraction != "" {
		s += "." + fraction
	}
	if t.form.zone {
		s += offsetText(t.offset, ":")
	}
	return s
}

// offsetText returns an offset as RFC 3339 writes it, with sep between hours and
// minutes.
func offsetText(minutes int64, sep string) string {
	sign := "+"
	switch {
	case minutes == 0 && sep != "":
		return "Z"
	case minutes < 0:
		sign, minutes = "-", -minutes
	}
	return fmt.Sprintf("%s%02d%s%02d", sign, minutes/60, sep, minutes%60)
}

// A scanner reads a text from left to right.
type scanner struct{ s string }

// digits reads from least to most of them.
func (r *scanner) digits(least, most int) (n int64, read int, ok bool) {
	for read < min(most, len(r.s)) && r.s[read]-'0' <= 9 {
		n = n*10 + int64(r.s[read]-'0')
		read++
	}
	r.s = r.s[read:]
	return n, read, read >= least
}

// one reads a character of those.
func (r *scanner) one(of string) (byte, bool) {
	if r.s == "" || strings.IndexByte(of, r.s[0]) < 0 {
		return 0, false
	}
	c := r.s[0]
	r.s = r.s[1:]
	return c, true
}

// two reads two digits into n.
func (r *scanner) two(n *int64) (ok bool) {
	*n, _, ok = r.digits(2, 2)
	return ok
}

// fraction reads the digits of a second's fraction.
func (r *scanner) fraction() (nanos int64, read int, ok bool) {
	nanos, read, ok = r.digits(1, 9)
	for range 9 - read {
		nanos *= 10
	}
	return nanos, read, ok
}

// zone reads Z, +hh:mm, +hhmm or +hh.
func (r *scanner) zone() (minutes int64, ok bool) {
	sign, ok := r.one("Zz+-")
	if !ok || sign|0x20 == 'z' {
		return 0, ok
	}
	var h, m int64
	if !r.two(&h) {
		return 0, false
	}
	if _, colon := r.one(":"); (colon || r.s != "" && r.s[0]-'0' <= 9) && !r.two(&m) {
		return 0, false
	}
	if m > 59 {
		return 0, false
	}
	if m += h * 60; sign == '-' {
		m = -m
	}
	return m, true
}

// parseMoment reads RFC 3339, a date alone, and a time without seconds or offset; a
// blank may stand for the T.
func parseMoment(s string) (t moment, ok bool) {
	r := scanner{s}
	var read int
	if t.year, read, _ = r.digits(4, 4); read != 4 {
		return t, false
	}
	for _, to := range []*int64{&t.month, &t.day} {
		if _, ok = r.one("-"); !ok || !r.two(to) {
			return t, false
		}
	}
	if r.s == "" {
		return t, true
	}
	sep, ok := r.one("Tt ")
	if !ok || !r.two(&t.hour) {
		return t, false
	}
	t.form.clock, t.form.space = true, sep == ' '
	if _, ok = r.one(":"); !ok || !r.two(&t.minute) {
		return t, false
	}
	if _, ok = r.one(":"); ok {
		t.form.seconds = true
		if !r.two(&t.second) {
			return t, false
		}
		if _, ok = r.one(".,"); ok {
			if t.nanos, t.form.digits, ok = r.fraction(); !ok {
				return t, false
			}
		}
	}
	if r.s == "" {
		return t, true
	}
	t.form.zone = true
	t.offset, ok = r.zone()
	return t, ok && r.s == ""
}

// withFraction returns a number of seconds: an integer where it is whole, and a
// decimal.
func withFraction(seconds, nanos int64) value.Value {
	if nanos == 0 {
		return value.NewInt(seconds)
	}
	n := new(big.Int).Mul(big.NewInt(seconds), big.NewInt(nanosPerSec))
	n.Add(n, big.NewInt(nanos))
	scale := 9
	for q, r := new(big.Int), new(big.Int); scale > 0; scale-- {
		if q.QuoRem(n, big.NewInt(10), r); r.Sign() != 0 {
			break
		}
		n.Set(q)
	}
	d, _ := value.NewDec(n, scale)
	return d
}

// momentOf returns the moment that an operand of a row stands for.
func momentOf(row string, v value.Value) (moment, *fault.Fault) {
	r, isRecord := v.(*value.Record)
	if !isRecord {
		s := string(v.(value.Str))
		if len(s) > maxTimeText {
			return moment{}, badTime(row, s, "it is too long")
		}
		t, ok := parseMoment(s)
		if !ok {
			return t, badTime(row, s, "")
		}
		if problem := t.check(); problem != "" {
			return t, badTime(row, s, problem)
		}
		return t, nil
	}
	t := moment{form: form{clock: true, zone: true, seconds: true}}
	for _, p := range []struct {
		key string
		to  *int64
	}{{"year", &t.year}, {"month", &t.month}, {"day", &t.day}, {"hour", &t.hour}, {"minute", &t.minute}, {"second", &t.second}, {"offset", &t.offset}} {
		i, ok := find(r, p.key)
		if !ok {
			if p.key == "year" || p.key == "month" || p.key == "day" {
				f := badParts(row, "it has no "+p.key)
				if _, ok := find(r, "rfc3339"); ok {
					f.Hint = `Take the time of what clock.now gives: {"get":[NOW,"rfc3339"]}.`
				}
				return t, f
			}
			continue
		}
		n, nanos, ok := wholeAndNanos(value.Force(r.Fields[i].Value))
		if !ok || nanos != 0 && p.key != "second" {
			return t, badParts(row, p.key+" is "+Describe(r.Fields[i].Value))
		}
		if *p.to = n; nanos != 0 {
			t.nanos = nanos
		}
	}
	if problem := t.check(); problem != "" {
		return t, badParts(row, problem)
	}
	return t, nil
}

// maxAddedUnits is for numbers of seconds, days and so on: more is beyond all years.
const maxAddedUnits = 1_000_000_000_000

// wholeAndNanos splits a number at its point, the rest never negative.
func wholeAndNanos(v value.Value) (n, nanos int64, ok bool) {
	switch v := v.(type) {
	case value.Int:
		n, ok = v.Int64()
	case value.Dec:
		if v.Scale() > 100 || v.Words() > 8 {
			return 0, 0, false
		}
		scaled, rest := new(big.Int).Mul(v.Unscaled(), big.NewInt(nanosPerSec)), new(big.Int)
		scaled.DivMod(scaled, value.Power10(v.Scale()), rest)
		whole := new(big.Int)
		whole.DivMod(scaled, big.NewInt(nanosPerSec), scaled)
		n, nanos, ok = whole.Int64(), scaled.Int64(), rest.Sign() == 0 && whole.IsInt64()
	}
	return n, nanos, ok && n >= -maxAddedUnits && n <= maxAddedUnits
}

// slashed is a day and a month, in this order or the other, before a year; monthFirst and
// monthSecond are dates with the month's name.
var (
	slashed     = onceCompiled(`^(\d\d)/(\d\d)/\d{4}$`)
	monthFirst  = onceCompiled(`^[A-Za-z]{3,9} \d{1,2}, \d{4}$`)
	monthSecond = onceCompiled(`^\d{1,2} [A-Za-z]{3,9} \d{4}$`)
)

// onceCompiled is an expression that is compiled at its first use.
func onceCompiled(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// badTime returns the fault of a text that is no time.
func badTime(row, s, problem string) *fault.Fault {
	f := &fault.Fault{
		Kind: fault.ParseError, Message: fmt.Sprintf("%s: %s is no time", row, quoted(s)),
		Expected: "a date or time of RFC 3339, 2026-11-22 or 2026-11-22T09:30:00Z", Got: quoted(s),
		Hint: `Read another form by its layout first: {"parse_time":[S,"` + layoutLike(s) + `"]}`,
	}
	if m := slashed().FindStringSubmatch(s); m != nil && m[1] <= "12" && m[2] <= "12" {
		f.Hint += ", or MM before DD where the month is first"
	}
	f.Hint += "."
	if problem != "" {
		f.Message += ": " + problem
		f.Hint = `Catch the failure if it may be there: {"try":{"parse_time":[S]}}.`
	}
	return f
}

func badParts(row, problem string) *fault.Fault {
	return &fault.Fault{
		Kind: fault.OutOfRange, Message: row + ": the record is no time: " + problem,
		Expected: "year, month and day, and perhaps hour, minute, second and offset (in minutes), as numbers", Got: problem,
		Hint: `Write it as in {"weekday":{"record":{"year":2026,"month":11,"day":22}}}.`,
	}
}

// layoutLike returns a layout that a text with a date in it may have.
func layoutLike(s string) string {
	switch m := slashed().FindStringSubmatch(s); {
	case m != nil && m[2] > "12" && m[1] <= "12":
		return "MM/DD/YYYY"
	case len(s) == 8 && strings.Trim(s, "0123456789") == "":
		return "YYYYMMDD"
	case monthFirst().MatchString(s):
		return strings.Repeat("M", min(max(3, strings.IndexByte(s, ' ')), 4)) + " D, YYYY"
	case monthSecond().MatchString(s):
		name := strings.Fields(s)[1]
		return "D " + strings.Repeat("M", min(max(3, len(name)), 4)) + " YYYY"
	}
	var b strings.Builder
	parts := []string{"DD", "MM", "HH", "mm", "ss"}
	for i := 0; i < len(s) && i < 40; {
		n := 0
		for i+n < len(s) && s[i+n]-'0' <= 9 {
			n++
		}
		switch {
		case n == 4:
			b.WriteString("YYYY")
			if b.Len() == 4 {
				parts[0], parts[1] = "MM", "DD"
			}
		case n > 0 && n < 3 && len(parts) > 0:
			b.WriteString(parts[0])
			parts = parts[1:]
		case n == 0 && strings.IndexByte("/.-: ,", s[i]) >= 0:
			b.WriteByte(s[i])
			n = 1
		default:
			return "DD.MM.YYYY"
		}
		i += n
	}
	if !strings.Contains(b.String(), "YYYY") || len(parts) > 3 {
		return "DD.MM.YYYY"
	}
	return b.String()
}
