// Package wait bounds what tests wait for. A test that waits for something that
// doesn't come fails at the line that waits, with what it waited for, and leaves
// time for the tests after it. What tests start ends with them; see [EndWithTest].
//
// Only tests import it. It isn't for tests in a bubble of testing/synctest, whose
// clock isn't the deadline's: a receive that never comes is a deadlock there, which
// synctest reports at once.
package wait

import (
	"os"
	"testing"
	"time"
)

// For receives from ch, and fails the test if nothing comes. Like [testing.T.Fatal] it must
// be called from the goroutine that runs the test, or in a cleanup.
func For[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	timer := time.NewTimer(Limit(t))
	defer timer.Stop()
	select {
	case v := <-ch:
		return v
	case <-timer.C:
		t.Fatalf("waited in vain: %s", what)
		panic("unreachable")
	}
}

// Until waits until done reports true, and fails the test if it never does. It asks every
// few milliseconds, and must be called where [For] may be.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(Limit(t)); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// most is how long one wait may take however much time is left.
const most = 5 * time.Minute

// Limit returns how long one wait may take: half of the time that is left to the whole
// test binary, since a busy machine makes anything slow, but not without end. With
// PIF_FULL=1 a step may be long. Tests need it only where they wait for one of several things.
func Limit(t testing.TB) time.Duration {
	if t, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, bounded := t.Deadline(); bounded && os.Getenv("PIF_FULL") != "" {
			return time.Until(end) / 2
		} else if bounded {
			return min(time.Until(end)/2, most)
		}
	}
	return most
}
