package flows_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check/flows"
	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// TestVerdicts asks whether the argument to of mail.send is made of what mail.read gave,
// and whether anything of it, or that it is sent, depends on that.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{`r => !mail.send({to: r.to, text: "x"})`, "never never"},
		{`r => let m = !mail.read({id: r.id}) in !mail.send({to: m.from, text: r.text})`, "must must: mail.read, get from"},
		{`r => let m = !mail.read({id: r.id}) in !mail.send({to: m.data.from, text: 1})`, "must must: mail.read, get data, get from"},
		{`r => let m = !mail.read({id: r.id}) in !mail.send({to: get(r, "to", m.from), text: 1})`, "may may: mail.read, get from"},
		{`r => let m = !mail.read({id: r.id}) in !mail.send({to: r.to, text: "Re: " ++ m.subject})`, "never must"},
		{`r => let m = !mail.read(1) in if equal(m.from, "me") then !mail.send({to: r.to}) else 0`, "never may"},
		{`r => let ms = !mail.list(1) in !mail.send({to: head(filter(m => equal(m.from, "me"), ms)).to})`, "must must: mail.list, head, get to"},
		{`r => let ms = !mail.list(1) in map(m => !mail.send({to: m.from}), ms)`, "must must: mail.list, get from"},
		{`r => let ms = !mail.list(1) in map(m => !mail.send({to: r.to}), ms)`, "never may"},
		{`r => let ms = !mail.list(1) in !mail.send({to: r.to, n: length(ms)})`, "never must"},
		{`r => let f = x => [x.a], m = !mail.read(1) in [f(m), !mail.send({to: f({a: 1})})]`, "never never"},
		{`r => let go = n => if n == 0 then !mail.read(1).from else go(n - 1) in !mail.send({to: go(3)})`, "must must"},
		{`r => !mail.send({to: (try(!mail.read(1))).error.message})`, "may may"},
		{`r => !mail.send({to: try(!mail.read(1)).ok.from})`, "must must"},
		{`r => try(let m = !mail.read(1) in !mail.send({to: m.from}))`, "may may"},
		{`r => par(!mail.read(1), !mail.send({to: r.to}))`, "never never"},
		{`r => let m = !mail.read(1) in !mail.send({...r, to: m.from})`, "must must"},
		{`r => let m = !mail.read(1) in !mail.send({...m, to: r.to})`, "may may"},
		{`r => match !mail.read(1) { {from: x} => !mail.send({to: x}); _ => 0 }`, "must must"},
		{`r => eval(r.code)`, "never never"},
		{`r => eval(r.code, ["mail.send"])`, "may may"},
		{`r => eval('{!mail.send({to: 1})})`, "never never"},
		{`r => let m = !mail.read(1) in eval('{!mail.send({to: m})})`, "must must"},
		{`r => @reads(1)`, "never never"},
		{`r => !mail.send({to: @reads(1)})`, "must must"},
		{`r => @sends(!mail.read(1).from)`, "must must"},
		{`r => [@sends(r.to), !mail.read(1)]`, "never never"},
		{`r => @nobody(1)`, "may may"},
		{`r => r.f(!mail.read(1), x => !mail.send({to: x}))`, "may may"},
	} {
		p, err := core.CompileText("tool", []byte(c.code))
		if err != nil {
			t.Fatalf("%s\n%v", c.code, err)
		}
		tools := map[string]string{"reads": `x => !mail.read(x).from`, "sends": `x => !mail.send({to: x})`}
		found, ok := flows.Of(p.Term(), flows.Query{
			Tool: true, All: secret,
			Code: func(name string) (term.Term, bool) {
				p, err := core.CompileText(name, []byte(tools[name]))
				if err != nil {
					return nil, false
				}
				return p.Term(), true
			},
			Source: func(q *flows.Asking) (may, must flow.Label, alone bool) {
				if q.Op == "mail.read" || q.Op == "mail.list" {
					return secret, secret, false
				}
				return 0, 0, false
			},
			Rules: []flows.Rule{
				{Of: sends, Argument: "to", Forbidden: secret, Mask: flow.Data},
				{Of: sends, Forbidden: secret, Mask: flow.Both, Made: true},
			},
		})
		if !ok {
			t.Fatalf("%s: too large", c.code)
		}
		got := map[int]flows.Flow{0: {Verdict: flows.Never}, 1: {Verdict: flows.Never}}
		for _, f := range found {
			got[f.Rule] = f
		}
		shown := fmt.Sprint(got[0].Verdict, " ", got[1].Verdict)
		var via []string
		for _, s := range got[0].Via {
			via = append(via, strings.TrimSpace(s.Name+" "+s.Field))
		}
		if _, path, _ := strings.Cut(c.want, ": "); path != "" {
			shown += ": " + strings.Join(via, ", ")
		}
		if shown != c.want {
			t.Errorf("%s\n  %s, want %s", c.code, shown, c.want)
		}
	}
}

func sends(q *flows.Asking) (may, must bool) { return q.Op == "mail.send", q.Op == "mail.send" }
