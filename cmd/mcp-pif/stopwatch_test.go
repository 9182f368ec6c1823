package main

import (
	"slices"
	"time"
)

// A stopwatch collects times, in nanoseconds.
type stopwatch []float64

func (s *stopwatch) time(do func()) {
	start := time.Now()
	do()
	*s = append(*s, float64(time.Since(start)))
}

func (s *stopwatch) median() float64 {
	sorted := slices.Sorted(slices.Values(*s))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}
