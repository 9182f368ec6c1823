package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

func TestThrow(t *testing.T) {
	h, err := sdk.Direct(context.Background(), dice, sdk.Capability{Within: "hall/**"})
	must.NoError(t, err)
	throw := func(n int64) (value.Value, error) {
		return h.Invoke(context.Background(), "dice.throw", &value.Record{Fields: []value.Field{
			{Key: "dice", Value: value.NewInt(n)}, {Key: "table", Value: value.Str("hall/left")},
		}})
	}
	v, err := throw(100)
	must.NoError(t, err)
	fields := v.(*value.Record).Fields
	eyes, _ := value.Slice(fields[0].Value)
	sum := int64(0)
	for _, e := range eyes {
		n, _ := e.(value.Int).Int64()
		if n < 1 || n > 6 {
			t.Fatalf("a die shows %d", n)
		}
		sum += n
	}
	if len(eyes) != 100 || fields[1].Value != value.Value(value.NewInt(sum)) {
		t.Fatalf("%d dice, sum %v", len(eyes), fields[1].Value)
	}
	if _, err := throw(0); err == nil || !strings.Contains(err.Error(), "0 dice") {
		t.Fatalf("%v", err)
	}
}

// The README shows this program, to the letter.
func TestReadmeShowsIt(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	must.NoError(t, err)
	source, err := os.ReadFile("main.go")
	must.NoError(t, err)
	_, program, _ := strings.Cut(string(source), "\npackage main\n")
	if !strings.Contains(string(readme), "```go\npackage main\n"+program+"```\n") {
		t.Fatal("plugins/README.md has another program than plugins/internal/dice/main.go")
	}
}
