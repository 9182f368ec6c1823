package eval

import (
	"bytes"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"
)

// TestShares: where the pool is short, the newest run gives way of the principal that is
// furthest above what is its own.
func TestShares(t *testing.T) {
	const mb = 1 << 20
	p := &slabPool{limit: 128 * mb}
	var gone []string
	var all []*Stake
	run := func(name string, share *Share) *Stake {
		s := &Stake{Share: share, Most: 64 * mb, GiveWay: func(own bool) {
			if own {
				name += " (own)"
			}
			gone = append(gone, name)
		}}
		s.Wait = func(<-chan struct{}) bool { // those that were told end
			p.Lock()
			defer p.Unlock()
			freed := false
			for _, o := range all {
				if o.told && o.held > 0 {
					p.count(o, -o.held)
					freed = true
				}
			}
			return freed
		}
		all = append(all, s)
		return s
	}
	take := func(s *Stake, n int64, want bool, gives ...string) {
		t.Helper()
		gone = nil
		p.Lock()
		got := p.admit(s, n)
		p.Unlock()
		if got != want || !slices.Equal(gone, gives) {
			t.Errorf("taken: %v; gave way: %q", got, gone)
		}
	}
	ann := Share{Owner: "ann"}
	var bob, cyd, dan Share
	a1, a2, a3 := run("a1", &ann), run("a2", &ann), run("a3", &ann)
	take(a1, 60*mb, true)
	take(a2, 40*mb, true)
	take(a3, 30*mb, true) // alone one has everything
	take(run("a4", &ann), 30*mb, false)
	if f := p.overloaded(all[3]); !strings.HasPrefix(f.Message, "your own runs, those of ann, hold the memory") {
		t.Error(f)
	}
	take(a1, 10*mb, true, "a3 (own)") // the newest of one's own, too
	b1 := run("b1", &bob)
	take(b1, 30*mb, true, "a2")
	take(b1, 30*mb, true)
	take(a1, 10*mb, false) // it is above its share itself, and the newest
	take(run("c1", &cyd), 1*mb, true)
	take(run("c2", &cyd), 10*mb, true, "a1")
	take(run("a5", &ann), 64*mb, true)
	take(run("c3", &cyd), 1*mb, true)
	// Nobody is above what one run may have: a newcomer has only what is kept for it.
	d1 := run("d1", &dan)
	take(d1, 8*mb, false)
	if f := p.overloaded(d1); !strings.HasPrefix(f.Message, "runs of another principal hold the memory") {
		t.Error(f)
	}
	take(d1, 1*mb, true)
	take(d1, 4*mb, false)
	// What somebody else waits for is promised.
	p.Lock()
	p.waiting = map[*Stake]int64{d1: 4 * mb}
	p.count(b1, -5*mb)
	p.Unlock()
	take(all[len(all)-2], 1*mb, false)
	delete(p.waiting, d1)
	take(d1, 4*mb, true)
	for _, s := range all {
		p.Lock()
		p.count(s, -s.held)
		p.Unlock()
	}
	if p.held != 0 || len(p.active) != 0 {
		t.Errorf("%d bytes are held, by %d", p.held, len(p.active))
	}
}

// TestDroppedSlabs: what the pool drops is left to Go's collector, without a reference behind
// it, and what is lent beside slabs takes the room of idle ones.
func TestDroppedSlabs(t *testing.T) {
	p := &slabPool{limit: 8 << 20}
	for range 6 {
		p.free = append(p.free, make([]word, 1<<17))
		p.idle += 1 << 20
	}
	s := &Stake{Share: &Share{}, Most: 8 << 20}
	if !p.lend(s, 5<<20) {
		t.Fatal("there is room")
	}
	if p.held != 5<<20 || p.idle != 3<<20 || p.dropped != 3<<20 || len(p.free) != 3 {
		t.Errorf("%d held, %d idle in %d slabs, %d dropped", p.held, p.idle, len(p.free), p.dropped)
	}
	for i, left := range p.free[len(p.free):cap(p.free)] {
		if left != nil {
			t.Errorf("dropped slab %d is kept", i)
		}
	}
}

