package core_test

import (
	"os"
	"testing"
)

// trials is how many programs a generated test makes: few, or all with PIF_FULL.
func trials(few, all int) int {
	if os.Getenv("PIF_FULL") != "" {
		return all
	}
	return few
}

// A tally counts what generated programs showed, by its name.
type tally map[string]int

// add counts what is so.
func (c tally) add(is map[string]bool) {
	for what, so := range is {
		if so {
			c[what]++
		}
	}
}

// shows fails where one of these was there less often.
func (c tally) shows(t *testing.T, least int, names ...string) {
	t.Helper()
	t.Log(c)
	for _, what := range names {
		if c[what] < least {
			t.Errorf("%s was there only %d times: the test shows little", what, c[what])
		}
	}
}
