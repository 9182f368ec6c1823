package conform

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// slow is requests that go on until they are ended: of the fixtures, and where the
// kit can make some.
func (t *trial) slow() []request {
	var all []request
	for _, c := range t.o.Fixtures.Calls {
		if o, known := t.manifest.Operation(c.Operation); known && c.Slow {
			all = append(all, request{operation: o, args: c.record(), fixture: true})
		}
	}
	arg := ""
	switch {
	case t.world.web != nil:
		arg = t.world.web.granted.URL + "/in/slow"
	case t.world.root != nil && makePipe(t.world.granted+"/pipe"):
		arg = "pipe" // opening it waits for whoever writes
	}
	if arg == "" {
		return all
	}
	for i := range t.manifest.Operations {
		o := &t.manifest.Operations[i]
		for _, p := range o.Params {
			if p.Designates {
				all = append(all, request{operation: o, args: with(t.world.arguments(o, 1, false), p.Name, value.Str(arg))})
				break
			}
		}
	}
	return all
}

// settle is how long a slow call is given to be under way before it is ended.
const settle = 100 * time.Millisecond

// checkCancel cancels calls that go on, and one of each operation at once.
func checkCancel(ctx context.Context, t *trial) {
	if !slices.Contains(t.features, wire.FeatureCancel) {
		t.skip("it lacks the feature cancel: a server ends its calls by killing it")
	}
	h := t.handle(ctx)
	slow := t.slow()
	for i, r := range slow {
		t.cancelled(ctx, h, uint64(1000+i), r, settle)
	}
	for i := range t.manifest.Operations {
		o := &t.manifest.Operations[i]
		t.cancelled(ctx, h, uint64(2000+i), request{operation: o, args: t.world.arguments(o, 1, false)}, 0)
	}
	limited, cancel := context.WithTimeout(ctx, t.o.Patience)
	defer cancel()
	if _, err := t.peer.Cancel(limited, &pluginv1.CancelRequest{Call: 1 << 62}); err != nil {
		t.fail("cancelling a call that isn't under way: %v", err)
	}
	t.slowNote(slow)
}

// slowNote says whether there was a call that had to be ended.
func (t *trial) slowNote(slow []request) {
	if len(slow) == 0 {
		t.note("only quick calls are known: give a slow one in the fixtures")
		return
	}
	t.note("%d slow calls", len(slow))
}

// cancelled makes a call and cancels it; it has to answer in the grace.
func (t *trial) cancelled(ctx context.Context, h, number uint64, r request, after time.Duration) {
	answered := make(chan answer, 1)
	go func() {
		answered <- t.call(ctx, h, r.operation.Name, r.args, func(q *pluginv1.InvokeRequest) { q.Call, q.TimeoutNs = number, 0 })
	}()
	select {
	case <-answered:
		return // it was quick
	case <-time.After(after):
	}
	limited, cancel := context.WithTimeout(ctx, t.o.Patience)
	defer cancel()
	if _, err := t.peer.Cancel(limited, &pluginv1.CancelRequest{Call: number}); err != nil {
		t.fail("cancelling %s: %v", r.operation.Name, err)
	}
	// A cancellation that came before its call finds none: say it again.
	again := time.NewTicker(settle)
	defer again.Stop()
	end := time.After(t.o.Grace)
	for {
		select {
		case <-answered:
			return
		case <-again.C:
			_, _ = t.peer.Cancel(limited, &pluginv1.CancelRequest{Call: number})
		case <-end:
			t.fail("%s goes on %s after it was cancelled", r.operation.Name, t.o.Grace)
			return
		case <-ctx.Done():
			return
		}
	}
}

// checkDeadline gives calls less time than they need.
func checkDeadline(ctx context.Context, t *trial) {
	h := t.handle(ctx)
	slow := t.slow()
	requests := slices.Clone(slow)
	for i := range t.manifest.Operations {
		o := &t.manifest.Operations[i]
		requests = append(requests, request{operation: o, args: t.world.arguments(o, 1, false)})
	}
	for i, r := range requests {
		ns := int64(settle)
		if i >= len(slow) {
			ns = 1
		}
		answered := make(chan answer, 1)
		go func() {
			answered <- t.call(ctx, h, r.operation.Name, r.args, func(q *pluginv1.InvokeRequest) { q.TimeoutNs = ns })
		}()
		select {
		case a := <-answered:
			if a.value == nil && !a.refused() {
				t.fail("%s with little time answered with %s", r.operation.Name, a)
			}
		case <-time.After(time.Duration(ns) + t.o.Grace):
			t.fail("%s goes on %s after its time was over", r.operation.Name, t.o.Grace)
		}
	}
	t.slowNote(slow)
}

