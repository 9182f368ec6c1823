package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/step"
)

// shownTerm is how much of a text is shown on a line.
const shownTerm = 160

// trace prints the points of a walk from some step on up to another; 0: all.
func trace(ctx context.Context, out io.Writer, w *step.Walk, from, to uint64, asJSON bool) error {
	var err error
	walked := w.Each(ctx, func(p *step.Point) bool {
		if to > 0 && p.Steps > to {
			return false
		}
		if p.Steps < from {
			return true
		}
		if v := p.View(); asJSON {
			err = cli.PrintLine(out, v)
		} else {
			_, err = io.WriteString(out, pointText(&v, false))
		}
		return err == nil
	})
	return cmp.Or(err, walked)
}

// pointText is what is shown of a point, in lines, with what comes of it or without.
func pointText(v *step.View, values bool) string {
	head := fmt.Sprintf("%6d  ", v.Steps)
	aside, at := "        ", ""
	if values { // nothing stands before it that tells of its place
		aside, at = head, v.Place.Text()+": "
	}
	value := "gave " + v.Value
	if v.Failure != "" {
		value = "failed: " + v.Failure
	}
	switch v.Kind {
	case step.End:
		return head + cli.Printable(value) + "\n"
	case step.Limit:
		return head + "the run goes on, and isn't looked at further\n"
	case step.Effect:
		branch := ""
		if v.Branch != "" {
			branch = "branch " + v.Branch + ": "
		}
		return aside + "effect " + cli.Printable(at+branch+v.Asked+" gave "+v.Gave) + "\n"
	case step.Fault:
		return aside + cli.Printable("failed at "+v.Place.Text()+": "+v.Failure) + "\n"
	}
	in := ""
	if v.Row != "" {
		in = "  in " + v.Row
	}
	text := head + cli.Printable(fmt.Sprintf("left %d  depth %d  %s%s", v.Left, v.Depth, v.Place.Text(), in)) + "\n        " + cli.Printable(v.Term) + "\n"
	if len(v.Vars) > 0 {
		vars := make([]string, 0, shownVars)
		for i, x := range v.Vars {
			if i == shownVars {
				vars = append(vars, "…")
				break
			}
			vars = append(vars, x.Name+" = "+cli.FirstLine(x.Value, shownVar))
		}
		text += "        where " + cli.Printable(strings.Join(vars, ", ")) + "\n"
	}
	if values && v.Value+v.Failure != "" {
		text += "        " + cli.Printable(strings.Replace(value, "gave", "gives", 1)) + "\n"
	}
	return text
}

// The variables that are shown with each evaluation.
const (
	shownVars = 8
	shownVar  = 60
)

// oneLine joins the lines of a program. Line ends in strings are escaped.
func oneLine(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}
