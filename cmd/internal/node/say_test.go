package node

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// refusing is an order that takes nothing, or notes what it takes.
type refusing struct {
	order.Order
	err  error
	mu   sync.Mutex
	said []string
}

func (o *refusing) Propose(ctx context.Context, p []byte) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.said = append(o.said, string(p))
	return o.err
}

// about is how often something was said with a text in it.
func (o *refusing) about(text string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.said {
		n += strings.Count(s, text)
	}
	return n
}

// What an order will never take isn't said again, and a session's end doesn't wait for ever for one that is silent.
func TestSayEnds(t *testing.T) {
	for _, err := range []error{order.ErrOther, order.ErrClosed, order.ErrTooLarge, errors.New("silent")} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			o := &refusing{err: err}
			n := &Node{o: Options{Name: "a", Order: o}}
			want, begun := err, time.Now()
			if err.Error() == "silent" {
				want = context.DeadlineExceeded
			}
			if got := n.End(ctx, "x\x00s"); !errors.Is(got, want) || time.Since(begun) > maxSilence {
				t.Errorf("%v: %v after %v", err, got, time.Since(begun))
			}
		})
	}
}

// Who asks for copies anew is given those alone.
func TestAskedAnew(t *testing.T) {
	o := &refusing{}
	n := &Node{o: Options{Name: "a", Order: o}, asked: map[string]asked{}}
	n.ctx, n.end = context.WithCancel(t.Context())
	n.holds.Store(true)
	n.giving.Lock() // another's copies
	for _, id := range []string{"first", "first", "second"} {
		n.hears(journal.Heard{IsMessage: true, Node: "b" + says, Message: []byte(`{"id":"` + id + `","of":"a"}` + "\n")})
	}
	wait.Until(t, "it says twice that it is at the second", func() bool { return o.about(`"second"`) > 1 })
	if first := o.about(`"first"`); first > 1 {
		t.Errorf("it goes on with the first, %d times", first)
	}
	n.end()
	n.giving.Unlock()
	n.tasks.Wait()
}
