package proc

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCostlyPattern: a search that would take a minute is given up, and one that is
// only long finds what there is to find.
func TestCostlyPattern(t *testing.T) {
	text := []byte(strings.Repeat("a", 4<<20) + "b")
	costly, err := newPattern("(a?){300}b")
	if err != nil {
		t.Fatal(err)
	}
	if place := costly.find(text, time.Now().Add(20*time.Millisecond)); place != nil {
		t.Errorf("found at %v all the same", place)
	}
	if place := costly.find(text[len(text)-1000:], time.Time{}); !slices.Equal(place, []int{699, 1000}) {
		t.Errorf("in little text it is at %v", place)
	}
	large, err := newPattern(strings.Repeat("a|", 50) + "€b")
	if err != nil {
		t.Fatal(err)
	}
	wide := []byte(strings.Repeat("€", 1<<20) + "€b")
	if place := large.find(wide, time.Now().Add(time.Hour)); !slices.Equal(place, []int{len(wide) - 4, len(wide)}) {
		t.Errorf("in much text it is at %v", place)
	}
}