// checkProgress makes calls as streams.
func checkProgress(ctx context.Context, t *trial) {
	if !slices.Contains(t.features, wire.FeatureProgress) {
		t.skip("it lacks the feature progress")
	}
	h := t.handle(ctx)
	messages := 0
	for i := range t.manifest.Operations {
		o := &t.manifest.Operations[i]
		args, err := wire.EncodeValue(t.world.arguments(o, 0, false), most)
		if err != nil {
			t.stop("%v", err)
		}
		limited, cancel := context.WithTimeout(ctx, t.o.Patience)
		stream, err := t.peer.InvokeStream(limited, &pluginv1.InvokeRequest{Handle: h, Operation: o.Name, Arguments: args, TimeoutNs: t.timeout(o.Name)})
		outcomes := 0
		for err == nil {
			var event *pluginv1.InvokeStreamResponse
			if event, err = stream.Recv(); err != nil {
				break
			}
			switch {
			case outcomes > 0:
				t.fail("%s goes on after its outcome", o.Name)
			case event.GetOutcome() != nil:
				outcomes++
				if a := read(event.GetOutcome()); a.err != nil {
					t.fail("%s ended in %s", o.Name, a)
				}
			default:
				messages++
			}
		}
		cancel()
		if outcomes != 1 {
			t.fail("%s as a stream gave %d outcomes (%v)", o.Name, outcomes, err)
		}
	}
	t.note("%d messages", messages)
}

// checkCrash kills the process in a call.
func checkCrash(ctx context.Context, t *trial) {
	if t.peer.probe == nil {
		t.skip("it runs in this process")
	}
	h := t.handle(ctx)
	o := &t.manifest.Operations[0]
	r := request{operation: o, args: t.world.arguments(o, 0, false)}
	if slow := t.slow(); len(slow) > 0 {
		r = slow[0]
	}
	answered := make(chan answer, 1)
	go func() { answered <- t.call(ctx, h, r.operation.Name, r.args) }()
	select {
	case <-answered:
	case <-time.After(settle):
	}
	t.ended = true
	t.peer.probe.Kill()
	<-t.peer.probe.Done()
	if a := t.call(ctx, h, r.operation.Name, r.args); a.value != nil || a.failure != nil {
		t.fail("something answers although the process was killed: %s", a)
	}
	again, err := t.start(ctx, t.world)
	if err != nil {
		t.stop("after it was killed it doesn't start again: %v", err)
	}
	t.retire(t.peer)
	t.peer, t.ended = again, false
	if a := t.call(ctx, t.handle(ctx), o.Name, t.world.arguments(o, 0, false)); a.err != nil {
		t.fail("after it was killed and started again %s answers with %s", o.Name, a)
	}
}

// checkWrites tells what all its processes wrote where nothing is theirs.
func checkWrites(_ context.Context, t *trial) {
	for _, w := range t.writes {
		t.fail("%s", w)
	}
	t.note("its HOME, its folder's surroundings and files beside its scopes")
}

// checkStdout tells what all its processes wrote on standard output.
func checkStdout(_ context.Context, t *trial) {
	if !t.process {
		t.skip("it runs in this process")
	}
	for _, s := range t.strays {
		if s != "" {
			t.stop("it wrote %q", s)
		}
	}
	t.note("%d processes", len(t.strays))
}

// How many calls are made at once, each this often.
const (
	atOnce = 16
	rounds = 4
)

// checkConcurrency makes calls at once. Those that read and gave the same twice
// when they were made in turn have to give it then, too.
func checkConcurrency(ctx context.Context, t *trial) {
	h := t.handle(ctx)
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
		// What gives another value alone as well, by now, tells of the time or of chance.
		steady := true
		for i := 0; steady && i < atOnce; i++ {
			steady = bytes.Equal(encoded(t.call(ctx, h, s.operation.Name, s.args)), s.want)
		}
		if steady {
			t.fail("%s among others gave another value than alone", s.operation.Name)
		}
	}
	t.note("%d at once, %d requests compared", atOnce, compared)
}
