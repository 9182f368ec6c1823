package lease

import "golang.org/x/sys/unix"

// Now is the clock: on Linux CLOCK_BOOTTIME.
func Now() Time {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // Linux has had it since 2.6.39
	}
	return Time(t.Nano())
}
