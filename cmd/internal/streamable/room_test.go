package streamable

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestRoom: what others hold gives way after a moment, the longest of whoever has most,
// and what is little is never waited for.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &room{size: 100, own: 10}
		var gone []string
		begin := func(name, principal string, n int64) *hold {
			var h *hold
			h = r.hold(principal, func() {
				gone = append(gone, name)
				go h.end()
			})
			if !h.take(t.Context(), n) {
				t.Fatalf("%s has no room", name)
			}
			time.Sleep(time.Millisecond)
			return h
		}
		if stays := begin("stays", "ann", 30); !stays.stay() {
			t.Error("it had to give way")
		}
		begin("first", "ann", 30)
		begin("second", "ann", 20)
		begin("other", "bob", 25)
		began := time.Now()
		begin("more", "bob", 15) // fits: what each has of its own isn't counted
		if len(gone) > 0 || time.Since(began) > time.Millisecond {
			t.Errorf("%q gave way", gone)
		}
		begin("much", "cyd", 40)
		if !slices.Equal(gone, []string{"first"}) || time.Since(began) < 900*time.Millisecond {
			t.Errorf("%q gave way after %v", gone, time.Since(began))
		}
		began = time.Now()
		begin("little", "eve", 10)
		if time.Since(began) > time.Millisecond {
			t.Error("little had to wait")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if late := r.hold("cyd", nil); late.take(ctx, 90) {
			t.Error("it had more room than there is")
		}
	})
}

// TestStreamsHoldNoBodies: streams whose requests had a body, in chunks or not, hold no room for
// others' bodies.
func TestStreamsHoldNoBodies(t *testing.T) {
	url := start(t, Options{MaxBody: 1000, MaxBodies: 1000, BodyTime: time.Hour}) + Path
	id := session(t, url, "")
	for i := range 8 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, io.MultiReader(strings.NewReader(strings.Repeat("x", i*100))))
		must.NoError(t, err)
		if i > 0 {
			id = session(t, url, "")
		}
		r.Header.Set(sessionHeader, id)
		r.Header.Set("Accept", "text/event-stream")
		res, err := http.DefaultClient.Do(r)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("stream %d: %+v %v", i, res, err)
		}
		defer res.Body.Close()
	}
	if got, body := post(t, url, strings.NewReader(hello+strings.Repeat(" ", 1000-len(hello))), nil); got != 200 {
		t.Errorf("a body as large as may be: status %d: %s", got, body)
	}
}

// TestAnnouncedBodies: bodies that were only announced keep nobody out, and as many that come
// in chunks fit as come with a length.
func TestAnnouncedBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(Options{MaxBody: 1 << 20, MaxBodies: 4 << 20, MaxRequests: 100, BodyTime: 30 * time.Second}.orDefault())
		read := func(principal string, size int64, body io.Reader) (int, *place) {
			p, status := b.enter(principal, func() {})
			if status != 0 {
				return status, p
			}
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
			r.ContentLength = size
			_, status = p.read(&nobody{header: http.Header{}}, r)
			return status, p
		}
		for i := range 16 {
			in, out := io.Pipe()
			defer out.Close()
			go func() { _, _ = read(fmt.Sprint("ann", i%4), 1<<20, in) }()
		}
		synctest.Wait()
		whole := strings.Repeat("x", 1<<20)
		if status, p := read("bob", 1<<20, strings.NewReader(whole)); status != 0 {
			t.Errorf("status %d", status)
		} else {
			p.leave()
		}
		for _, size := range []int64{100_000, -1} {
			var places []*place
			for i := range 9 {
				status, p := read("cyd", size, io.MultiReader(strings.NewReader(whole[:100_000])))
				if status != 0 {
					t.Errorf("body %d announced as %d: status %d", i, size, status)
				}
				places = append(places, p)
			}
			for _, p := range places {
				p.leave()
			}
		}
		// What is read by nobody ends, and leaves no room taken.
		time.Sleep(time.Minute)
	})
}

