package wire_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// Arguments are looked at once each: 300,000 of them, compared with each other, would take minutes.
func TestManyArguments(t *testing.T) {
	t.Parallel()
	for last, want := range map[string]string{`"k":1,"k":2`: `duplicate argument "k"`, `"k":1`: `no argument "a0", "a1"`} {
		var call bytes.Buffer
		call.WriteByte('{')
		for i := range 300_000 {
			fmt.Fprintf(&call, `"a%d":1,`, i)
		}
		call.WriteString(last + "}")
		if _, f := wire.Read("run", call.Bytes(), "code"); f == nil || !strings.Contains(f.Message, want) {
			t.Errorf("%v, want %s", f, want)
		}
	}
}
