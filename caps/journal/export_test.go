package journal

// SetMostDropped sets how many events are dropped at once, and gives back what
// it was.
func SetMostDropped(n uint64) (before uint64) {
	before, mostDropped = mostDropped, n
	return before
}
