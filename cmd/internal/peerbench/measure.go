package main

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"time"
)

// row is one line of the table: a program run hot, or from source text.
type row struct {
	name string
	prog *program
	cold bool
}

// options are the command line's.
type options struct {
	rounds  int
	minTime time.Duration
}

// entry is a cell of the table: what one contestant did with one row.
type entry struct {
	// Ns is the median over the rounds of the time per run, in nanoseconds.
	Ns float64 `json:"ns,omitempty"`

	// Fails is why the contestant has no time here, or empty.
	Fails string `json:"fails,omitempty"`
}

// ok reports whether there is a time.
func (e *entry) ok() bool { return e != nil && e.Fails == "" }

// runner is a contestant that has prepared a row's program.
type runner struct {
	name    string
	job     job
	timed   timedJob
	want    int64
	n       int // runs per sample, so that a sample lasts minTime
	samples []float64
	failed  error
}

// measure runs one row on every contestant that can. Contestants take turns,
// round by round, so that a machine that slows down for a while slows all of
// them; each begins a round one place later, so that none always follows the
// same neighbour.
func measure(r row, cs []*contestant, opt options) map[string]*entry {
	var rs []*runner
	for _, c := range cs {
		prepare := c.hot
		if r.cold {
			prepare = c.cold
		}
		x := &runner{name: c.name, want: r.prog.Expect}
		switch {
		case prepare != nil:
			x.prepare(prepare, r.prog)
		case c.timed != nil && !r.cold:
			x.timed, x.failed = c.timed(r.prog)
		default:
			continue
		}
		if errors.Is(x.failed, fs.ErrNotExist) {
			continue // not written in this language
		}
		if x.failed == nil {
			x.calibrate(opt.minTime)
		}
		rs = append(rs, x)
	}
	for round := range opt.rounds {
		for i := range rs {
			x := rs[(i+round)%len(rs)]
			if x.failed != nil {
				continue
			}
			// Garbage is paid for by whoever made it.
			runtime.GC()
			d := x.time(x.n)
			x.samples = append(x.samples, float64(d.Nanoseconds())/float64(x.n))
		}
	}
	out := make(map[string]*entry)
	for _, x := range rs {
		if x.failed != nil {
			out[x.name] = &entry{Fails: x.failed.Error()}
			continue
		}
		out[x.name] = &entry{Ns: median(x.samples)}
	}
	return out
}

// prepare compiles the program; a compiler that panics fails like one that
// returns an error.
func (x *runner) prepare(compile func(*program) (job, error), p *program) {
	defer x.catch()
	x.job, x.failed = compile(p)
}

// catch, deferred, takes a panic as the contestant's failure.
func (x *runner) catch() {
	if p := recover(); p != nil {
		x.failed = fmt.Errorf("panic: %v", p)
	}
}

// calibrate finds how many runs last minTime. Its runs are the warm-up.
func (x *runner) calibrate(minTime time.Duration) {
	for n := 1; ; n *= 2 {
		d := x.time(n)
		if x.failed != nil {
			return
		}
		if d >= minTime/2 {
			x.n = max(1, int(float64(n)*float64(minTime)/float64(max(d, 1))))
			return
		}
	}
}

// time runs the job n times, checking every result. A failure, a wrong result
// and a panic all stop the contestant for this row.
func (x *runner) time(n int) (d time.Duration) {
	defer x.catch()
	if x.timed != nil {
		d, got, err := x.timed(n)
		if err == nil && got != x.want {
			err = fmt.Errorf("wrong result %d, expected %d", got, x.want)
		}
		x.failed = err
		return d
	}
	start := time.Now()
	for range n {
		got, err := x.job()
		if err != nil {
			x.failed = err
			return 0
		}
		if got != x.want {
			x.failed = fmt.Errorf("wrong result %d, expected %d", got, x.want)
			return 0
		}
	}
	return time.Since(start)
}

// median of a list that has at least one element; it sorts the list.
func median(xs []float64) float64 {
	slices.Sort(xs)
	h := len(xs) / 2
	if len(xs)%2 == 1 {
		return xs[h]
	}
	return (xs[h-1] + xs[h]) / 2
}
