package streamable

import (
	"context"
	"slices"
	"sync"
)

// A call takes about a hundred kilobytes while the SDK has it, and some milliseconds to get there. So each principal has some
// there, fewer of many, and the others wait before that, where they take a third.
const (
	// callsInside is how many there are of all principals, but each has callsOwn.
	callsInside = 512
	callsOwn    = 16
)

// calls lets in those of each principal in their order. A principal who comes never waits for another's. The zero value is
// ready.
type calls struct {
	mu      sync.Mutex
	inside  map[string]int // of each principal
	waiting map[string][]chan struct{}
}

// most is how many a principal may have inside. The caller holds the lock.
func (c *calls) most() int { return max(callsOwn, callsInside/max(1, len(c.inside))) }

// enter waits until a call may come in; the error is that of ctx.
func (c *calls) enter(ctx context.Context, principal string) (leave func(), err error) {
	c.mu.Lock()
	if c.inside == nil {
		c.inside, c.waiting = map[string]int{}, map[string][]chan struct{}{}
	}
	leave = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.inside[principal]--; c.inside[principal] == 0 {
			delete(c.inside, principal)
		}
		c.next()
	}
	turn := make(chan struct{})
	c.waiting[principal] = append(c.waiting[principal], turn)
	c.next()
	c.mu.Unlock()
	select {
	case <-turn:
		return leave, nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.waiting[principal], turn); i >= 0 {
		c.remove(principal, i)
		return nil, ctx.Err()
	}
	return leave, nil // its turn came at the same moment
}

// next lets in those who may come. The caller holds the lock.
func (c *calls) next() {
	for principal := range c.waiting {
		for len(c.waiting[principal]) > 0 && (c.inside[principal] == 0 || c.inside[principal] < c.most()) {
			c.inside[principal]++
			close(c.waiting[principal][0])
			c.remove(principal, 0)
		}
	}
}

// remove takes off one who waits. The caller holds the lock.
func (c *calls) remove(principal string, i int) {
	if c.waiting[principal] = slices.Delete(c.waiting[principal], i, i+1); len(c.waiting[principal]) == 0 {
		delete(c.waiting, principal)
	}
}
