package ui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/step"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

const (
	// maxWalk is how long looking for a point may take, and walks how many runs are kept
	// that are walked through.
	maxWalk = 20 * time.Second
	walks   = 4
)

// walk gives what walks through a run, one of the last few or a new one.
func (s *Store) walk(ctx context.Context, id string) (*step.Walk, run.Verdict, error) {
	s.walking.Lock()
	defer s.walking.Unlock()
	if i := slices.IndexFunc(s.walked, func(w walked) bool { return w.id == id }); i >= 0 {
		return s.walked[i].Walk, s.walked[i].verdict, nil
	}
	w, v, err := s.Walk(ctx, id)
	if err != nil || w == nil {
		return nil, v, err
	}
	s.walked = append(s.walked, walked{w, id, v})
	s.walked = s.walked[max(0, len(s.walked)-walks):]
	return w, v, nil
}

// A walked is a run that somebody walks through.
type walked struct {
	*step.Walk
	id      string
	verdict run.Verdict
}

// walk gives what walks through the run that a page is about, the first time to the point of a number at once.
func (q *request) walk(ctx context.Context, at uint64) (r ran, w *step.Walk, v run.Verdict, sum *step.Summary, err error) {
	if r, _, err = q.run(); err != nil {
		return r, nil, v, nil, err
	}
	w, v, err = q.store.walk(ctx, r.ID)
	if err == nil && w == nil {
		err = missing("It can't be walked through: " + v.Text)
	}
	if err == nil {
		sum, err = w.SummaryAt(ctx, at)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it takes too long: 'mcp-pif step %s' has no limit", r.ID+q.of())
	}
	return r, w, v, sum, err
}

// A tick marks an effect or a failure in a run's strip.
type tick struct {
	X     int
	Class string
	N     uint64
}

// maxTicks is how many are drawn of each.
const maxTicks = 300

// ticks is where effects and failures are, in a thousandth of all points.
func ticks(sum *step.Summary) (all []tick) {
	for class, points := range map[string][]uint64{"effect": sum.Effects, "fault": sum.Faults} {
		for _, n := range points[:min(len(points), maxTicks)] {
			all = append(all, tick{int(1000 * float64(n) / float64(max(1, sum.Points-1))), class, n})
		}
	}
	slices.SortFunc(all, func(a, b tick) int { return int(int64(a.N) - int64(b.N)) })
	return all
}

func showSteps(q *request) (view, error) {
	ctx, cancel := context.WithTimeout(q.Context(), maxWalk)
	defer cancel()
	at, _ := strconv.ParseUint(q.FormValue("at"), 10, 63)
	r, w, verdict, sum, err := q.walk(ctx, at)
	if err != nil {
		return view{}, err
	}
	d := struct {
		ran
		step.View
		Sum     *step.Summary
		Ticks   []tick
		X       int
		Verdict run.Verdict
		None    string
		Lines   []codeLine
		Ago     []step.View // points before and after
		Break   string
	}{ran: r, Sum: sum, Ticks: ticks(sum), Verdict: verdict, Break: q.FormValue("line")}
	p, err := w.At(ctx, min(at, sum.Points-1))
	if err != nil {
		return view{}, err
	}
	if to, err := move(ctx, w, p, q.FormValue("do"), q.FormValue("step"), d.Break); err == nil {
		p = to
	} else if d.None = "There is none further on."; !errors.Is(err, step.ErrNoPoint) {
		return view{}, err
	}
	around, err := w.Window(ctx, p.N, 4)
	if err != nil {
		return view{}, err
	}
	for i := range around {
		d.Ago = append(d.Ago, around[i].View())
	}
	d.View = p.View()
	d.X = int(1000 * float64(p.N) / float64(max(1, sum.Points-1)))
	d.Lines = codeAt(p)
	return view{Template: "steps.html", Title: "Steps of " + r.ID, Data: &d}, nil
}

// move goes to another point as a link says.
func move(ctx context.Context, w *step.Walk, p *step.Point, do, steps, line string) (*step.Point, error) {
	if do == "go" {
		n, err := strconv.ParseUint(steps, 10, 63)
		if err != nil {
			return p, nil
		}
		return w.Near(ctx, n)
	}
	what, back := strings.CutPrefix(do, "back-")
	n, _ := strconv.Atoi(line)
	wanted, ok := map[string]step.Wanted{"over": step.Over(p), "out": step.Out(p), "effect": step.Acted, "fault": step.Failed, "break": step.Line("", n)}[what]
	switch {
	case !ok:
		return p, nil
	case back:
		return w.Previous(ctx, p.N, wanted)
	}
	return w.Next(ctx, p.N, wanted)
}

// A codeLine is a line of the code that a point is in.
type codeLine struct {
	line
	Here bool
	// Of the line that is here: what stands before the term, where it begins, and behind.
	Before, Mark, After []text.Part
}

// The source that is shown around a point.
const (
	linesAround  = 18
	maxCodeLine  = 500
	markedAtMost = 40
)

