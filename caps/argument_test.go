package caps_test

import (
	"reflect"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestArgumentOf: an argument is held to its type, where it has one, and its whole
// numbers are read as integers there.
func TestArgumentOf(t *testing.T) {
	of := func(notation string) *check.Type {
		typ, err := check.ParseAnswer(notation)
		if err != nil {
			t.Fatal(err)
		}
		return typ
	}
	m := &caps.Manifest{
		Kind: "github", Algebra: caps.Exact, Only: "github", Verbs: []caps.Verb{{Name: "list"}},
		Operations: []caps.Operation{{Name: "github.list", Verb: "list", Params: []caps.Param{
			{Name: "owner", Type: "string", Main: true, Of: of("string")},
			{Name: "page", Type: "int", Optional: true, Of: of("int")},
			{Name: "labels", Type: "list", Optional: true, Of: of("list[{n: int} | string]")},
			{Name: "rest", Type: "record", Optional: true},
		}}},
	}
	const want = "string | {labels?: list[string | {n: int}], owner: string, page?: int, rest?: {*: any}}"
	if got := m.Operations[0].Argument().String(); got != want {
		t.Errorf("it takes %s, not %s", got, want)
	}
	kinds, err := caps.NewKinds(m)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.kinds = kinds
	w.policy = caps.NewPolicy(kinds, w.clock.now)
	w.grant("github")
	held := w.hold("github")
	dec, _ := value.ParseDec("1e3")
	half, _ := value.ParseDec("0.5")
	list := func(items ...value.Value) value.Value { return value.FromSlice(items) }
	for _, c := range []struct {
		arg   value.Value
		says  string
		given value.Value // the argument that the plugin gets
	}{
		{rec("owner", "a", "page", dec), "", rec("owner", "a", "page", 1000)},
		{rec("owner", "a", "labels", list(rec("n", dec), str("x"))), "", rec("owner", "a", "labels", list(rec("n", 1000), str("x")))},
		{str("a"), "", rec("owner", "a")},
		{value.NewInt(1), "owner: int where string was said", nil},
		{rec("owner", "a", "page", half), "page: dec where int was said", nil},
		{rec("owner", "a", "labels", list(str("x"), value.NewInt(3))), "labels: item 1: int where", nil},
		{rec("owner", "a", "labels", list(rec("m", 3))), "labels: item 0: a record with a member", nil},
	} {
		permit, f := w.permit(caps.NewLedger(), held, "github.list", c.arg)
		if c.says != "" {
			wantFault(t, f, fault.EffectFailed, c.says, c.says)
			continue
		}
		if f != nil {
			t.Fatal(f)
		}
		if !reflect.DeepEqual(value.Value(permit.Args), c.given) {
			t.Errorf("%v: the plugin gets %v, not %v", c.arg, permit.Args, c.given)
		}
	}
	any := *m
	any.Operations = []caps.Operation{{Name: "github.list", Verb: "list", Params: []caps.Param{{Name: "f", Type: "any", Of: check.Any}}}}
	if _, err := caps.NewKinds(&any); err == nil {
		t.Error("an argument may be a function")
	}
}
