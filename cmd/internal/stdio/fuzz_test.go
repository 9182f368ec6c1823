package stdio

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzFrames sends any bytes, then a ping, which must be answered; everything
// said until then must be JSON-RPC, and the end of input must end the session.
// What is JSON, and what isn't, must be what the standard library says.
//
// Run it with -fuzzminimizetime=1x: which branches of the SDK a session takes
// varies from run to run, and minimizing would chase that for a minute a time.
func FuzzFrames(f *testing.F) {
	for _, c := range malformed {
		if len(c.line) < 10_000 {
			f.Add([]byte(c.line))
		}
	}
	for _, l := range []string{
		initializeLine + "\r\n" + initializedLine + "\n" + callLine("1", "echo", "x") + cancelLine("1"),
		"\xef\xbb\xbf" + callLine("1", "echo", strings.Repeat("x", 2000)) + "\n" + pingLine("2"),
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{` + modern + `,"notifications":{"toolsListChanged":true}}}` + "\n" + cancelLine("1.0"),
		`{"jsonrpc":"2.0","id":-9.007199254740993e15,"method":"server/discover","params":{` + modern + `}}`,
	} {
		f.Add([]byte(l))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for l := range bytes.Lines(data) {
			l = bytes.TrimSuffix(l, []byte("\n"))
			if blank(l) {
				continue
			}
			_, refused := parse(l)
			notJSON := refused != nil && refused.code == -32700
			if want := !json.Valid(l) || !utf8.Valid(l); notJSON != want {
				t.Fatalf("%q: refused as %+v, want not JSON: %v", l, refused, want)
			}
		}
		s := start(t, func(tr *Transport) { tr.MaxFrame = 1000 })
		go func() {
			s.in.Write(data)
			s.in.Write([]byte("\n" + pingLine(`"fuzz"`) + "\n"))
			s.in.Close()
		}()
		for {
			m := s.receive()
			if string(m.ID) == `"fuzz"` && m.Method == "" {
				break
			}
		}
		for {
			if _, err := s.next(); err != nil {
				break
			}
		}
		if err := s.ended(); err != nil {
			t.Fatalf("Run: %v", err)
		}
	})
}
