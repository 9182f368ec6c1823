package mcpserver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
)

// TestImportRunsExamples: a document's examples hold, or nothing of it is kept. They
// are run without authority, and where nothing is granted.
func TestImportRunsExamples(t *testing.T) {
	const (
		good   = `{"name":"good","code":1}`
		double = `{"name":"double","code":{"lam":"x","body":{"mul":[2,{"var":"x"}]}},"examples":[{"input":3,"expect":6}]}`
		acting = `{"name":"%s","capabilities":["call:double","toy.get:notes/**"],
			"code":{"lam":"k","body":[{"toy.get":{"var":"k"}},{"call":{"tool":"double","input":2}}]},
			"examples":[{"input":"notes/a","effects":[{"op":"toy.get","args":{"key":"notes/a"},"value":"T"}],"expect":["%s",4]}]}`
		late = `{"name":"any","capabilities":["call:*"],"code":{"lam":"n","body":{"call":{"tool":{"var":"n"},"input":2}}},
			"examples":[{"input":"double","expect":4}]}`
	)
	for _, c := range []struct{ tools, want string }{
		{good + "," + double, ""},
		{fmt.Sprintf(acting, "acts", "T") + "," + double + "," + late, ""},
		{good + "," + strings.Replace(double, ":6", ":7", 1), `tool "double": refused: example 1 of 1, on the input 3: it gives 6, and 7 is expected`},
		{fmt.Sprintf(acting, "acts", "U") + "," + double, `it gives ["T",4], and ["U",4] is expected`},
		{strings.Replace(fmt.Sprintf(acting, "acts", "T"), `"call:double",`, "", 1) + "," + double, "didn't declare calls"},
		{strings.Replace(fmt.Sprintf(acting, "acts", "T"), `,"effects":[{"op":"toy.get","args":{"key":"notes/a"},"value":"T"}]`, "", 1) + "," + double, "no outcome for that"},
		{good + "," + strings.Replace(double, `"expect":6`, `"error":"banana"`, 1), `no example can expect the error "banana"`},
		{good + "," + strings.Replace(double, `,"expect":6`, "", 1), `"expect" or "error" is missing`},
		{good + `,{"name":"on","code":{"lam":"x","body":{"app":{"func":{"self":[]},"arg":1}}},"examples":[{"input":1,"expect":1}]}`, "may take 1000000 steps"},
	} {
		known, err := caps.NewKinds(toy)
		if err != nil {
			t.Fatal(err)
		}
		for what, broker := range map[string]*run.Broker{
			"granted":         newRecordedWorld(t, 1).server.broker,
			"nothing granted": run.New(run.Options{Policy: caps.NewPolicy(known, time.Now), Journal: journal.NewMemory(1<<20, nil)}),
		} {
			s := New(Options{Broker: broker})
			tools, err := registry.Decode(strings.NewReader(`{"format":"mcp-pif tools 1","tools":[` + c.tools + `]}`))
			if err != nil {
				t.Fatal(err)
			}
			_, _, _, err = s.Import(t.Context(), tools)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s, %s: %v, expected %q", what, c.tools, err, c.want)
			}
			if n := s.Registry().Snapshot().Len(); (n > 0) != (c.want == "") {
				t.Errorf("%s, %s: %d tools are there", what, c.tools, n)
			}
			if c.want != "" && err != nil && strings.Contains(err.Error(), "evolve again") {
				t.Errorf("nobody evolves: %v", err)
			}
		}
	}
}
