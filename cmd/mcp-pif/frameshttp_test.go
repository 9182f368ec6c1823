//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// streamTime is how long the answer to a hostile request is read: a stream never ends
// by itself.
const streamTime = time.Second

// TestHostileFramesHTTP: the same lines as bodies of requests, with headers that are
// right or not; a right call in each era after each hundred is answered rightly.
func TestHostileFramesHTTP(t *testing.T) {
	t.Parallel()
	const seed = 20261122
	s := startWeb(t, t.TempDir(), "--log-level=error", "--store=memory")
	f := newFrames(seed)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	defer client.CloseIdleConnections()
	var taken atomic.Int64
	for sent := 0; sent < hostileFrames(); sent += 100 {
		_, session, err := s.post(client, initialize, nil)
		must.NoError(t, err)
		var all sync.WaitGroup
		room := make(chan struct{}, 16)
		for range 100 {
			r := f.request(s.url, session)
			if r == nil {
				continue
			}
			room <- struct{}{}
			all.Go(func() {
				defer func() { <-room }()
				ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
				defer cancel()
				res, err := client.Do(r.WithContext(ctx))
				if err != nil {
					return // it isn't HTTP
				}
				defer res.Body.Close()
				defer time.AfterFunc(streamTime, cancel).Stop()
				if res.StatusCode == http.StatusOK {
					taken.Add(1)
				}
				if res.StatusCode >= 500 && res.StatusCode != http.StatusServiceUnavailable && res.StatusCode != http.StatusNotImplemented {
					t.Errorf("seed %d: %s was answered with %s", seed, r.Method, res.Status)
				}
				_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
			})
		}
		all.Wait()
		s.forget(client, session)
		for _, version := range eras {
			if err := s.right(client, version, sent); err != nil {
				t.Fatalf("seed %d, after %d requests, in %s: %v", seed, sent+100, version, err)
			}
		}
	}
	if n := taken.Load(); n < int64(hostileFrames()/20) {
		t.Errorf("only %d requests came as far as an answer", n)
	}
	t.Logf("%d of %d requests came as far as an answer", taken.Load(), hostileFrames())
	s.stop()
	if log := s.logged(); strings.Contains(log, "panic") {
		t.Errorf("the log tells of a panic: %.2000s", log)
	}
}

// request is a request with the next line as its body, half of them in a session with
// the right headers; nil: there is none like it.
func (f frames) request(url, session string) *http.Request {
	decent := f.IntN(2) == 0 // what is wrong is in its body
	method := f.rarely("POST", "GET", "DELETE", "PUT", "OPTIONS", "HEAD", "PATCH")
	if decent {
		method = "POST"
	}
	body := f.line()
	if decent && f.IntN(4) > 0 {
		body = f.message()
	}
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil
	}
	set := func(name, value string) {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if decent {
		set("Content-Type", "application/json")
		set("Accept", "application/json, text/event-stream")
		set("Mcp-Protocol-Version", "2025-11-25")
		set("Mcp-Session-Id", session)
		return r
	}
	set("Content-Type", f.rarely("application/json", "", "text/plain", "application/json; charset=utf-16", "multipart/form-data"))
	set("Accept", f.rarely("application/json, text/event-stream", "", "*/*", "text/html", "application/json"))
	set("Mcp-Protocol-Version", f.one("", "", "2025-11-25", "2026-07-28", "2026-07-28", "2024-11-05", "9999-99-99", "x"))
	set("Mcp-Method", f.one("", "", "tools/call", "ping", "=?base64?eA==?="))
	set("Mcp-Name", f.one("", "", "run", "a", "é"))
	set("Last-Event-Id", f.one("", "", "", "0_1", "x"))
	set("Mcp-Session-Id", f.one("", "", "", "x", session, strings.Repeat("s", 300)))
	return r
}

// right makes a right call in a version of the protocol, by hand.
func (s *webServer) right(client *http.Client, version string, n int) error {
	headers := map[string]string{"Mcp-Protocol-Version": version}
	meta := ""
	if version >= "2026" {
		headers["Mcp-Method"], headers["Mcp-Name"] = "tools/call", "run"
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	} else {
		_, session, err := s.post(client, initialize, nil)
		if err != nil {
			return err
		}
		headers["Mcp-Session-Id"] = session
		if _, _, err := s.post(client, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, headers); err != nil {
			return err
		}
		defer s.forget(client, session)
	}
	body, _, err := s.post(client, fmt.Sprintf(`{"jsonrpc":"2.0","id":"right","method":"tools/call","params":{"name":"run","arguments":{"code":%s,"input":%d}%s}}`, square, n, meta), headers)
	if err != nil {
		return err
	}
	var m message
	for line := range strings.Lines(body) {
		data := strings.TrimSpace(strings.TrimPrefix(line, "data: "))
		if !strings.HasPrefix(data, "{") {
			continue // what else a stream has
		}
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			return err
		}
	}
	var r toolReply
	if err := json.Unmarshal(m.Result, &r); err != nil || len(r.Content) == 0 || r.Content[0].Text != fmt.Sprint(n*n) {
		return fmt.Errorf("a right call gave %.500s", body)
	}
	return nil
}

// post sends a message and gives what came back, and the session it is of.
func (s *webServer) post(client *http.Client, body string, headers map[string]string) (answer, session string, err error) {
	r, err := http.NewRequest(http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		return "", "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	res, err := client.Do(r)
	if err != nil {
		return "", "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", res.Status, b)
	}
	return string(b), res.Header.Get("Mcp-Session-Id"), err
}

// forget ends a session.
func (s *webServer) forget(client *http.Client, session string) {
	r, err := http.NewRequest(http.MethodDelete, s.url, nil)
	if err != nil {
		return
	}
	r.Header.Set("Mcp-Session-Id", session)
	if res, err := client.Do(r); err == nil {
		res.Body.Close()
	}
}
