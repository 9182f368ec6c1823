package streamable

import (
	"net/http"
	"strings"
	"testing"
)

// TestUnspokenVersions: a version that there isn't is refused as that, whatever else the
// request lacks.
func TestUnspokenVersions(t *testing.T) {
	url := start(t, Options{}) + Path
	body := `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`
	for _, v := range []string{"nonsense", "zzz", "1", "2026-07-28x", "2099-01-01", "2026-7-28", "2023-01-01"} {
		got, answer := post(t, url, strings.NewReader(body), func(r *http.Request) { r.Header.Set(versionHeader, v) })
		if got != 400 || !strings.Contains(answer, `"requested":"`+v+`"`) || !strings.Contains(answer, `"id":7`) || !strings.Contains(answer, "-32022") {
			t.Errorf("%s: status %d: %s", v, got, answer)
		}
	}
	for _, v := range versions {
		got, answer := post(t, url, strings.NewReader(body), func(r *http.Request) { r.Header.Set(versionHeader, v) })
		if strings.Contains(answer, "-32022") {
			t.Errorf("%s: status %d: %s", v, got, answer)
		}
	}
	// The SDK's list is this one.
	_, answer := post(t, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`),
		func(r *http.Request) {
			r.Header.Set(versionHeader, "2026-07-28")
			r.Header.Set("Mcp-Method", "server/discover")
		})
	if want := `"supportedVersions":["` + strings.Join(versions, `","`) + `"]`; !strings.Contains(answer, want) {
		t.Errorf("the SDK speaks others: %s", answer)
	}
}
