package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
)

// result is one measured row.
type result struct {
	Name    string            `json:"program"`
	Doc     string            `json:"doc"`
	Real    bool              `json:"real"`
	Entries map[string]*entry `json:"contestants"`

	// Best names the fastest Go interpreter here; empty when all failed.
	Best string `json:"best,omitempty"`

	// Faster is how many times faster ours is than Best; 0 when unknown.
	Faster float64 `json:"faster,omitempty"`

	// OverNative is ours relative to native Go; 0 when unknown.
	OverNative float64 `json:"over_native,omitempty"`
}

// report is everything a run found.
type report struct {
	Results []*result `json:"results"`

	// Sets is the means of the loops, and of the programs that do what people write.
	Sets []*set `json:"sets"`

	// Behind names every row where a Go interpreter beats ours, or where ours
	// has no result.
	Behind []string `json:"behind"`
}

// set is some of the results.
type set struct {
	Name    string    `json:"name"`
	Results []*result `json:"-"`

	// Faster and OverNative are geometric means over the rows that have one.
	Faster     float64 `json:"faster"`
	OverNative float64 `json:"over_native"`

	// Compilers is how ours compares with those in processes of their own.
	Compilers []comparison `json:"compilers"`
}

// comparison is how many times the time of another ours takes.
type comparison struct {
	Name    string  `json:"name"`
	Mean    float64 `json:"mean"`
	Worst   float64 `json:"worst"`
	Program string  `json:"program"` // where that is
}

// newResult works out the ratios of a row.
func newResult(r row, entries map[string]*entry, cs []*contestant) *result {
	res := &result{Name: r.name, Doc: r.prog.Doc, Real: r.prog.real, Entries: entries}
	if r.cold {
		res.Doc = "source text to result"
	}
	for _, c := range cs {
		if e := entries[c.name]; c.peer && e.ok() && (res.Best == "" || e.Ns < entries[res.Best].Ns) {
			res.Best = c.name
		}
	}
	if ours := entries[nameOurs]; ours.ok() {
		if res.Best != "" {
			res.Faster = entries[res.Best].Ns / ours.Ns
		}
		if e := entries[nameNative]; e.ok() {
			res.OverNative = ours.Ns / e.Ns
		}
	}
	return res
}

// newReport works out the means.
func newReport(results []*result) *report {
	rep := &report{Results: results, Behind: []string{}}
	for _, s := range []*set{{Name: "loops"}, {Name: "programs as people write them"}} {
		for _, r := range results {
			if r.Real == (s.Name != "loops") {
				s.Results = append(s.Results, r)
			}
		}
		if len(s.Results) > 0 {
			s.compare()
			rep.Sets = append(rep.Sets, s)
		}
	}
	for _, r := range results {
		switch ours := r.Entries[nameOurs]; {
		case !ours.ok():
			rep.Behind = append(rep.Behind, fmt.Sprintf("%s: ours fails: %s", r.Name, ours.Fails))
		case r.Faster > 0 && r.Faster < 1:
			rep.Behind = append(rep.Behind, fmt.Sprintf("%s: %s is %.2f times faster", r.Name, r.Best, 1/r.Faster))
		}
	}
	return rep
}

// compare works out the means of a set.
func (s *set) compare() {
	var faster, over []float64
	for _, r := range s.Results {
		if r.Faster > 0 {
			faster = append(faster, r.Faster)
		}
		if r.OverNative > 0 {
			over = append(over, r.OverNative)
		}
	}
	s.Faster, s.OverNative = geomean(faster), geomean(over)
	for _, name := range []string{nameV8, nameLuaJIT} {
		c := comparison{Name: name}
		var times []float64
		for _, r := range s.Results {
			if e, ours := r.Entries[name], r.Entries[nameOurs]; e.ok() && ours.ok() {
				x := ours.Ns / e.Ns
				times = append(times, x)
				if x > c.Worst {
					c.Worst, c.Program = x, r.Name
				}
			}
		}
		if c.Mean = geomean(times); c.Mean > 0 {
			s.Compilers = append(s.Compilers, c)
		}
	}
}

func geomean(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range xs {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(xs)))
}

