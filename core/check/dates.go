package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// dates finds what is said about dates as other languages have them: the day of the week by a
// name that weekday never gives, days added as a number, which is seconds, and parts of a layout
// that are none.
type dates struct {
	lets  map[string]term.Term
	pos   []int
	notes []string
}

// datesIn returns the notes on a program in the text form, and their places.
func datesIn(root term.Term, src *term.Source) dates {
	d := dates{lets: map[string]term.Term{}}
	if src != nil && src.Form == term.PIF && onDates.Match(src.Text) {
		d.walk(root)
	}
	return d
}

// onDates is what stands in a source that has notes on dates.
var onDates = regexp.MustCompile(`weekday|add_time|format_time|parse_time`)

func (d *dates) note(at term.Term, format string, parts ...any) {
	d.pos, d.notes = append(d.pos, at.Pos()), append(d.notes, fmt.Sprintf(format, parts...))
}

// meaning returns what a name is bound to.
func (d *dates) meaning(t term.Term) term.Term {
	if v, ok := t.(*term.Var); ok && d.lets[v.Name] != nil {
		return d.lets[v.Name]
	}
	return t
}

// call returns t as an operation of that name; nil: it is none.
func (d *dates) call(t term.Term, name string) *term.Prim {
	if p, ok := d.meaning(t).(*term.Prim); ok && prim.Get(p.ID).Name == name {
		return p
	}
	return nil
}

func (d *dates) walk(t term.Term) {
	switch t := t.(type) {
	case *term.Quote:
		return
	case *term.App:
		if l, ok := t.Func.(*term.Lam); ok {
			d.walk(t.Arg)
			d.bound(l, t.Arg)
			return
		}
	case *term.Lam:
		d.bound(t, nil)
		return
	case *term.Prim:
		d.operation(t)
	}
	each(t, d.walk)
}

// bound walks a function's body, in which its parameter means arg; nil: it isn't known.
func (d *dates) bound(l *term.Lam, arg term.Term) {
	outer := d.lets[l.Param]
	d.lets[l.Param] = arg
	d.walk(l.Body)
	d.lets[l.Param] = outer
}

// seconds reports whether a number of them stands in a term, or in what its names mean, so many names deep.
func (d *dates) seconds(t term.Term, names int) (found bool) {
	if n, ok := t.(*term.Int); ok {
		return n.Value >= 60 || n.Value <= -60
	}
	if m := d.meaning(t); m != t {
		return names > 0 && d.seconds(m, names-1)
	}
	each(t, func(child term.Term) { found = found || d.seconds(child, names) })
	return found
}

func (d *dates) operation(t *term.Prim) {
	switch name := prim.Get(t.ID).Name; name {
	case "equal":
		for i, arg := range t.Args {
			if d.call(arg, "weekday") != nil {
				d.day(t.Args[1-i])
			}
		}
	case "contains", "index_of", "last_index_of":
		if l, ok := d.meaning(t.Args[0]).(*term.List); ok && d.call(t.Args[1], "weekday") != nil {
			for _, item := range l.Items {
				d.day(item)
			}
		}
	case "weekday":
		d.days(t.Args[0])
	case "format_time", "parse_time":
		if len(t.Args) < 2 {
			break
		}
		layout, ok := t.Args[1].(*term.Str)
		if !ok {
			break
		}
		said := literally.ReplaceAllString(layout.Value, "")
		if run := unknownRun.FindString(said); strings.HasPrefix(run, "D") {
			d.note(layout, `%s is no part of a time and is read as DD and D; the day of the year is diff_time(format_time(t, "YYYY-MM-DD"), format_time(t, "YYYY") ++ "-01-01", "days") + 1`, run)
		} else if run != "" {
			d.note(layout, "%s is no part of a time and is read as MMMM and M; the month's name is MMMM", run)
		}
		if name == "format_time" && !ofDay.MatchString(said) {
			d.days(t.Args[0])
		}
	case "add_time":
		if s, ok := d.meaning(t.Args[0]).(*term.Str); ok && dateAlone.MatchString(s.Value) && isInt(t.Args[1]) {
			d.days(t)
		}
	}
}

// day notes a text that weekday never gives.
func (d *dates) day(t term.Term) {
	s, ok := t.(*term.Str)
	if !ok || slices.Contains(weekdays, s.Value) {
		return
	}
	write := ""
	for _, name := range weekdays {
		if len(s.Value) > 1 && len(s.Value) <= len(name) && strings.EqualFold(name[:len(s.Value)], s.Value) {
			write = fmt.Sprintf("; write %q", name)
		}
	}
	d.note(s, "weekday never gives %s, but Monday, Tuesday … Sunday%s", quoted(s.Value), write)
}

// days notes that a number which add_time takes is of seconds, where only the day is looked at.
func (d *dates) days(t term.Term) {
	p := d.call(t, "add_time")
	if p == nil || slices.Contains(d.pos, p.Pos()) {
		return
	}
	amount := d.meaning(p.Args[1])
	n, number := amount.(*term.Int)
	switch a := amount.(type) {
	case *term.Record:
		return
	case *term.Int:
		if a.Value == 0 || a.Value >= minSeconds || a.Value <= -minSeconds {
			return
		}
	case *term.Prim:
		if prim.Get(a.ID).Group != "arithmetic" && prim.Get(a.ID).Name != "get" || d.seconds(a, 3) {
			return
		}
	case *term.Var:
	default:
		return
	}
	by, to := written(p.Args[1], "n"), written(p.Args[0], "t")
	if number {
		d.note(p, "add_time adds a number as seconds; %[1]d days later is add_time(%[2]s, {days: %[1]d})", n.Value, to)
		return
	}
	d.note(p, "add_time adds a number as seconds; where %[1]s is a number of days write add_time(%[2]s, {days: %[1]s})", by, to)
}

// minSeconds is from where on a number is hardly one of days.
const minSeconds = 3600

var weekdays = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}

// literally is what stands in a layout as it is, unknownRun a part that no layout has, and ofDay
// a part of the time of day.
var (
	literally  = regexp.MustCompile(`\[[^\]]*\]|'[^']*'`)
	unknownRun = regexp.MustCompile(`D{3,}|M{5,}`)
	ofDay      = regexp.MustCompile(`[HhmsSAX]|%[HIMSTpcX]`)
	dateAlone  = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
)
