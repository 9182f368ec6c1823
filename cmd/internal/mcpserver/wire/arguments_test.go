package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// Of arguments that a tool doesn't take so many of, the first are enough to refuse them: all of 300,000 would take
// a hundred bytes each, of every call that waits.
func TestManyArguments(t *testing.T) {
	many := strings.Repeat(`,"":1`, 300_000)
	for _, text := range []bool{false, true} {
		for first, want := range map[string]string{`"k":1,"k":2`: `duplicate argument "k"`, `"k":1,"l":1,"m":1,"n":1,"o":1,"p":1`: `no argument "k", "l"`} {
			call := "{" + first + "}"
			if first = "{" + first + many + "}"; text {
				first = string(wire.Encode(first))
			}
			few := testing.AllocsPerRun(1, func() { wire.Read("run", []byte(call), "code") })
			took := testing.AllocsPerRun(1, func() {
				if _, f := wire.Read("run", []byte(first), "code"); f == nil || !strings.Contains(f.Message, want) {
					t.Errorf("%v, want %s", f, want)
				}
			})
			if took > few+100 {
				t.Errorf("%s… takes %v allocations, without the rest %v", first[:20], took, few)
			}
		}
	}
}

// Items gives what [json.Unmarshal] does, as far as it was asked for.
func TestItems(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`[]`, ` [ ]`, `[ ] `, `[1]`, `[1 , "a,]\"",[[2],{"b":[]}] ,null,{}]`, `[1,2,3,4,5,6]`, `null`, `{}`, `1`, `""`, ``, `[`, `[1`, `[1,]`, `[,1]`, `[1 2]`, `[1]]`, `[1],2`, `[01]`, `["]`, `[{]}`,
	} {
		var all []json.RawMessage
		valid := json.Unmarshal([]byte(text), &all) == nil
		for most := range 8 {
			items, ok := wire.Items([]byte(strings.TrimSpace(text)), most)
			if want := all[:min(len(all), most)]; ok != valid || ok && fmt.Sprintf("%s", items) != fmt.Sprintf("%s", want) {
				t.Errorf("%s: %s %v, want %s %v", text, items, ok, want, valid)
			}
		}
	}
}
