package streamable

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-pif/mcp-pif/cmd/internal/stdio"
)

// noBatches is the first version of the protocol without batches.
const noBatches = "2025-06-18"

// malformed answers a body that is no message, in the same words as on standard input
// and output, and reports whether it did. The SDK would name its own types, take the
// last of two ids, and answer 1.5 as the id 1.
func malformed(w http.ResponseWriter, r *http.Request, body []byte) bool {
	batches := !modern(r, body) && r.Header.Get(versionHeader) < noBatches
	refusal := stdio.Refusal(body, batches)
	if refusal == nil {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(refusal)
	return true
}

// refuse answers the message in a body with an error of the protocol; data may be nil.
func refuse(w http.ResponseWriter, body []byte, code int64, words string, data any) {
	var m message
	_ = json.Unmarshal(body, &m) // a batch has no id
	if len(m.ID) == 0 {
		m.ID = json.RawMessage("null")
	}
	refusal := jsonrpc.Error{Code: code, Message: words}
	if data != nil {
		refusal.Data, _ = json.Marshal(data) // of strings
	}
	text, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": &refusal})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(text)
}

// tooLarge answers a body over the limit. Most clients read an answer only when they
// have sent all they have, and would see a broken connection: so some of it is taken
// first, and thrown away.
func (h *Handler) tooLarge(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Expect") == "" { // who asks before sending has sent nothing
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(h.o.BodyTime)) // where the connection has none, as in tests
		if _, err := io.CopyN(io.Discard, r.Body, thrownAway*h.o.MaxBody); err == nil || err == io.EOF {
			_ = control.SetReadDeadline(time.Time{})
		} // else the time stays over: before it answers, net/http would wait for the rest
	}
	http.Error(w, http.StatusText(http.StatusRequestEntityTooLarge), http.StatusRequestEntityTooLarge)
}

// thrownAway is how much of a body that is too large is taken, in limits.
const thrownAway = 4