// TestRequestsGiveWay: where principals together have as many requests as may be, one that has
// fewer than its share gets in, and the newest stream of who has most gives way.
func TestRequestsGiveWay(t *testing.T) {
	b := newBudget(Options{MaxRequests: 8}.orDefault())
	var ended []string
	for i := range 8 {
		name := fmt.Sprint("p", i/2)
		p, status := b.enter(name, func() { ended = append(ended, fmt.Sprint(i)) })
		if status != 0 {
			t.Fatalf("%d: status %d", i, status)
		}
		if i == 2 {
			p.streams()
		}
	}
	if _, status := b.enter("p0", func() {}); status != http.StatusTooManyRequests {
		t.Errorf("over its quarter: status %d", status)
	}
	fifth, status := b.enter("p4", func() {})
	if status != 0 || !slices.Equal(ended, []string{"2"}) {
		t.Errorf("a newcomer: status %d; ended: %q", status, ended)
	}
	if _, status := b.enter("p4", func() {}); status != http.StatusServiceUnavailable {
		t.Errorf("one that has its share: status %d", status)
	}
	fifth.leave()
	if _, status := b.enter("p5", func() {}); status != 0 || !slices.Equal(ended, []string{"2", "7"}) {
		t.Errorf("another newcomer: status %d; ended: %q", status, ended)
	}
}

