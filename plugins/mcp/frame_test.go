package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzFrame: lines are found with their sizes, a longer one than allowed is dropped, and the
// identifier that is seen in passing is the one that a parser finds.
func FuzzFrame(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{}}`, `{"result":{"id":1,"a":["id",{"id":2}]},"id":7}`, `{"i\"d":8,"id" : 9 }`, `{"id":"7"}`, `{"id":null}`,
		`{"id":-1}`, `{"id":1.5}`, `{"a":"id","id":3}`, `{"a":"\\","id":4}`, `{"a":{},"id":5}`, `[{"id":1}]`, `{"id":[6]}`, `id`, "", "\x00", `{"id":12345678901234567890123}`,
	} {
		f.Add(s, uint8(20))
	}
	f.Fuzz(func(t *testing.T, line string, most uint8) {
		line, _, _ = strings.Cut(line, "\n")
		r := bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(line+"\nnext\n")), 16)
		got, err := readFrame(r, func() int64 { return int64(most) })
		if err != nil || got.size != int64(len(line))+1 {
			t.Fatalf("%q has %d bytes, it says %d (%v)", line, len(line)+1, got.size, err)
		}
		if isKept := got.line != nil; isKept && string(got.line) != strings.TrimSpace(line) && !bytes.Equal(got.line, bytes.TrimSpace([]byte(line))) || isKept && got.size > int64(most) {
			t.Fatalf("%q is %q", line, got.line)
		}
		var object struct {
			ID json.Number `json:"id"`
		}
		d := json.NewDecoder(strings.NewReader(line))
		if isOne := strings.Count(line, `"id"`) == 1 && !strings.Contains(line, `\u`); isOne && d.Decode(&object) == nil && !d.More() && strings.HasPrefix(strings.TrimSpace(line), "{") {
			if n, err := object.ID.Int64(); err == nil && n >= 0 && n < 1<<51 && strings.Contains(line, `"id"`) {
				if id, _ := got.id.Raw().(int64); id != n && strings.Contains(line, object.ID.String()) && !strings.Contains(line, `"`+object.ID.String()+`"`) {
					t.Fatalf("%q has the identifier %d, not %v", line, n, got.id.Raw())
				}
			}
		}
		if next, err := readFrame(r, func() int64 { return 10 }); err != nil || string(next.line) != "next" {
			t.Fatalf("after %q comes %q (%v)", line, next.line, err)
		}
	})
}

// Events are read as the specification of server-sent events has them, and bounded.
func TestEvents(t *testing.T) {
	const stream = ": a comment\n\nid: 1\nretry: 20\ndata: {\"a\":\ndata: 1}\n\nevent: other\ndata: x\r\n\r\ndata\n\ndata: last"
	r := bufio.NewReaderSize(strings.NewReader(stream), 16)
	for _, want := range []struct{ id, name, data string }{{"1", "", "{\"a\":\n1}"}, {"", "other", "x"}, {"", "", ""}} {
		e, err := readEvent(r, 100)
		if err != nil || e.id != want.id || e.name != want.name || string(e.data) != want.data {
			t.Fatalf("%+v, %v; want %+v", e, err, want)
		}
	}
	if e, err := readEvent(r, 100); err != io.EOF {
		t.Errorf("an event without an end is %+v, %v", e, err)
	}
	for _, long := range []string{"data: " + strings.Repeat("x", 3000), "id: " + strings.Repeat("x", 1100), strings.Repeat("data: x\n", 1000)} {
		if _, err := readEvent(bufio.NewReaderSize(strings.NewReader(long+"\n\n"), 16), 100); err != errTooLarge {
			t.Errorf("%.20s…: %v", long, err)
		}
	}
}
