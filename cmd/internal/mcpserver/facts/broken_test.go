package facts

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestRunMeant: whether a variable is the name of a tool is asked once of each, however many notes there are.
func TestRunMeant(t *testing.T) {
	free, notes, asked := []string{"sq"}, []string{`line 1, column 1: "sq" is neither bound here nor a primitive; did you mean eq?`}, 0
	for i := range 1000 {
		free = append(free, fmt.Sprint("a", i))
		notes = append(notes, fmt.Sprintf("the variable %q is free", free[i]))
	}
	got := RunMeant(slices.Clone(notes), slices.Clone(free), func(name string) bool { asked++; return name == "sq" })
	if asked != len(free) || len(got) != len(notes) || !slices.Equal(got[:1000], notes[1:]) || !strings.HasPrefix(got[1000], "the tool sq is called as @sq(x)") {
		t.Errorf("asked %d times of %d names; %d notes, the last %q", asked, len(free), len(got), got[len(got)-1])
	}
}
