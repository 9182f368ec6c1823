package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// head is how a request to the server begins.
func head(method, principal, version string) string {
	h := method + " /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
	if principal != "" {
		h += "Authorization: Bearer " + token(principal) + "\r\n"
	}
	if version != "" {
		h += "Mcp-Protocol-Version: " + version + "\r\n"
	}
	return h
}

// stateless is the protocol in which each request stands for itself.
const stateless = "2026-07-28"

// message is a request of that protocol.
func message(method, params string) string {
	if params != "" {
		params += ","
	}
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"` + stateless + `","io.modelcontextprotocol/clientInfo":{"name":"loadbench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
}

// post sends a message on a connection of its own.
func (s *server) post(ctx context.Context, principal, method, name, params string) (string, error) {
	text, _, err := s.send(ctx, principal, message(method, params), map[string]string{"Mcp-Protocol-Version": stateless, "Mcp-Method": method, "Mcp-Name": name})
	return text, err
}

// send sends a body on a connection of its own, with headers besides, of which those that are empty are left out.
func (s *server) send(ctx context.Context, principal, body string, headers map[string]string) (string, http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		return "", nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range headers {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if principal != "" {
		r.Header.Set("Authorization", "Bearer "+token(principal))
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return "", nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", res.Status, text)
	}
	return string(text), res.Header, err
}

// call calls a tool.
func (s *server) call(ctx context.Context, principal, tool string, arguments any) (string, error) {
	text, err := json.Marshal(arguments)
	if err != nil {
		return "", err
	}
	return s.post(ctx, principal, "tools/call", tool, `"name":"`+tool+`","arguments":`+string(text))
}

type object = map[string]any

// innocent calls code as somebody who does no harm, until the attack is over, and notes
// how long that takes, whatever comes of it.
func (s *server) innocent(ctx context.Context, principal, code, want string) {
	s.note(func(f *figures) { f.wait = 0 })
	for ctx.Err() == nil {
		began := time.Now()
		text, err := s.call(ctx, principal, "run", object{"code": code})
		took := time.Since(began)
		failed := ctx.Err() == nil && (err != nil || !strings.Contains(text, `"result":`+want))
		s.note(func(f *figures) {
			f.wait = max(f.wait, took)
			if failed {
				f.failed++
			}
		})
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// dial opens a connection that sends so much and isn't read.
func (s *server) dial(ctx context.Context, text string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp"))
	if err != nil {
		return nil, err
	}
	_ = c.SetWriteDeadline(time.Now().Add(2 * time.Second))
	_, _ = io.WriteString(c, text)
	return c, nil
}