// codeAt is the lines around the term of a point.
func codeAt(p *step.Point) (lines []codeLine) {
	src, offset := p.Source()
	if src == nil {
		return nil
	}
	at, col := text.Position(src.Text, offset)
	all := strings.Split(strings.ToValidUTF8(string(src.Text), "\uFFFD"), "\n")
	from := max(0, at-1-linesAround)
	for i := from; i < min(len(all), at+linesAround); i++ {
		s, here := strings.TrimRight(all[i], "\r"), i+1 == at
		start := 0
		if here && len(s) > maxCodeLine { // JSON is often one line
			start = max(0, len(runes(s, col-1))-maxCodeLine/2)
			for start > 0 && !utf8.RuneStart(s[start]) {
				start--
			}
		}
		shown := s[start:]
		if len(shown) > maxCodeLine {
			shown = strings.ToValidUTF8(shown[:maxCodeLine], "") + " …"
		}
		l := codeLine{line: line{N: i + 1, Parts: []text.Part{{Text: shown}}}, Here: here}
		if src.Form == term.PIF && start == 0 {
			l.Parts = text.Parts(shown)
		}
		if here {
			l.split(max(0, len(runes(s, col-1))-start))
		}
		lines = append(lines, l)
	}
	return lines
}

// runes is the first n characters of a text.
func runes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// split divides a line at the word that begins at an offset.
func (l *codeLine) split(offset int) {
	for _, p := range l.Parts {
		switch {
		case len(l.Mark) > 0 || offset >= len(p.Text):
			if len(l.Mark) > 0 {
				l.After = append(l.After, p)
			} else {
				l.Before = append(l.Before, p)
			}
			offset -= len(p.Text)
		default:
			if offset > 0 {
				l.Before = append(l.Before, text.Part{Class: p.Class, Text: p.Text[:offset]})
			}
			rest := p.Text[offset:]
			n := strings.IndexFunc(rest, func(r rune) bool { return strings.ContainsRune(" ()[]{},:;", r) })
			if _, first := utf8.DecodeRuneInString(rest); n <= 0 || p.Class != "" {
				n = max(first, n)
			}
			n = min(n, len(rest), markedAtMost)
			l.Mark = append(l.Mark, text.Part{Class: p.Class, Text: strings.ToValidUTF8(rest[:n], "")})
			if n < len(rest) {
				l.After = append(l.After, text.Part{Class: p.Class, Text: strings.ToValidUTF8(rest[n:], "")})
			}
		}
	}
}

// A frameBox is a rectangle of a flame graph.
type frameBox struct {
	X, Width, Y   float64
	Hue           int
	Name, Title   string
	Zoom, Clipped string
}

// The flame graph's measures, in a thousandth of its width.
const (
	rowHeight = 20
	boxLetter = 6.6
	maxBoxes  = 2000
	maxRows   = 60
	hues      = 5
)

func showFlame(q *request) (view, error) {
	ctx, cancel := context.WithTimeout(q.Context(), maxWalk)
	defer cancel()
	r, _, _, sum, err := q.walk(ctx, 0)
	if err != nil {
		return view{}, err
	}
	d := struct {
		ran
		Sum    *step.Summary
		Zoomed string
		Of     uint64
		Boxes  []frameBox
		Height int
		Lines  []step.Spent
	}{ran: r, Sum: sum, Lines: sum.Profile.Lines(25)}
	node, path := sum.Profile.Root, ""
	for _, part := range strings.Split(q.FormValue("zoom"), ".") {
		if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(node.Calls) {
			node, path = node.Calls[i], path+part+"."
		}
	}
	if d.Of = node.Total(); path != "" {
		d.Zoomed = node.Where()
	}
	d.Boxes, d.Height = flame(node, path)
	return view{Template: "flame.html", Title: "Where the steps of " + r.ID + " went", Data: &d}, nil
}

// flame lays out a node and what it calls, the widest first.
func flame(root *step.Node, path string) (boxes []frameBox, height int) {
	all := float64(max(1, root.Total()))
	var lay func(n *step.Node, path string, x float64, row int)
	lay = func(n *step.Node, path string, x float64, row int) {
		total := n.Total()
		width := 1000 * float64(total) / all
		if width < 1 || len(boxes) == maxBoxes || row == maxRows {
			return
		}
		b := frameBox{X: x, Width: width - 0.5, Y: float64(row * rowHeight), Name: n.Where(), Zoom: strings.TrimSuffix(path, ".")}
		if n.In == "" {
			b.Name = "all of it"
		}
		for _, c := range n.Name + n.In {
			b.Hue = (b.Hue*31 + int(c)) % hues
		}
		b.Title = fmt.Sprintf("%s: %s (%.1f %%), %s of its own", b.Name, count(total, "step", "steps"), width/10, count(n.Steps, "step", "steps"))
		if letters := int((width - 8) / boxLetter); letters >= 3 {
			if b.Clipped = b.Name; utf8.RuneCountInString(b.Name) > letters {
				b.Clipped = runes(b.Name, letters-1) + "…"
			}
		}
		boxes = append(boxes, b)
		height = max(height, (row+1)*rowHeight)
		for i, c := range n.Calls {
			lay(c, path+strconv.Itoa(i)+".", x, row+1)
			x += 1000 * float64(c.Total()) / all
		}
	}
	lay(root, path, 0, 0)
	return boxes, height
}
