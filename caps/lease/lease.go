// Package lease is the clock by which a process may act: two processes of one machine read the
// same, it isn't set, and it goes on while the machine sleeps, so that nobody who was asleep
// takes an old permission for a new one. Where a system has no such clock (see [Now]) it is
// the clock on the wall.
//
// It imports nothing of the project, and decides nothing: package cmd/internal/node gives
// leases, plugins hold to them.
package lease

import "time"

// A Time is nanoseconds since some moment, the same for all processes of a machine until it
// is started again. 0 is no time.
type Time int64

// Length is how long a lease lasts.
const Length = time.Second

// Add is a time later by d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Over reports whether a lease that lasts until t has ended.
func (t Time) Over() bool { return Now() >= t }

// Since is how long ago t was.
func Since(t Time) time.Duration { return time.Duration(Now() - t) }
