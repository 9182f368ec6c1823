package fetch

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// BenchmarkRequest is an answer of 100 bytes, through the plugin's handler and
// by net/http alone.
func BenchmarkRequest(b *testing.B) {
	body := strings.Repeat("x", 100)
	s := serve(b, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, body) })
	b.Run("plugin", func(b *testing.B) {
		h := open(b, world{}, s.URL)
		args := valueOf(fields{"url": s.URL + "/a/b?c=d"})
		b.ReportAllocs()
		for b.Loop() {
			if v, err := h.Invoke(b.Context(), "fetch.request", args); err != nil || text(v, "body") != body {
				b.Fatal(v, err)
			}
		}
	})
	b.Run("net/http", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			resp, err := s.Client().Get(s.URL + "/a/b?c=d")
			if err != nil {
				b.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || string(got) != body {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkDecide is what is decided before anything is sent.
func BenchmarkDecide(b *testing.B) {
	k, err := world{}.open(b.Context(), sdk.Capability{Within: "https://*.example.com/v1/*/items/**"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		t, err := parseTarget("https://api.example.com/v1/acme%20inc/items/17?expand=all")
		if err == nil {
			err = k.permits("GET", t)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
