package conform

import (
	"bytes"
	"context"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
)

// How many calls are made at once, each this often.
const (
	atOnce = 16
	rounds = 4
)

// checkConcurrency makes calls at once. Those that read and gave the same twice
// when they were made in turn have to give it then, too.
func checkConcurrency(ctx context.Context, t *trial) {
	h, ok := t.handle(ctx)
	if !ok {
		return
	}
	type steady struct {
		request
		want []byte
	}
	encoded := func(a answer) []byte {
		if a.value == nil {
			return nil
		}
		b, _ := wire.EncodeValue(a.value, 2*most)
		return b
	}
	var all []steady
	compared := 0
	for _, r := range t.requests(nil) {
		v, _ := t.manifest.Verb(r.operation.Verb)
		s := steady{request: r}
		if v.ReadOnly && (r.operation.VerbParam == "" || t.manifest.Algebra == caps.URL) {
			s.want = encoded(t.call(ctx, h, r.operation.Name, r.args))
			if again := encoded(t.call(ctx, h, r.operation.Name, r.args)); !bytes.Equal(again, s.want) {
				s.want = nil
			}
			if s.want != nil {
				compared++
			}
		}
		if v.ReadOnly {
			all = append(all, s)
		}
	}
	if len(all) == 0 { // what changes things is only seen to answer
		for _, r := range t.requests(nil) {
			all = append(all, steady{request: r})
		}
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	others := map[int]bool{} // requests that gave another value
	for i := range atOnce {
		group.Go(func() {
			for round := range rounds * len(all) {
				at := (i + round) % len(all)
				s := all[at]
				a := t.call(ctx, h, s.operation.Name, s.args)
				mu.Lock()
				switch {
				case a.err != nil:
					t.fail("%s among others answered with %s", s.operation.Name, a)
				case s.want != nil && !bytes.Equal(encoded(a), s.want):
					others[at] = true
				}
				bad := len(t.failures) > maxFailures
				mu.Unlock()
				if bad {
					return
				}
			}
		})
	}
	group.Wait()
	for at := range others {
		s := all[at]
		// What gives another value alone as well, by now, tells of the time, or so.
		if bytes.Equal(encoded(t.call(ctx, h, s.operation.Name, s.args)), s.want) {
			t.fail("%s among others gave another value than alone", s.operation.Name)
		}
	}
	t.note("%d at once, %d requests compared", atOnce, compared)
}
