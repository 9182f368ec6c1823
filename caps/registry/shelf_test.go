package registry

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// shelved has the process's shelf be empty, and of a size, during a test: what other
// tests compiled may be in use by something of theirs that isn't gone.
func shelved(t *testing.T, most int) {
	compiled.mu.Lock()
	defer compiled.mu.Unlock()
	wasMost, held, hand, ring := compiled.most, compiled.held, compiled.hand, compiled.ring
	compiled.most, compiled.held, compiled.hand, compiled.ring = most, 0, 0, nil
	t.Cleanup(func() {
		compiled.mu.Lock()
		defer compiled.mu.Unlock()
		compiled.most, compiled.held, compiled.hand, compiled.ring = wasMost, held, hand, ring
	})
}

// TestShelf: however much code there is, only so much of it is compiled at once; what
// isn't is compiled again when it is used, and is the same.
func TestShelf(t *testing.T) {
	shelved(t, 200<<10)
	r := New(nil)
	const tools = 100
	list := func(i int) string { return fmt.Sprintf("x => [%d%s]", i, strings.Repeat(",-x", 100)) }
	for i := range tools {
		evolve(t, r, def(fmt.Sprintf("t%d", i), list(i)))
	}
	count := func() (n, bytes int) {
		for _, tool := range r.Snapshot().All() {
			if prog := tool.code.prog.Load(); prog != nil {
				n++
				bytes += prog.Size()
			}
		}
		return n, bytes
	}
	if n, bytes := count(); n == 0 || n > tools/2 || bytes > 200<<10 {
		t.Errorf("%d of %d tools are compiled, in %d bytes", n, tools, bytes)
	}
	hot, _ := r.Snapshot().Get("t7")
	first := hot.Program()
	for round := range 2 {
		for i := range tools {
			tool, _ := r.Snapshot().Get(fmt.Sprintf("t%d", i))
			if got := tool.Program(); got.Hash() != tool.Hash || tool.Problem() != nil {
				t.Fatalf("round %d: %s is %s, expected %s: %v", round, tool.Name, got.Hash(), tool.Hash, tool.Problem())
			}
			if hot.Program() != first {
				t.Fatalf("round %d: what is always in use was compiled again after %s", round, tool.Name)
			}
		}
	}
	if n, bytes := count(); n > tools/2 || bytes > 200<<10 {
		t.Errorf("%d of %d tools are compiled, in %d bytes", n, tools, bytes)
	}
	// One that is larger than all there is can be had, too.
	large := evolve(t, r, def("large", "x => ["+strings.Repeat("-x,", 10_000)+"x]"))
	if large.Program().Hash() != large.Hash {
		t.Error("it is another")
	}
}

// TestShelfSize: what a program is said to take is about what it takes.
func TestShelfSize(t *testing.T) {
	for _, item := range []string{"-x", "x", "1", "[]", "x + 1", "f(x, 2)", "{a: 1}", `"text"`, "if x then 1 else 2", "!fs.read(x)", "y => y + x"} {
		text := "x => [" + strings.Repeat(item+", ", 20_000) + "0]"
		d := Definition{Name: "t", Text: true, Code: []byte(text)[:min(len(text), 200<<10)]}
		if len(d.Code) < len(text) {
			last := strings.LastIndex(string(d.Code), ", ")
			d.Code = append(d.Code[:last:last], ']')
		}
		c := &code{name: "t", source: d.Code, text: true}
		heap := func() int {
			runtime.GC()
			runtime.GC() // what lies in pools goes with the second
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc)
		}
		before := heap()
		prog, err := c.compile()
		if err != nil {
			t.Fatalf("%s: %v", item, err)
		}
		took, says := heap()-before+len(d.Code), prog.Size()
		runtime.KeepAlive(prog)
		if says < took/2 || says > took*3 {
			t.Errorf("%q: it takes %d bytes, and says %d", item, took, says)
		}
		t.Logf("%q: %d bytes, says %d (%.2f)", item, took, says, float64(says)/float64(took))
	}
}

// TestShelfTogether: many that compile and use at once.
func TestShelfTogether(t *testing.T) {
	shelved(t, 30<<10)
	r := New(nil)
	for i := range 40 {
		evolve(t, r, def(fmt.Sprintf("t%d", i), fmt.Sprintf("x => x + %d", i)))
	}
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 2000 {
				tool, _ := r.Snapshot().Get(fmt.Sprintf("t%d", (i*7+w)%40))
				if tool.Program().Hash() != tool.Hash {
					t.Error("it is another")
					return
				}
			}
		})
	}
	all.Wait()
}
