package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// TestTraceWalks steps through a trace forth and back.
func TestTraceWalks(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	answers := strings.Split("next next b b next b next next next q", " ")
	tr := &tracing{out: &out, ask: func() (string, error) {
		if len(answers) == 0 {
			return "", io.EOF
		}
		answer := answers[0]
		answers = answers[1:]
		return answer + "\n", nil
	}}
	// What Eval does with each step.
	for _, step := range []string{"1", "2", "3", "4"} {
		out.WriteString(step)
		tr.shown = append(tr.shown, step)
		if !tr.walk() {
			break
		}
	}
	if got := out.String(); got != "12321212"+"34" {
		t.Errorf("it shows %s", got)
	}
	if len(answers) > 0 {
		t.Errorf("it ends before q: %v", answers)
	}
}
