package registry

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// TestFull: there is room for so many tools, so much code, and so many old
// versions that others are bound to.
func TestFull(t *testing.T) {
	r := New(nil)
	for i := range MaxTools {
		evolve(t, r, def(fmt.Sprint("t", i), "1"))
	}
	if _, err := r.Evolve(def("more", "1"), Edit{}); is(err, fault.Refused, "10000 tools") != nil {
		t.Errorf("one tool too many: %v", err)
	}
	evolve(t, r, def("t7", "2"))
	if _, err := r.Retire("t8", Edit{}); err != nil {
		t.Fatal(err)
	}
	evolve(t, r, def("more", "1"))
}

func TestFullCode(t *testing.T) {
	large := `"` + strings.Repeat("x", 200_000) + `"`
	for _, bound := range []bool{false, true} {
		r := New(nil)
		for i := 0; ; i++ {
			name := fmt.Sprint("t", i)
			if bound {
				name = "lib" // its old versions are what others are bound to
			}
			_, err := r.Evolve(def(name, large), Edit{})
			if err == nil && bound {
				_, err = r.Evolve(def(fmt.Sprint("t", i), `code_of("lib")`), Edit{})
			}
			if err != nil {
				if is(err, fault.Refused, "bytes") != nil || i != MaxTotal/len(large) {
					t.Errorf("after %d large tools: %v", i, err)
				}
				break
			}
		}
		if r.held.code > MaxTotal {
			t.Errorf("%d bytes are held", r.held.code)
		}
		evolve(t, r, def("t0", "1"))
	}
}

// TestFullTold: descriptions and examples take room, too.
func TestFullTold(t *testing.T) {
	r := New(nil)
	d := def("", "1")
	d.Examples = []Example{{Input: []byte(`"` + strings.Repeat("x", 250<<10) + `"`), Expect: []byte("1")}}
	for i := 0; ; i++ {
		d.Name = fmt.Sprint("t", i)
		if _, err := r.Evolve(d, Edit{}); err != nil {
			if is(err, fault.Refused, "descriptions and examples") != nil || i != MaxTold/told(&Tool{Description: "1", Examples: d.Examples}) {
				t.Errorf("after %d: %v", i, err)
			}
			break
		}
	}
	evolve(t, r, def("small", "1"))
}

// failing is a log that takes nothing more.
type failing struct {
	Log
	err error
}

func (f *failing) Append(after uint64, c *Change) (uint64, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.Log.Append(after, c)
}

// TestKeep: a change that can't be kept isn't made.
func TestKeep(t *testing.T) {
	l := &failing{Log: new(memoryLog)}
	r := open(t, l, nil)
	evolve(t, r, def("a", "1"))
	l.err = errors.New("the disk is full")
	_, err := r.Evolve(def("b", "1"), Edit{})
	if !errors.Is(err, l.err) || is(err, fault.Refused, "the disk is full") != nil {
		t.Error(err)
	}
	if _, err := r.Evolve(def("a", "2"), Edit{}); !errors.Is(err, l.err) {
		t.Error(err)
	}
	if _, err := r.Retire("a", Edit{}); !errors.Is(err, l.err) {
		t.Error(err)
	}
	if s := r.Snapshot(); s.Len() != 1 || s.All()[0].Version != 1 || len(r.held.count) != 1 || r.held.code != 1 {
		t.Error("it was changed all the same")
	}
	l.err = nil
	if made := evolve(t, r, def("a", "2")); made.Version != 2 {
		t.Errorf("%+v", made)
	}
}
