package streamable

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestLongestIdleSessionEnds: where there is no room for a session the one that was
// longest idle ends, and none that has a stream under way or was used a moment ago.
func TestLongestIdleSessionEnds(t *testing.T) {
	url := start(t, Options{MaxSessions: 3, KeptSession: time.Nanosecond}) + Path
	do := func(method, body, session string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set(sessionHeader, session)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	// done waits for all of an answer: the server has noted it by then.
	done := func(res *http.Response) *http.Response {
		t.Helper()
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatal(err)
		}
		return res
	}
	begin := func() string {
		t.Helper()
		res := done(do(http.MethodPost, hello, ""))
		if res.StatusCode != http.StatusOK {
			t.Fatalf("no session: %s", res.Status)
		}
		return res.Header.Get(sessionHeader)
	}
	uses := func(session string) int {
		t.Helper()
		return done(do(http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"ping"}`, session)).StatusCode
	}
	listening := begin()
	if res := do(http.MethodGet, "", listening); res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	first, second := begin(), begin()
	if got := uses(first); got != http.StatusOK { // second is the longest idle one now, but for the one that listens
		t.Fatal(got)
	}
	third := begin()
	for _, s := range []struct {
		name, id string
		want     int
	}{{"listening", listening, 200}, {"first", first, 200}, {"second", second, 404}, {"third", third, 200}} {
		if got := uses(s.id); got != s.want {
			t.Errorf("%s: status %d, want %d", s.name, got, s.want)
		}
	}
}
