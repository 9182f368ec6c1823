package caps_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-pif/mcp-pif/caps"
)

// TestAttenuationIsMonotone: what a narrower declaration permits, the wider one
// permits; a denial only takes away.
func TestAttenuationIsMonotone(t *testing.T) {
	w := newWorld(t, "a/b/c/")
	w.grant("fs:./a", "fetch:https://*.y", "kv:**")
	denied := newWorld(t, "a/b/c/")
	denied.grant("fs:./a", "fetch:https://*.y", "kv:**")
	denied.deny("fs.read:./a/b", "fetch.post:https://x.y/a/**", "kv.put:a/**", "fs.remove:./a/b/c")
	permitted := 0
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{"fs", "fetch", "kv"}).Draw(t, "kind")
		m, _ := w.kinds.Manifest(kind)
		draw := func(label string) string {
			text := kind
			if rapid.Bool().Draw(t, label+" verbs") {
				text += "." + rapid.SampledFrom(m.Verbs).Draw(t, label+" verb").Name
			}
			return text + ":" + map[string]*rapid.Generator[string]{
				"fs":    rapid.SampledFrom([]string{"./a", "./a/b", "./a/b/c", "./a/d"}),
				"fetch": rapid.SampledFrom([]string{"https://*.y", "https://x.y", "https://x.y/a", "https://x.y/a/**", "https://*.y/*", "https://x.y/b"}),
				"kv":    rapid.SampledFrom([]string{"**", "a/**", "a/*", "a/b", "*", "*/b"}),
			}[kind].Draw(t, label+" scope") + rapid.SampledFrom([]string{"", ",ro", ",max=10B"}).Draw(t, label+" options")
		}
		one, err1 := caps.Parse(draw("wide"), w.kinds)
		two, err2 := caps.Parse(draw("narrow"), w.kinds)
		if err1 != nil || err2 != nil || !w.kinds.Contains(one, two) {
			t.Skip()
		}
		o := rapid.SampledFrom(m.Operations).Draw(t, "operation")
		var pairs []any
		for _, p := range o.Params {
			switch {
			case p.Designates && kind == "fs":
				// Relative to the capability: the same place under the wider one
				// is further down, so only what isn't named is the same.
				pairs = append(pairs, p.Name, rapid.SampledFrom([]string{"x", "b", "../x", "b/c"}).Draw(t, p.Name))
			case p.Designates && kind == "fetch":
				pairs = append(pairs, p.Name, rapid.SampledFrom([]string{"https://x.y/a", "https://x.y/a/b", "https://z.y/c", "https://x.y"}).Draw(t, p.Name))
			case p.Designates:
				pairs = append(pairs, p.Name, rapid.SampledFrom([]string{"a", "a/b", "a/b/c", "b"}).Draw(t, p.Name))
			case p.Name == o.VerbParam:
				pairs = append(pairs, p.Name, rapid.SampledFrom([]string{"get", "post", "DELETE"}).Draw(t, p.Name))
			case !p.Optional:
				pairs = append(pairs, p.Name, "x")
			}
		}
		under := func(w *world, c caps.Capability, up string) bool {
			d, f := w.policy.Decide([]string{c.String()}, caps.Needs{Withs: []caps.With{{Texts: []string{c.String()}}}}, caps.DecideOptions{})
			if f != nil {
				return false
			}
			mine := append([]any{}, pairs...)
			for i := 0; kind == "fs" && i < len(mine); i += 2 {
				if p, ok := mine[i+1].(string); ok && mine[i] != "content" {
					mine[i+1] = up + p
				}
			}
			_, f = w.permit(caps.NewLedger(), d.Held, o.Name, rec(mine...))
			return f == nil
		}
		up := strings.TrimPrefix(strings.TrimPrefix(two.Scope, one.Scope), "/")
		if up != "" {
			up += "/"
		}
		narrow := under(w, two, "")
		if narrow {
			permitted++
		}
		if narrow && !under(w, one, up) {
			t.Errorf("%s permits %s %v, %s doesn't", two, o.Name, pairs, one)
		}
		if !narrow && under(denied, two, "") {
			t.Errorf("%s permits %s %v only with denials", two, o.Name, pairs)
		}
	})
	if permitted == 0 {
		t.Log("nothing was permitted: nothing was tried")
		t.Fail()
	}
}
