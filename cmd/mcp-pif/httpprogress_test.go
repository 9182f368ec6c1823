//go:build unix

package main

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestHTTPProgress: in both protocols a long run tells who called it how far it is, on
// the answer's stream, with the token of that call and only while it is under way; a
// call that asked for nothing is told nothing.
func TestHTTPProgress(t *testing.T) {
	s := startWeb(t, t.TempDir())
	for _, version := range eras {
		var mu sync.Mutex
		told := map[any][]*mcp.ProgressNotificationParams{}
		several := make(chan struct{}, 1000)
		c, err := s.speak("", version, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			mu.Lock()
			defer mu.Unlock()
			told[r.Params.ProgressToken] = append(told[r.Params.ProgressToken], r.Params)
			several <- struct{}{}
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, hangUp := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		for _, token := range []any{"mine", nil} {
			p := &mcp.CallToolParams{Name: "run", Arguments: map[string]any{"code": endless, "steps": 1_000_000_000}}
			if token != nil {
				p.SetProgressToken(token)
			}
			calls.Go(func() { _, _ = c.CallTool(ctx, p) })
		}
		s.wait("two reports, "+version, func() bool { return len(several) >= 2 })
		hangUp()
		calls.Wait()
		mu.Lock()
		if len(told) != 1 || len(told["mine"]) < 2 {
			t.Errorf("%s: told were %v", version, told)
		}
		last := -1.0
		for _, p := range told["mine"] {
			if p.Progress <= last || p.Total != 1_000_000_000 || p.Progress > p.Total {
				t.Errorf("%s: %+v after %v", version, p, last)
			}
			last = p.Progress
		}
		mu.Unlock()
	}
	if page := s.metrics(""); !strings.Contains(page, "pif_runs_total") {
		t.Errorf("the server answers %s", page)
	}
	s.stop()
}