// write prints the table, the footnotes, the means, and where ours is behind.
func (rep *report) write(w io.Writer, cs []*contestant) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "program\t")
	for _, c := range cs {
		fmt.Fprintf(tw, "%s\t", c.name)
	}
	fmt.Fprint(tw, "best Go\tbest/ours\tours/native\t\n")
	var notes []string
	for _, r := range rep.Results {
		fmt.Fprintf(tw, "%s\t", r.Name)
		for _, c := range cs {
			e := r.Entries[c.name]
			switch {
			case e == nil:
				fmt.Fprint(tw, "-\t")
			case e.Fails != "":
				note := fmt.Sprintf("[%d] %s on %s: %s", len(notes)+1, r.Name, c.name, firstLine(e.Fails))
				if c.limit != "" {
					note += "; its limit: " + c.limit
				}
				notes = append(notes, note)
				fmt.Fprintf(tw, "fails[%d]\t", len(notes))
			default:
				fmt.Fprintf(tw, "%s\t", formatNs(e.Ns))
			}
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t\n", cmp.Or(r.Best, "-"), formatRatio(r.Faster), formatRatio(r.OverNative))
	}
	for _, s := range rep.Sets {
		fmt.Fprintf(tw, "mean, %s\t", s.Name)
		for range cs {
			fmt.Fprint(tw, "\t")
		}
		fmt.Fprintf(tw, "\t%s\t%s\t\n", formatRatio(s.Faster), formatRatio(s.OverNative))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	var tail strings.Builder
	for _, n := range notes {
		fmt.Fprintln(&tail, n)
	}
	for _, s := range rep.Sets {
		for _, c := range s.Compilers {
			fmt.Fprintf(&tail, "%s: ours takes %.2f times the time of %s (geometric mean), %.2f at worst (%s)\n", s.Name, c.Mean, c.Name, c.Worst, c.Program)
		}
	}
	if len(rep.Behind) == 0 {
		fmt.Fprintln(&tail, "behind: nowhere")
	}
	for _, b := range rep.Behind {
		fmt.Fprintln(&tail, "behind:", b)
	}
	_, err := io.WriteString(w, tail.String())
	return err
}

// firstLine drops the traceback that peers append to their errors.
func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

func formatRatio(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}

// formatNs writes a time with three digits.
func formatNs(ns float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}} {
		if x := ns / u.size; x >= 1 || u.size == 1 {
			return fmt.Sprintf("%.*f %s", max(0, 2-digits(x)), x, u.name)
		}
	}
	return ""
}

// digits is the number of digits before the point, less one.
func digits(x float64) int {
	if x < 1 {
		return 0
	}
	return int(math.Log10(x))
}

// bar is one line of the chart: how many times the time of ours a contestant takes,
// as the geometric mean over the programs that both run.
type bar struct {
	name  string
	times float64
	fails int // programs that it can't run
}

// bars returns a bar for each contestant that has a time in common with ours.
func (s *set) bars(cs []*contestant) []bar {
	var all []bar
	for _, c := range cs {
		var times []float64
		fails := 0
		for _, r := range s.Results {
			if ours, e := r.Entries[nameOurs], r.Entries[c.name]; ours.ok() && e.ok() {
				times = append(times, e.Ns/ours.Ns)
			} else if e != nil && e.Fails != "" {
				fails++
			}
		}
		if len(times) > 0 {
			all = append(all, bar{name: c.name, times: geomean(times), fails: fails})
		}
	}
	return all
}

// labels are the names of contestants in the chart, where they differ.
var labels = map[string]string{nameNative: "hand-written Go", nameOurs: "mcp-pif", nameV8: "V8 (Node.js)", nameLuaJIT: "LuaJIT"}

// chart returns the report as an SVG of horizontal bars, one block for each set. Its
// colours are legible on light and dark pages.
func (rep *report) chart(cs []*contestant) []byte {
	const (
		left, width, right = 130, 480, 120
		top, step, height  = 34, 26, 18
	)
	var body, out bytes.Buffer
	y := 0
	for _, s := range rep.Sets {
		bars := s.bars(cs)
		longest := 0.0
		for _, b := range bars {
			longest = max(longest, b.times)
		}
		fmt.Fprintf(&body, `<text x="0" y="%d" font-weight="600">Time of %d %s: mcp-pif = 1 (geometric mean, shorter is faster)</text>`+"\n", y+16, len(s.Results), s.Name)
		y += top
		for _, b := range bars {
			name, fill := cmp.Or(labels[b.name], b.name), "#768390"
			if b.name == nameOurs {
				fill = "#2da44e"
			}
			length := max(2, math.Round(b.times/longest*width))
			fmt.Fprintf(&body, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-10, y+height-4, name)
			fmt.Fprintf(&body, `<rect x="%d" y="%d" width="%.0f" height="%d" rx="2" fill="%s"/>`, left, y, length, height, fill)
			note := ""
			if b.fails > 0 {
				note = fmt.Sprintf(" (fails %d)", b.fails)
			}
			fmt.Fprintf(&body, `<text x="%.0f" y="%d">%.1f%s</text>`+"\n", left+length+8, y+height-4, b.times, note)
			y += step
		}
		y += height
	}
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="system-ui, sans-serif" font-size="13" fill="#768390">`+"\n<title>%s</title>\n",
		left+width+right, y+8, rep.claim())
	body.WriteTo(&out)
	fmt.Fprintf(&out, `<text x="0" y="%d" font-size="11">%d processors; of the others those that can run a program count for it</text>`+"\n</svg>\n", y, runtime.NumCPU())
	return out.Bytes()
}

// claim returns the report's means as a sentence, which the root README repeats.
func (rep *report) claim() string {
	parts := make([]string, len(rep.Sets))
	for i, s := range rep.Sets {
		parts[i] = fmt.Sprintf("on %s %.1f times as fast as the fastest other interpreter in Go on each program, and %.1f times the time of hand-written Go", s.Name, s.Faster, s.OverNative)
	}
	return strings.Join(parts, "; ")
}

// writeChart writes the chart to a file.
func (rep *report) writeChart(file string, cs []*contestant) error {
	return os.WriteFile(file, rep.chart(cs), 0o644)
}
