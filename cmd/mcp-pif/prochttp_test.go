//go:build linux

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestProcHTTP: over HTTP a session survives its client's reconnection, and another
// principal can neither use it, by its name, nor see that there is one.
func TestProcHTTP(t *testing.T) {
	t.Parallel()
	requireProc(t)
	s := startWeb(t, t.TempDir(), "--http-tokens", bothTokens(t), "--timeout=30m", "--cap", capPython, "--proc", mapsPython)
	const lists = `u => length(!proc.list({}))`
	ann, bob := s.connect(annToken, eras[0]), s.connect(bobToken, eras[0])
	for _, c := range []*webClient{ann, bob} {
		c.makes("open", opens, "proc.start:python3")
		c.makes("type", types, "proc.send,read:python3")
		c.makes("count", lists, "proc.list:python3")
	}
	said, failed := ann.asks("open", map[string]any{"input": nil})
	session := regexp.MustCompile(`[0-9a-f]{32}`).FindString(said)
	if failed || session == "" {
		t.Fatal(said)
	}
	typing := func(c *webClient, text string) (string, bool) {
		return c.asks("type", map[string]any{"input": map[string]any{"session": session, "text": text, "until": `is \d+\n`}})
	}
	if said, failed := typing(ann, "n = 20; print('is', n, flush=True)\n"); failed || !strings.Contains(said, `is 20`) {
		t.Fatal(said)
	}
	must.NoError(t, ann.Close())
	if said, failed := typing(bob, "print('is', n, flush=True)\n"); !failed || !strings.Contains(said, "no session of that name") {
		t.Errorf("another principal's session: %s", said)
	}
	if said, failed := bob.asks("count", map[string]any{"input": nil}); failed || !strings.HasPrefix(said, "0") {
		t.Errorf("it counts %s", said)
	}
	ann = s.connect(annToken, eras[0])
	if said, failed := typing(ann, "print('is', n + 1, flush=True)\n"); failed || !strings.Contains(said, `is 21`) {
		t.Errorf("after the reconnection: %s", said)
	}
}
