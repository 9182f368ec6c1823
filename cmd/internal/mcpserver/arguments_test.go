package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// jsonValue generates JSON text with odd spacing.
func jsonValue(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		space := rapid.SampledFrom([]string{"", " ", "\n\t", "  "})
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth == 0 {
			kind %= 5
		}
		switch kind {
		case 0:
			return "null"
		case 1:
			return fmt.Sprint(rapid.Bool().Draw(t, "bool"))
		case 2:
			return fmt.Sprint(rapid.Int().Draw(t, "int"))
		case 3:
			return "1.5e10"
		case 4:
			b, _ := json.Marshal(rapid.String().Draw(t, "string") + rapid.SampledFrom([]string{"", `"`, `\`, `}`, `,`}).Draw(t, "odd"))
			return string(b)
		case 5:
			items := rapid.SliceOfN(jsonValue(depth-1), 0, 4).Draw(t, "items")
			return "[" + space.Draw(t, "s") + strings.Join(items, ","+space.Draw(t, "s")) + space.Draw(t, "s") + "]"
		}
		items := rapid.SliceOfN(jsonValue(depth-1), 0, 4).Draw(t, "members")
		for i, item := range items {
			key, _ := json.Marshal(fmt.Sprint(i, rapid.String().Draw(t, "key")))
			items[i] = string(key) + space.Draw(t, "s") + ":" + space.Draw(t, "s") + item
		}
		return "{" + space.Draw(t, "s") + strings.Join(items, space.Draw(t, "s")+",") + space.Draw(t, "s") + "}"
	})
}

// TestSplit: an object's members are what encoding/json makes of them.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := jsonValue(3).Draw(t, "json")
		var want map[string]json.RawMessage
		isObject := json.Unmarshal([]byte(text), &want) == nil && text[0] == '{'
		members, ok := split([]byte(text))
		if ok != isObject {
			t.Fatalf("split(%q) = %v, expected %v", text, ok, isObject)
		}
		if !ok {
			return
		}
		got := map[string]json.RawMessage{}
		for _, m := range members {
			got[m.name] = m.value
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

// FuzzSplit: split reads any bytes without reading beyond them, and accepts
// whatever object encoding/json does.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1}`, `{"a":[1,{"b":"}"}],"c":"\""}`, `{"a"`, `{"a":`, `{"a":}`, `{"a":1,}`, `{,}`, `[`, `{"`, `{"\`, ``, ` {"a":1} `, `{"a":1}x`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		members, ok := split(raw)
		if !ok && json.Valid(raw) && len(raw) > 0 && raw[0] == '{' {
			t.Fatalf("%q is an object and was refused", raw)
		}
		for _, m := range members {
			if len(m.value) == 0 {
				t.Fatalf("%q: the member %q has no value", raw, m.name)
			}
		}
	})
}

func TestReadArguments(t *testing.T) {
	for _, c := range []struct {
		raw, want string // want: "a=… b=…", or a part of the fault
	}{
		{`{"a":1,"b":"x"}`, `a=1 b="x"`},
		{`"{\"a\":1}"`, `a=1`},
		{`" {\"a\": [1] } "`, `a=[1]`},
		{``, ``}, {`null`, ``}, {`{}`, ``}, {`"null"`, ``}, {`""`, ``},
		{`{"\u0061":1}`, `a=1`},
		{`[1]`, `are an object, not [1]`},
		{`7`, `are an object, not 7`},
		{`"seven"`, `are an object, not seven`},
		{`{"a":1,"a":2}`, `duplicate argument "a"`},
		{`{"a":1,"c":2,"d":3}`, `no argument "c", "d"`},
	} {
		a, f := readArguments("test", json.RawMessage(c.raw), "a", "b")
		if f != nil {
			if f.Kind != fault.InvalidRequest || c.want == "" || !strings.Contains(f.Message, c.want) {
				t.Errorf("%s: %v, expected %q", c.raw, f, c.want)
			}
			if !strings.Contains(f.Hint, "a, b") {
				t.Errorf("%s: the hint doesn't name the arguments: %s", c.raw, f.Hint)
			}
			continue
		}
		var got []string
		for _, m := range a.members {
			got = append(got, m.name+"="+string(m.value))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, expected %q", c.raw, got, c.want)
		}
	}
}

// TestScalars: numbers and truth values may come as strings.
func TestScalars(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want uint64 // 0: refused
	}{
		{`5`, 5}, {`"5"`, 5}, {`" 5 "`, 5}, {`1e3`, 1000}, {`1000.0`, 1000}, {`"1e3"`, 1000},
		{`99999999999999999999`, 1 << 40}, {`1e300`, 1 << 40},
		{`0`, 0}, {`-1`, 0}, {`1.5`, 0}, {`"five"`, 0}, {`[5]`, 0}, {`true`, 0}, {`"0x10"`, 0}, {`"inf"`, 0}, {`"NaN"`, 0}, {`"1_000"`, 0},
	} {
		a := &arguments{tool: "run", members: []member{{"steps", json.RawMessage(c.raw)}}}
		n, ok, f := a.count("steps", 1<<40)
		if (f == nil) != (c.want > 0) || ok != (c.want > 0) || n != c.want {
			t.Errorf("%s: %d %v %v, expected %d", c.raw, n, ok, f, c.want)
		}
	}
	for raw, want := range map[string]string{
		`true`: "true", `false`: "false", `"true"`: "true", `"False"`: "false", `null`: "false", `1`: "fault", `"yes"`: "fault",
	} {
		a := &arguments{tool: "run", members: []member{{"drive", json.RawMessage(raw)}}}
		v, f := a.flag("drive")
		got := fmt.Sprint(v)
		if f != nil {
			got = "fault"
		}
		if got != want {
			t.Errorf("%s: %s, expected %s", raw, got, want)
		}
	}
}
