package main

import (
	"bytes"
	"go/format"
	"os"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// What is committed is what the generators write now.
func TestGeneratedIsCommitted(t *testing.T) {
	code, err := generate(t.Context(), []string{"mcppif/order/v1/order.proto", "mcppif/plugin/v1/plugin.proto"})
	must.NoError(t, err)
	if len(code) != 4 {
		t.Fatalf("%d files, expected two of messages and two of services", len(code))
	}
	for name, text := range code {
		committed, err := os.ReadFile(name)
		must.NoError(t, err)
		if !bytes.Equal(text, committed) {
			t.Errorf("%s is out of date: run go generate ./proto/...", name)
		}
		if formatted, err := format.Source(text); err != nil || !bytes.Equal(formatted, text) {
			t.Errorf("%s isn't as gofmt has it: %v", name, err)
		}
	}
}

func TestGenerateSaysWhatIsWrong(t *testing.T) {
	if _, err := generate(t.Context(), []string{"nothing.proto"}); err == nil || !strings.Contains(err.Error(), "nothing.proto") {
		t.Fatalf("error %v", err)
	}
}
