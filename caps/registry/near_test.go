package registry

import (
	"fmt"
	"testing"
)

// TestNear: what a tool is bound to is looked at once, in whatever circles it is bound.
func TestNear(t *testing.T) {
	z := &Tool{Name: "z"}
	circle := []*Tool{{Name: "a"}}
	for i := range 11 {
		circle = append(circle, &Tool{Name: fmt.Sprint("g", i)})
	}
	for _, of := range circle {
		of.Bound = map[string]*Tool{}
		for _, b := range circle {
			if b != of {
				of.Bound[b.Name] = b
			}
		}
	}
	circle[11].Bound["w"] = &Tool{Name: "w", Bound: map[string]*Tool{"z": z}}
	var near Near
	if found, _ := near.CodeOf(circle[0], "z", true); found != z {
		t.Errorf("z is %v", found)
	}
	if found, current := near.CodeOf(circle[0], "y", true); found != nil || current || len(near.tools) != 14 {
		t.Errorf("y is %v %v, of %d tools", found, current, len(near.tools))
	}
	if found, _ := near.CodeOf(circle[0], "z", false); found != nil {
		t.Errorf("computed, z is %v", found)
	}
}
