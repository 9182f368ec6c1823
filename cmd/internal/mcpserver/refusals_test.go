package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/cmd/internal/wait"
)

const (
	hello   = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`
	newMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}`
)

// TestRefusals: what can't be done in this place of a session, or at all, is refused
// with the code that says so and in words that help; no client's slip is a warning
// in the log.
func TestRefusals(t *testing.T) {
	var log bytes.Buffer
	for _, test := range []struct {
		name     string
		requests []string // method and params; the last one's answer is looked at
		code     int64
		words    string
	}{
		{"a call before initialize", []string{"tools/call", `{"name":"list"}`}, jsonrpc.CodeInvalidRequest, "send initialize first"},
		{"initialize that isn't one", []string{"initialize", `{"protocolVersion":5}`}, jsonrpc.CodeInvalidParams, `"clientInfo"`},
		{"a call after it", []string{"initialize", `{"protocolVersion":5}`, "tools/list", `{}`}, jsonrpc.CodeInvalidRequest, "send initialize first"},
		{"initialize twice", []string{"initialize", hello, "initialize", hello}, jsonrpc.CodeInvalidRequest, "already"},
		{"an unknown method", []string{"initialize", hello, "tools/cal", `{}`}, jsonrpc.CodeMethodNotFound, "tools/cal"},
		{"params of the wrong kind", []string{"initialize", hello, "tools/call", `{"name":5}`}, jsonrpc.CodeInvalidParams, "name"},
		{"discover in the older protocol", []string{"initialize", hello, "server/discover", `{}`}, jsonrpc.CodeMethodNotFound, "server/discover"},
		{"a resource that isn't there", []string{"initialize", hello, "resources/read", `{"uri":"pif://nope"}`}, -32002, "not found"},
		{"ping in the newer protocol", []string{"ping", `{` + newMeta + `}`}, jsonrpc.CodeMethodNotFound, "ping"},
		{"initialize in the newer protocol", []string{"initialize", `{` + newMeta + `}`}, jsonrpc.CodeMethodNotFound, "initialize"},
		{"an unknown method, newer", []string{"nope", `{` + newMeta + `}`}, jsonrpc.CodeMethodNotFound, "nope"},
		{"a resource that isn't there, newer", []string{"resources/read", `{"uri":"pif://nope",` + newMeta + `}`}, jsonrpc.CodeInvalidParams, "not found"},
		{"a prompt that isn't there", []string{"prompts/get", `{"name":"x",` + newMeta + `}`}, jsonrpc.CodeInvalidParams, "x"},
		{"a cursor that isn't ours", []string{"tools/list", `{"cursor":"x",` + newMeta + `}`}, jsonrpc.CodeInvalidParams, "cursor"},
		{"no capabilities in _meta", []string{"tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`}, jsonrpc.CodeInvalidParams, "clientCapabilities"},
	} {
		s := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		theirs, ours := mcp.NewInMemoryTransports()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx, theirs) }()
		conn, err := ours.Connect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var last *jsonrpc.Response
		for i := 0; i < len(test.requests); i += 2 {
			id, _ := jsonrpc.MakeID(float64(i + 1))
			if err := conn.Write(ctx, &jsonrpc.Request{ID: id, Method: test.requests[i], Params: json.RawMessage(test.requests[i+1])}); err != nil {
				t.Fatal(err)
			}
			m, err := conn.Read(ctx)
			if err != nil {
				t.Fatal(err)
			}
			last, _ = m.(*jsonrpc.Response)
		}
		var got *jsonrpc.Error
		if last == nil || !errors.As(last.Error, &got) || got.Code != test.code || !strings.Contains(strings.ToLower(got.Message), strings.ToLower(test.words)) {
			t.Errorf("%s: %+v", test.name, last)
		}
		conn.Close()
		wait.For(t, done, "the end of the session")
		cancel()
	}
	if strings.Contains(log.String(), "level=WARN") || strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("the log:\n%s", log.String())
	}
	// What isn't a client's slip is still told.
	for message, want := range map[string]int{"ping": 0, "server connect failed": 1} {
		log.Reset()
		l := slog.New(quieter{slog.NewTextHandler(&log, nil)})
		if message == "ping" {
			message = "method removed in the new protocol"
		}
		l.Error(message, "method", "ping")
		if n := strings.Count(log.String(), "level=WARN"); n != want {
			t.Errorf("%s: %s", message, log.String())
		}
	}
}

// TestNoToolNamed: who names no tool is told how to find one, not one that may not be.
func TestNoToolNamed(t *testing.T) {
	for _, tool := range []string{"describe", "history", "retire"} {
		if a := do(t, New(Options{}), tool, `{}`); a.Fault == nil || strings.Contains(a.Text, "square") || !strings.Contains(a.Text, `{"name":"list","arguments":{}}`) {
			t.Errorf("%s: %s", tool, a.Text)
		}
	}
}