// TestBatchesCount: a batch takes as many places as it has messages, and a principal has no more in one than alone.
func TestBatchesCount(t *testing.T) {
	var tokens Tokens
	must.NoError(t, tokens.Load([]byte("ann "+strings.Repeat("a", 24))))
	url := start(t, Options{MaxRequests: 4 * part, Verify: tokens.Verify}) + Path
	id := session(t, url, strings.Repeat("a", 24))
	for range 2 {
		for n, want := range map[int]int{1: http.StatusOK, part: http.StatusOK, part + 1: http.StatusTooManyRequests} {
			var all []string
			for i := range n {
				all = append(all, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"whose","arguments":{}}}`, i+2))
			}
			got, body := post(t, url, strings.NewReader("["+strings.Join(all, ",")+"]"), func(r *http.Request) {
				r.Header.Set("Authorization", "Bearer "+strings.Repeat("a", 24))
				r.Header.Set(sessionHeader, id)
				r.Header.Set(versionHeader, "2025-03-26")
			})
			if got != want {
				t.Errorf("%d messages: status %d, want %d: %s", n, got, want, body)
			}
		}
	}
}

// TestCalls: with others a principal has fewer calls inside, and each some at once, whoever came before; they come in in order, and
// who is gone isn't waited for.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		var mu sync.Mutex
		var order []string
		at := map[string]int{}
		ends := map[string]chan struct{}{}
		call := func(ctx context.Context, principal, name string) {
			if ends[principal] == nil {
				ends[principal] = make(chan struct{})
			}
			end := ends[principal]
			go func() {
				leave, err := c.enter(ctx, principal)
				if err != nil {
					return
				}
				mu.Lock()
				at[principal]++
				order = append(order, name)
				mu.Unlock()
				<-end
				leave()
			}()
		}
		inside := func(want map[string]int) {
			t.Helper()
			synctest.Wait()
			if !maps.Equal(at, want) {
				t.Errorf("inside are %v, want %v", at, want)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		for range callsInside {
			call(t.Context(), "ann", "")
		}
		inside(map[string]int{"ann": callsInside})
		call(gone, "ann", "gone")
		synctest.Wait()
		call(t.Context(), "ann", "first")
		synctest.Wait()
		call(t.Context(), "ann", "second")
		for range callsInside {
			call(t.Context(), "bob", "")
		}
		inside(map[string]int{"ann": callsInside, "bob": callsInside / 2})
		cancel()
		for range callsInside / 2 { // as many as she may have
			ends["ann"] <- struct{}{}
		}
		inside(map[string]int{"ann": callsInside, "bob": callsInside / 2})
		ends["ann"] <- struct{}{}
		synctest.Wait()
		ends["ann"] <- struct{}{}
		synctest.Wait()
		if got := order[len(order)-2:]; !slices.Equal(got, []string{"first", "second"}) {
			t.Errorf("in this order: %q", got)
		}
		for i := range 100 {
			call(t.Context(), fmt.Sprint("p", i), "")
		}
		synctest.Wait()
		if n := at["p99"]; n != 1 {
			t.Error("a principal who comes waits for others")
		}
		for _, end := range ends {
			close(end)
		}
		synctest.Wait()
		if len(c.inside)+len(c.waiting) != 0 || at["bob"] != callsInside {
			t.Errorf("left are %+v; of bob %d came in", &c, at["bob"])
		}
	})
}

// TestTurns: whoever has many waiting doesn't keep another waiting for all of them.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &turns{most: 3}
		var mu sync.Mutex // two are at work at once
		var order []string
		work := func(ctx context.Context, name string) {
			go func() {
				leave, err := q.enter(ctx, name)
				if err != nil {
					return
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				time.Sleep(time.Second)
				leave()
				leave()
			}()
			synctest.Wait()
		}
		for range 5 {
			work(t.Context(), "ann")
		}
		if len(order) != 2 {
			t.Errorf("%q are at work", order)
		}
		ctx, cancel := context.WithCancel(t.Context())
		work(t.Context(), "bob")
		work(ctx, "cyd")
		work(t.Context(), "bob")
		cancel()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		// Three start in each second, in any order; the first bob at once.
		if len(order) != 7 || order[2] != "bob" || !slices.Contains(order[3:6], "bob") {
			t.Errorf("the order is %q", order)
		}
		if _, err := q.enter(t.Context(), "dee"); err != nil { // who never leaves
			t.Error(err)
		}
		time.Sleep(2 * longTurn)
		q.mu.Lock() // a lapsed turn ends on a timer's goroutine
		defer q.mu.Unlock()
		if q.work != 0 || len(q.at)+len(q.order)+len(q.waiting) != 0 {
			t.Errorf("left are %+v", q)
		}
	})
}

// TestParsingTurns: what is large is worked on by so many at once, and what is small doesn't wait for it.
func TestParsingTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		at := 0
		server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		mcp.AddTool(server, &mcp.Tool{Name: "slow"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct {
			Code string `json:"code"`
		}) (*mcp.CallToolResult, any, error) {
			mu.Lock()
			at++
			mu.Unlock()
			time.Sleep(longTurn / 2)
			mu.Lock()
			at--
			mu.Unlock()
			return nil, nil, nil
		})
		h, err := New(Options{Server: func(context.Context, string) (*mcp.Server, error) { return server, nil }})
		must.NoError(t, err)
		h.parsing.most = 3
		var done sync.WaitGroup
		call := func(code string) {
			done.Go(func() {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+Path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"code":"`+code+
					`"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", "application/json, text/event-stream")
				r.Header.Set(versionHeader, "2026-07-28")
				r.Header.Set("Mcp-Method", "tools/call")
				r.Header.Set("Mcp-Name", "slow")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					t.Errorf("status %d: %s", w.Code, w.Body)
				}
			})
			synctest.Wait()
		}
		for range 6 {
			call(strings.Repeat("x", maxSmallBody))
		}
		call("x")
		mu.Lock()
		if at != 3 { // two large ones of the one principal there is, and the small one
			t.Errorf("%d are at work", at)
		}
		mu.Unlock()
		done.Wait()

		// Those that wait to come in have no turn yet, which would be over when they do.
		var inside []func()
		for range callsInside {
			leave, err := h.calls.enter(t.Context(), "")
			must.NoError(t, err)
			inside = append(inside, leave)
		}
		for range 6 {
			call(strings.Repeat("x", maxSmallBody))
		}
		time.Sleep(2 * longTurn)
		for _, leave := range inside {
			leave()
		}
		synctest.Wait()
		mu.Lock()
		if at != 2 {
			t.Errorf("%d of those that waited are at work", at)
		}
		mu.Unlock()
		done.Wait()
	})
}

// TestUnreadAnswers: who doesn't read what was asked for gives way to others' answers.
func TestUnreadAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := &room{size: 8 << 20}
		failed := make(chan error, 8)
		h := paceAnswers(time.Hour, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			a := &answering{ResponseWriter: w, room: answers, principal: r.URL.Path, ctx: ctx, cancel: cancel}
			if _, err := a.Write(make([]byte, 1<<20)); err != nil {
				failed <- err
			}
		}))
		ln, srv, ended := newPipes(), &http.Server{Handler: h}, make(chan error, 1)
		go func() { ended <- srv.Serve(ln) }()
		defer func() { srv.Close(); <-ended }()
		for range 5 {
			c, err := ln.dial(t.Context(), "", "")
			must.NoError(t, err)
			defer c.Close()
			go fmt.Fprint(c, "GET /ann HTTP/1.1\r\nHost: x\r\n\r\n")
		}
		transport := &http.Transport{DialContext: ln.dial}
		defer transport.CloseIdleConnections()
		synctest.Wait() // ann's answers wait to be read
		began := time.Now()
		res, err := (&http.Client{Transport: transport}).Get("http://localhost/bob")
		must.NoError(t, err)
		if b, err := io.ReadAll(res.Body); err != nil || len(b) != 1<<20 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		if took := time.Since(began); took > 2*yieldDelay {
			t.Errorf("it took %v", took)
		}
		if len(failed) == 0 {
			t.Error("nobody gave way")
		}
	})
}