// TestTakes: what is kept of runs has the room that runs and others leave, half of it where there are others, and is
// asked for room before what is of nobody.
func TestTakes(t *testing.T) {
	p := &slabPool{limit: 64 << 20}
	own, other := &Share{}, &Share{}
	asked := ""
	keeper := func(name string, s *Share) *Keeper {
		k := &Keeper{Share: s}
		k.Drop = func(int64) { asked += name; p.note(k, -k.held) }
		return k
	}
	nobodys, a, b := keeper("nobody's ", nil), keeper("own ", own), keeper("other's ", other)
	p.note(nobodys, 4<<20)
	if p.take(a, 61<<20) || !p.take(a, 44<<20) {
		t.Error("it has what others leave")
	}
	s := &Stake{Share: other, Most: 64 << 20}
	if !p.lend(s, 8<<20) || p.take(a, 1<<20) || p.take(b, 9<<20) || !p.take(b, 8<<20) {
		t.Error("with others it has half of what they leave")
	}
	if !p.lend(s, 50<<20) || asked != "other's own " || own.kept != 0 || other.kept != 0 || p.kept != 4<<20 {
		t.Errorf("asked for room were %s; %d, %d and %d bytes are kept", asked, own.kept, other.kept, p.kept)
	}
}

// TestLargeLoans: what was lent of much, and is given back, takes room until Go's collector has it.
func TestLargeLoans(t *testing.T) {
	p := &slabPool{limit: 64 << 20}
	s := &Stake{Share: &Share{}, Most: 64 << 20}
	for _, c := range []struct{ lend, dropped int64 }{{40, 0}, {-2, 0}, {-38, 38}, {20, 38}, {30, 0}, {-50, 50}, {10, 50}, {-10, 60}, {60, 0}, {-6, 6}} {
		if !p.lend(s, c.lend<<20) || p.dropped != c.dropped<<20 {
			t.Errorf("%d MiB more: %d bytes dropped, expected %d MiB", c.lend, p.dropped, c.dropped)
		}
	}
}

// TestKeepers: what is kept for later goes where runs need the room, after what lies idle, and no
// earlier.
func TestKeepers(t *testing.T) {
	p := &slabPool{limit: 8 << 20}
	k := &Keeper{}
	k.Drop = func(bytes int64) { p.note(k, -min(bytes, k.held)) }
	p.note(k, 4<<20)
	p.note(&Keeper{}, 1<<20) // drops nothing
	p.free, p.idle = [][]word{make([]word, 1<<17)}, 1<<20
	s := &Stake{Share: &Share{}, Most: 8 << 20}
	for _, c := range []struct{ lend, kept, idle int64 }{{2, 5, 1}, {1, 5, 0}, {2, 3, 0}, {3, 1, 0}} {
		if !p.lend(s, c.lend<<20) {
			t.Fatalf("no room for %d MiB", c.lend)
		}
		if p.kept != c.kept<<20 || p.idle != c.idle<<20 {
			t.Errorf("%d bytes held, %d kept, %d idle, expected %d and %d MiB", p.held, p.kept, p.idle, c.kept, c.idle)
		}
	}
	if p.lend(s, -8<<20); p.held != 0 || len(p.keepers) != 1 {
		t.Errorf("%d bytes are held, %d keepers", p.held, len(p.keepers))
	}
}

// TestDispatch: what the loop does between two instructions lies in one line of the
// cache, wherever the linker puts the function. Where it lies in two, loops that call
// take half as long again. Functions begin at multiples of 32 bytes, lines of 64.
func TestDispatch(t *testing.T) {
	if runtime.GOARCH != "amd64" || !strings.HasPrefix(runtime.Version(), "go1.26") {
		t.Skip("the compiler may lay it out otherwise")
	}
	code := unsafe.Slice((*byte)(reflect.ValueOf((*Machine).loop).UnsafePointer()), 128)
	jump := bytes.Index(code, []byte{0xff, 0x24}) // JMP 0(CX)(R9*8), after its prefix
	if jump < 0 {
		t.Skip("instrumented")
	}
	into := bytes.LastIndexByte(code[:jump], 0xeb) // a short jump into the loop, whose top is after it
	if into < 0 {
		t.Skip("instrumented")
	}
	if top, end := into+2, jump+3; top%32+end-top > 32 {
		t.Errorf("the dispatch is at bytes %d to %d of the loop: move a field that is read first in it, so that it begins at a multiple of 32 or a little after", top, end)
	}
}

// Characters are counted in pieces as they are at once, wherever the pieces end, in what is no text, too.
func TestCountRunes(t *testing.T) {
	t.Parallel()
	var m Machine
	for _, c := range []string{"é", "€", "𝄞", "\x80", "\xe2\x82", "\xf0\x9d\x84"} {
		for before := range 5 {
			s := strings.Repeat("a", copyPiece-before) + strings.Repeat(c, 8) + "a" + strings.Repeat(c, copyPiece/len(c))
			if n := m.countRunes(s); n != utf8.RuneCountInString(s) {
				t.Errorf("%q at %d: %d", c, before, n)
			}
		}
	}
}
