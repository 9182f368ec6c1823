package stdio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// A thousand calls at once, each with the right answer.
func TestParallel(t *testing.T) {
	s := start(t, nil).initialized()
	const n = 1000
	go func() {
		var wg sync.WaitGroup
		for i := range n {
			// Of very different sizes, so that lines straddle chunks.
			x := strings.Repeat(fmt.Sprint(i, " "), i%40*10+1)
			wg.Go(func() { io.WriteString(s.in, callLine(fmt.Sprint(i), "echo", x)+"\n") })
		}
		wg.Wait()
		s.in.Close()
	}()
	seen := map[string]bool{}
	for range n {
		m := s.receive()
		var i int
		fmt.Sscan(string(m.ID), &i)
		if got, want := m.text(t), strings.Repeat(fmt.Sprint(i, " "), i%40*10+1); got != want {
			t.Fatalf("id %d: got %.40q, want %.40q", i, got, want)
		}
		seen[string(m.ID)] = true
	}
	if len(seen) != n {
		t.Errorf("answers to %d calls, want %d", len(seen), n)
	}
	s.over()
}

// A client that writes everything before it reads anything holds us back: what
// waits to be read is bounded, and all of it arrives in the end.
func TestSlowReader(t *testing.T) {
	gate := make(chan struct{})
	var mu sync.Mutex
	var got bytes.Buffer
	largest := 0
	stopped := make(chan struct{})
	w := newWriter(writerFunc(func(p []byte) (int, error) {
		<-gate
		mu.Lock()
		defer mu.Unlock()
		largest = max(largest, len(p))
		return got.Write(p)
	}), stopped, func(err error) { t.Error(err) })
	const n, size = 200, 64 << 10
	body := []byte(`"` + strings.Repeat("x", size) + `"`)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := w.send(t.Context(), line{echo: fmt.Sprint(i), kind: result, body: body}); err != nil {
				t.Error(err)
			}
		})
	}
	close(gate)
	wg.Wait()
	wait.For(t, w.done(), "the end of writing")
	if lines := bytes.Count(got.Bytes(), []byte("\n")); lines != n {
		t.Errorf("%d lines, want %d", lines, n)
	}
	if limit := highWater + size + 100; largest > limit {
		t.Errorf("a queue of %d bytes, want at most %d", largest, limit)
	}
	if cap(w.spare) > keepBuffer || cap(w.buf) > keepBuffer {
		t.Errorf("buffers of %d and %d are kept", cap(w.spare), cap(w.buf))
	}
}

// Who waits for room is freed by the end of the session, or by its own.
func TestSlowReaderEnds(t *testing.T) {
	stopped := make(chan struct{})
	gate := make(chan struct{})
	full := errors.New("full")
	var failed error
	w := newWriter(writerFunc(func(p []byte) (int, error) { <-gate; return 0, full }), stopped,
		func(err error) { failed = err })
	big := line{echo: "1", kind: result, body: []byte(`"` + strings.Repeat("x", highWater) + `"`)}
	must.NoError(t, w.send(t.Context(), big))
	// Once the writer has taken the first, the second fills the queue.
	wait.Until(t, "the first is taken", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.buf) == 0
	})
	must.NoError(t, w.send(t.Context(), big))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.send(ctx, big); err != ctx.Err() {
		t.Errorf("got %v", err)
	}
	waiting := make(chan error)
	go func() { waiting <- w.send(t.Context(), big) }()
	close(stopped)
	if err := wait.For(t, waiting, "the end of waiting for room"); !errors.Is(err, errStopped) {
		t.Errorf("got %v", err)
	}
	close(gate)
	wait.For(t, w.done(), "the end of writing")
	if failed != full {
		t.Errorf("failed with %v", failed)
	}
	if err := w.send(t.Context(), big); !errors.Is(err, full) || errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func request(t *testing.T, id float64, method string) *jsonrpc.Request {
	t.Helper()
	k, err := jsonrpc.MakeID(id)
	must.NoError(t, err)
	return &jsonrpc.Request{ID: k, Method: method}
}
