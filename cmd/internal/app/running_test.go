package app

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// stalls is a context whose owner has no processor for a minute at its first look, and what happens at the third.
type stalls struct {
	context.Context
	looks int
	third func()
}

func (s *stalls) Done() <-chan struct{} {
	switch s.looks++; s.looks {
	case 1:
		time.Sleep(time.Minute)
	case 3:
		s.third()
	}
	return s.Context.Done()
}

// TestAwaitStalled: a server that had no processor while who waits for it had none has its time afterwards.
func TestAwaitStalled(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		dir, err := running()
		must.NoError(t, err)
		server, err := caps.Announce(dir)
		must.NoError(t, err)
		r, err := Revocations()
		must.NoError(t, err)
		ctx := &stalls{Context: t.Context(), third: func() {
			must.NoError(t, server.Say(caps.Running{Client: "a", Applied: caps.Revision(nil)}))
		}}
		if a, err := AwaitServers(ctx, r); err != nil || len(a.Silent) > 0 || ctx.looks != 3 {
			t.Errorf("after %d looks %q are silent, %v", ctx.looks, a.Silent, err)
		}
		ctx.looks = 3
		must.NoError(t, server.Say(caps.Running{Client: "b"}))
		if a, err := AwaitServers(ctx, r); err != nil || len(a.Silent) != 1 || ctx.looks != 3+MostLooks {
			t.Errorf("after %d looks %q are silent, %v", ctx.looks, a.Silent, err)
		}
		must.NoError(t, server.Close())
	})
}
