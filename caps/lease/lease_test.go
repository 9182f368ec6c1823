package lease_test

import (
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/lease"
)

// TestClock: it goes on, at the pace of time.
func TestClock(t *testing.T) {
	t.Parallel()
	if at := lease.Now(); at == 0 || at.Add(time.Hour).Over() || !at.Over() || lease.Since(at) < 0 {
		t.Error(at, lease.Since(at))
	}
}
