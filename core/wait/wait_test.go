package wait

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// failing is a test that has almost no time left, and keeps why it failed.
type failing struct {
	testing.TB
	failed string
}

func (f *failing) Helper()                     {}
func (f *failing) Deadline() (time.Time, bool) { return time.Now().Add(2 * time.Millisecond), true }
func (f *failing) Fatalf(format string, args ...any) {
	f.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// fails returns why what do waits for fails its test.
func fails(t *testing.T, do func(testing.TB)) string {
	f := &failing{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do(f)
	}()
	For(t, ended, "the end of a wait")
	return f.failed
}

// TestBounded: each wait ends with the thing or with a failure that names it.
func TestBounded(t *testing.T) {
	const want = "waited in vain: the thing"
	if got := fails(t, func(t testing.TB) { For(t, make(chan int), "the thing") }); got != want {
		t.Errorf("For: %q", got)
	}
	if got := fails(t, func(t testing.TB) { Until(t, "the thing", func() bool { return false }) }); got != want {
		t.Errorf("Until: %q", got)
	}
	ch := make(chan int, 1)
	ch <- 7
	if got := For(t, ch, "a number"); got != 7 {
		t.Errorf("got %d", got)
	}
	asked := 0
	Until(t, "three questions", func() bool { asked++; return asked == 3 })
}
