package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
)

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
			name, fill := labels[b.name], "#768390"
			if name == "" {
				name = b.name
			}
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
		parts[i] = fmt.Sprintf("on %s %.1f times as fast as the fastest of the four interpreters on each program, and %.1f times the time of hand-written Go", s.Name, s.Faster, s.OverNative)
	}
	return strings.Join(parts, "; ")
}

// writeChart writes the chart to a file.
func (rep *report) writeChart(file string, cs []*contestant) error {
	return os.WriteFile(file, rep.chart(cs), 0o644)
}
