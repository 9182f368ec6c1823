//go:build unix

package main

import (
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fields reads a protobuf message: its fields that have a length, by number.
func fields(t *testing.T, b []byte) map[uint64][][]byte {
	t.Helper()
	all := map[uint64][][]byte{}
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if b = b[max(n, 0):]; n <= 0 {
			t.Fatal("no protobuf message")
		}
		switch tag & 7 {
		case 0:
			_, n = binary.Uvarint(b)
			b = b[n:]
		case 1:
			b = b[8:]
		case 2:
			size, n := binary.Uvarint(b)
			all[tag>>3] = append(all[tag>>3], b[n:n+int(size)])
			b = b[n+int(size):]
		case 5:
			b = b[4:]
		default:
			t.Fatalf("the wire type %d", tag&7)
		}
	}
	return all
}

// A sent is a span that a collector got.
type sent struct{ name, id, parent string }

// spans reads an ExportTraceServiceRequest: resource_spans 1, scope_spans 2, spans 2;
// of a span span_id 2, parent_span_id 4, name 5.
func spans(t *testing.T, body []byte) (all []sent) {
	for _, resource := range fields(t, body)[1] {
		for _, scope := range fields(t, resource)[2] {
			for _, one := range fields(t, scope)[2] {
				f := fields(t, one)
				s := sent{name: string(f[5][0]), id: string(f[2][0])}
				if len(f[4]) > 0 {
					s.parent = string(f[4][0])
				}
				all = append(all, s)
			}
		}
	}
	return all
}

// TestHTTPTraces: a process with --otlp has sent, when it ended, a span for each run
// and below it one for each effect, of every principal, and nothing of what went in or
// came out; and it says nothing but its log, whether or not there is a collector.
func TestHTTPTraces(t *testing.T) {
	var mu sync.Mutex
	var got []sent
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(string(b), "private") {
			t.Error("a span tells what went in or came out")
		}
		got = append(got, spans(t, b)...)
	}))
	defer collector.Close()
	s := startPolicied(t, t.TempDir(), `{"principals":{"ann":{"grant":["kv:notes/**"]}}}`, "--otlp", collector.URL)
	ann, bob := s.connect(annToken, eras[0]), s.connect(bobToken, eras[1])
	ann.makes("keep", `v => !kv.put({key: "notes/a", value: v}) |> (u => !kv.get("notes/a"))`, "kv:notes/**")
	for range 2 {
		if text, failed := ann.asks("keep", map[string]any{"input": "private"}); failed {
			t.Fatal(text)
		}
	}
	bob.asks("run", map[string]any{"code": `"private"`})
	s.stop()
	mu.Lock()
	defer mu.Unlock()
	ids, names, below := map[string]string{}, map[string]int{}, map[string]int{}
	for _, one := range got {
		ids[one.id] = one.name
		names[one.name]++
	}
	for _, one := range got {
		if one.parent != "" {
			below[ids[one.parent]+" > "+one.name]++
		}
	}
	if names["run keep"] != 2 || names["run"] != 1 || below["run keep > kv.put"] != 2 || below["run keep > kv.get"] != 2 || len(got) != 7 {
		t.Errorf("the spans are %v, %v", names, below)
	}
	onlyLogs(t, s.webServer)
}

// TestHTTPTracesWithoutACollector: what can't be sent is in the log, and changes no
// answer.
func TestHTTPTracesWithoutACollector(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	s := startWeb(t, t.TempDir(), "--otlp", gone.URL)
	c := s.connect("", eras[0])
	if text, failed := c.asks("run", map[string]any{"code": "6 * 7"}); failed || !strings.HasPrefix(text, "42") {
		t.Error(text)
	}
	s.stop()
	onlyLogs(t, s)
}

// onlyLogs fails where a server said something that is no line of its log.
func onlyLogs(t *testing.T, s *webServer) {
	t.Helper()
	for line := range strings.Lines(s.logged()) {
		if !slices.ContainsFunc([]string{"time=", "mcp-pif serves MCP at "}, func(p string) bool { return strings.HasPrefix(line, p) }) {
			t.Errorf("it said %q", line)
		}
	}
}
