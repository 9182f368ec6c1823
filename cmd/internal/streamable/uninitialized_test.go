package streamable

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestOutsideSessions: what belongs to a session and names none is refused with a code
// and in words, and makes no session; what begins one, or needs none, isn't.
func TestOutsideSessions(t *testing.T) {
	url := start(t, Options{Server: principals(), MaxSessions: 1})
	for _, test := range []struct {
		body  string
		code  int // 0: it is answered
		words string
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whose"}}`, -32600, "send initialize first"},
		{`{"jsonrpc":"2.0","id":"a","method":"tools/list"}`, -32600, "send initialize first"},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, -32602, `"clientInfo"`},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}`, -32602, `"clientInfo"`},
		{hello, 0, "serverInfo"},
	} {
		status, text := post(t, url, strings.NewReader(test.body), nil)
		if test.code == 0 {
			// The one session that there may be wasn't made before.
			if status != http.StatusOK || !strings.Contains(text, test.words) {
				t.Errorf("%s: %d %s", test.body, status, text)
			}
			continue
		}
		var got struct {
			ID    any
			Error struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || status != http.StatusBadRequest || got.ID == nil || got.Error.Code != test.code || !strings.Contains(got.Error.Message, test.words) {
			t.Errorf("%s: %d %s", test.body, status, text)
		}
	}
}
