package conform

import (
	"fmt"
	"strings"
)

// A Status is how a check went.
type Status string

// The ways.
const (
	OK      Status = "ok"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// A Check is the result of one.
type Check struct {
	Name   string `json:"name"`
	Says   string `json:"says"` // what holds where it is ok
	Status Status `json:"status"`
	// Detail is what was looked at, or why it was skipped.
	Detail string `json:"detail,omitempty"`
	// Evidence is what was seen of a failure, on lines of their own.
	Evidence []string `json:"evidence,omitempty"`
}

// A Report is the results of all checks, in their order.
type Report struct {
	Kind       string  `json:"kind"`
	Version    string  `json:"version"`
	Operations int     `json:"operations"`
	Checks     []Check `json:"checks"`
}

// Count is how many checks went a way.
func (r *Report) Count(s Status) int {
	n := 0
	for _, c := range r.Checks {
		if c.Status == s {
			n++
		}
	}
	return n
}

// Passed reports whether no check failed.
func (r *Report) Passed() bool { return r.Count(Failed) == 0 }

// Check finds a check by its name.
func (r *Report) Check(name string) (Check, bool) {
	for _, c := range r.Checks {
		if c.Name == name {
			return c, true
		}
	}
	return Check{}, false
}

// String is a line for each check, and one for all. Texts of the plugin are bounded
// and have no control characters.
func (r *Report) String() string {
	var b strings.Builder
	if r.Kind != "" {
		fmt.Fprintf(&b, "%s %s, operations: %d\n", r.Kind, r.Version, r.Operations)
	}
	for _, c := range r.Checks {
		status := string(c.Status)
		if c.Status == Failed {
			status = "FAILED"
		}
		text := c.Says
		if c.Detail != "" {
			text += " (" + c.Detail + ")"
		}
		if c.Status == Skipped {
			text = c.Detail
		}
		fmt.Fprintf(&b, "%-8s %-15s %s\n", status, c.Name, text)
		for _, e := range c.Evidence {
			fmt.Fprintf(&b, "         %-15s - %s\n", "", e)
		}
	}
	fmt.Fprintf(&b, "%d ok, %d failed, %d skipped\n", r.Count(OK), r.Count(Failed), r.Count(Skipped))
	return b.String()
}
