package registry

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestFull: there is room for so many tools, so much code, and so many old
// versions that others are bound to.
func TestFull(t *testing.T) {
	r := open(t, fullLog(t, MaxTools, nil), nil)
	if _, err := r.Evolve(def("more", "1"), Edit{}); is(err, fault.Refused, "10000 tools") != nil {
		t.Errorf("one tool too many: %v", err)
	}
	evolve(t, r, def("t7", "2"))
	must.Succeed(t)(r.Retire("t8", Edit{}))
	evolve(t, r, def("more", "1"))
	// A log with more than fit: those that do are there.
	most := MaxTools / whole * recorded
	r, problems, err := Open(fullLog(t, most+3, nil), nil)
	if err != nil || len(problems) != 3 || r.Snapshot().Len() != most {
		t.Errorf("%d problems, %d tools, %v", len(problems), r.Snapshot().Len(), err)
	}
}

// TestFullAtOnce: servers that evolve at the same time can make more together than fit. All of it is there, also after a
// start, and the versions that were there before aren't lost.
func TestFullAtOnce(t *testing.T) {
	l := fullLog(t, MaxTools, nil)
	r := open(t, l, nil)
	for i, name := range []string{"a", "b", "t7"} {
		c := stored(t, name, 1+i/2, "2")
		c.Kind, c.Seq = Evolved, uint64(MaxTools+1+i)
		l.changes = append(l.changes, c)
	}
	if _, err := r.Evolve(def("more", "1"), Edit{}); is(err, fault.Refused, "10000 tools") != nil {
		t.Error(err)
	}
	for _, r := range []*Registry{r, open(t, l, nil)} {
		if old, _ := r.Snapshot().Get("t7"); r.Snapshot().Len() != MaxTools+2 || old == nil || old.Version != 2 {
			t.Errorf("%d tools, t7 %v", r.Snapshot().Len(), old)
		}
	}
}

// fullLog is a log of so many tools.
func fullLog(t testing.TB, tools int, examples []Example) *memoryLog {
	c := stored(t, "x", 1, "1")
	c.Examples = examples
	changes := make([]Change, tools)
	for i := range changes {
		changes[i] = c
		changes[i].Name = fmt.Sprint("t", i)
	}
	return forged(changes...)
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
			// Other code each time, of the same size: the same again makes no version.
			code := fmt.Sprintf("%s%06d\"", large[:len(large)-7], i)
			_, err := r.Evolve(def(name, code), Edit{})
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
	examples := []Example{{Input: []byte(`"` + strings.Repeat("x", 250<<10) + `"`), Expect: []byte("1")}}
	fit := MaxTold / told(&Tool{Description: "x", Examples: examples})
	r := open(t, fullLog(t, fit, examples), nil)
	d := def("more", "1")
	d.Examples = examples
	if _, err := r.Evolve(d, Edit{}); is(err, fault.Refused, "descriptions and examples") != nil {
		t.Error(err)
	}
	evolve(t, r, def("more", "1"))
	d.Name = "t7"
	d.Examples = []Example{}
	evolve(t, r, d)
	d.Name, d.Examples = "more", examples
	evolve(t, r, d)
}

// failing is a log that takes nothing more.
type failing struct {
	Log
	err error
}

func (f *failing) Append(after uint64, c *Change, read ...string) (uint64, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.Log.Append(after, c, read...)
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

// TestRoom: what several registries hold is bounded together; each has its part whatever the others
// took, and what one gives up is there for another.
func TestRoom(t *testing.T) {
	t.Parallel()
	told := int64(-1)
	room := NewRoom(4<<20, 8, func(held int64) { told = held })
	all := make([]*Registry, 8)
	fill := func(r *Registry) (n int) {
		for ; n < 100; n++ {
			if _, err := r.Evolve(def(fmt.Sprint("t", n), fmt.Sprintf(`"%s%03d"`, strings.Repeat("x", 100_000), n)), Edit{}); err != nil {
				if is(err, fault.Refused, "of what is for all no more is left") != nil {
					t.Error(err)
				}
				return n
			}
		}
		return n
	}
	sum := 0
	for i := range all {
		all[i] = New(nil)
		all[i].Enter(room, 1)
		n := fill(all[i])
		if sum += n; n == 0 || i > 0 && n > 2 {
			t.Errorf("the %dth has %d tools", i, n)
		}
	}
	if room.held > 4<<20 || told != room.held || sum < 30 {
		t.Errorf("%d bytes in %d tools are held, it was told %d", room.held, sum, told)
	}
	group := []Definition{def("a", `"`+strings.Repeat("y", 100_000)+`"`), def("b", `"`+strings.Repeat("z", 100_000)+`"`)}
	if _, err := all[7].EvolveAll(group, make([]Edit, 2)); is(err, fault.Refused, "of what is for all") != nil {
		t.Errorf("a group: %v", err)
	}
	if beyond, tooMuch := all[0].Beyond(); !beyond || tooMuch {
		t.Error(beyond, tooMuch)
	}
	evolve(t, all[7], def("t0", "1")) // what takes less always may
	must.Succeed(t)(all[0].Retire("t0", Edit{}))
	// What is on record is there all the same, and seen to be too much.
	late := open(t, fullLog(t, 5, []Example{{Input: []byte(`"` + strings.Repeat("x", 250<<10) + `"`), Expect: []byte("1")}}), nil)
	late.Enter(room, 1)
	if _, tooMuch := late.Beyond(); !tooMuch || late.Snapshot().Len() != 5 {
		t.Error("it fits")
	}
	all[0].Leave()
	if _, tooMuch := late.Beyond(); tooMuch {
		t.Error("it doesn't fit, though one left")
	}
	for _, r := range append(all[1:], late) {
		r.Leave()
	}
	if room.held != 0 || room.beyond != 0 || told != 0 {
		t.Errorf("%d bytes are held", room.held)
	}
}
