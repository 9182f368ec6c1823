package registry

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLayout: laid-out JSON means the same, and its size is in proportion.
func TestLayout(t *testing.T) {
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
			case kind == 0:
				return rapid.Int().Draw(t, "int")
			case kind == 1:
				return rapid.String().Draw(t, "string") + rapid.SampledFrom([]string{"", `"`, `\`, `[`, `}`}).Draw(t, "odd")
			case kind == 2 || depth == 0:
				return nil
			case kind == 3:
				return rapid.MapOfN(rapid.String(), value(depth-1), 0, 5).Draw(t, "object")
			}
			return rapid.SliceOfN(value(depth-1), 0, 8).Draw(t, "list")
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		code, err := json.Marshal(value(5).Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		out := layout(nil, code, rapid.IntRange(0, 80).Draw(t, "indent"))
		var back bytes.Buffer
		if err := json.Compact(&back, out); err != nil || !bytes.Equal(back.Bytes(), code) {
			t.Fatalf("%s\nbecame\n%s\n%v", code, out, err)
		}
	})
	deep := strings.Repeat(`{"a":[`, 2000) + strings.Repeat(`]}`, 2000)
	if out := layout(nil, []byte(deep), 0); len(out) > 4*len(deep) {
		t.Errorf("%d bytes became %d", len(deep), len(out))
	}
}
