package caps_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	types "github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// serverKind is the kind of an MCP server with tools of these names. Those that begin with
// get or list were accepted as read-only.
func serverKind(name string, words ...string) *caps.Manifest {
	m := &caps.Manifest{Kind: name, Server: name, Algebra: caps.Exact}
	for _, w := range words {
		flags := tells
		if strings.HasPrefix(w, "get") || strings.HasPrefix(w, "list") {
			flags = asks
		}
		m.Verbs = append(m.Verbs, caps.Verb{Name: w, Flags: flags})
		m.Operations = append(m.Operations, caps.Operation{Name: name + "." + w, Wire: w, Verb: w, Hash: "sha256:" + w, Params: []caps.Param{
			{Name: "owner", Type: "string", Of: types.String, Optional: true, Designates: true}, {Name: "n", Type: "int", Of: types.Int, Optional: true},
		}})
	}
	return m
}

// serverWorld is a world with the server github beside the test's kinds.
func serverWorld(t testing.TB, words ...string) *world {
	t.Helper()
	w := newWorld(t, "s/")
	w.kinds["github"] = serverKind("github", words...)
	return w
}

var githubTools = []string{"create_issue", "delete_repo", "get_issue", "list_issues", "list_repos"}

// A server's kind has no scope; a star means the operations that there are, and the canonical
// text has them.
func TestServerText(t *testing.T) {
	w := serverWorld(t, githubTools...)
	for text, want := range map[string]string{
		"github":                               "github",
		"github,ro":                            "github,ro",
		"github.list_issues,max=1MiB":          "github.list_issues,max=1MiB",
		"github.list_*,get_*":                  "github.get_issue,list_issues,list_repos",
		"github.list_*,list_issues":            "github.list_issues,list_repos",
		"github.*":                             "github.create_issue,delete_repo,get_issue,list_issues,list_repos",
		"github.*,ro":                          "github.get_issue,list_issues,list_repos",
		"github.get_issue,calls=5,ro,max=1KiB": "github.get_issue,calls=5,max=1KiB",
		"github,until=2027-01-01T00:00:00Z":    "github,until=2027-01-01T00:00:00Z",
	} {
		c, err := caps.Parse(text, w.kinds)
		if err != nil || c.String() != want {
			t.Errorf("%s: %s %v, want %s", text, c, err, want)
			continue
		}
		again, err := caps.Parse(c.String(), w.kinds)
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%s: again %v %v", text, again, err)
		}
		raw, err := json.Marshal(c)
		var back caps.Capability
		if err != nil || json.Unmarshal(raw, &back) != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%s: %s is %v %v", text, raw, back, err)
		}
	}
	for text, says := range map[string]string{
		"github:*":               "no scope",
		"github:acme":            "no scope",
		"github.list_issues:x":   "unknown verb",
		"github.none":            "no verb none",
		"github.none_*":          "no verb none_*",
		"github.*issue":          "unknown verb",
		"github.l*st_issues":     "unknown verb",
		"github.**":              "unknown verb",
		"github.":                "unknown verb",
		"github.create_issue,ro": "mcp-pif mcp accept github",
		"github.list_*,list_*":   "duplicate verb",
		"github,list_issues":     "no option",
		"gitlab.list_*":          "unknown kind gitlab",
		"mcp:github/list_*":      "Write github.list_*.",
		"mcp:github":             "Write github.",
		"mcp:gitlab/list_*":      "unknown kind mcp",
		"fs.re*:./s":             "unknown verb",
		"fs":                     "colon",
	} {
		if c, err := caps.Parse(text, w.kinds); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v %v, want %q", text, c, err, says)
		}
	}
}

// What is granted by a star is what there was when it was read: a tool that comes later has
// to be granted by another start. A denial by a star takes it all the same.
func TestAttackLaterTool(t *testing.T) {
	w := serverWorld(t, githubTools...)
	granted := w.parse("github.list_*")
	pattern, err := caps.ParsePattern("github.delete_*", w.kinds)
	if err != nil || pattern.String() != "github.delete_*" {
		t.Fatal(pattern, err)
	}
	later := serverWorld(t, append([]string{"delete_user", "list_secrets"}, githubTools...)...)
	g, err := caps.Resolve(granted, caps.ResolveOptions{Kinds: later.kinds})
	must.NoError(t, err)
	must.NoError(t, later.policy.Grant(g))
	_, f := later.policy.Decide([]string{"github.*"}, ops("github.list_secrets"), caps.DecideOptions{})
	wantFault(t, f, fault.Refused, "list_secrets")
	later.grant("github")
	must.NoError(t, later.policy.Deny(pattern))
	for _, tool := range []string{"delete_repo", "delete_user"} {
		_, f = later.policy.Decide([]string{"github." + tool}, ops("github."+tool), caps.DecideOptions{})
		wantFault(t, f, fault.Refused, "denies")
	}
	if got := later.policy.ShownDenies(); !slices.Equal(got, []string{"github.delete_*"}) {
		t.Errorf("%q", got)
	}
}

// A revocation by a star keeps the star, takes what comes later, and ends by its own text.
func TestAttackRevokedPattern(t *testing.T) {
	w := serverWorld(t, githubTools...)
	e, err := caps.RevocationOf("github.list_*", w.kinds, "", "")
	if err != nil || e.Text != "github.list_*" || e.Real != "" {
		t.Fatalf("%+v %v", e, err)
	}
	later := serverWorld(t, append([]string{"list_secrets"}, githubTools...)...)
	later.grant("github.list_secrets", "github.create_issue")
	held := later.hold("github.list_secrets", "github.create_issue")
	later.policy.Revoked([]caps.Revocation{e})
	if later.allowed(held, "github.list_secrets", rec()) || !later.allowed(held, "github.create_issue", rec()) {
		t.Error("the pattern takes list_secrets, and nothing else")
	}
	later.policy.Revoked(nil)
	if !later.allowed(held, "github.list_secrets", rec()) {
		t.Error("it isn't restored")
	}
}

// Several grants of a server are held at once, and each request goes by the one that has it.
func TestServerGrants(t *testing.T) {
	w := serverWorld(t, githubTools...)
	w.grant("github.list_*,calls=1")
	w.ask("github.create_issue")
	d, f := w.policy.Decide([]string{"github.create_issue,list_*"}, ops("github.list_issues", "github.create_issue"), caps.DecideOptions{})
	must.NoFault(t, f)
	if want := []string{"github.create_issue", "github.list_issues,calls=1"}; !slices.Equal(d.Texts, want) {
		t.Errorf("%q, want %q", d.Texts, want)
	}
	if len(d.Ask) != 1 || d.Ask[0].String() != "github.create_issue" {
		t.Errorf("asks for %v", d.Ask)
	}
	if !w.allowed(d.Held, "github.list_issues", rec("owner", "anybody")) || w.allowed(d.Held, "github.create_issue", rec()) {
		t.Error("list_issues is granted, and create_issue waits for a person")
	}
	_, f = w.policy.Permit(caps.NewLedger(), d.Held, caps.Request{Operation: "github.create_issue", Arg: rec(), Tool: "t", Consent: caps.Approved})
	if f != nil {
		t.Error(f)
	}
	wantFault(t, second(w.policy.Decide([]string{"github.list_*"}, ops("github.delete_repo"), caps.DecideOptions{})), fault.Refused, "delete_repo", "--cap")
	wantFault(t, second(w.policy.Decide([]string{"github"}, ops("github.delete_repo"), caps.DecideOptions{})), fault.Refused, "delete_repo", "--cap")
}

func second(_ caps.Decision, f *fault.Fault) *fault.Fault { return f }

// A grant is another if an operation in it is defined otherwise, and the same if one beside it
// is; an approval is of the operations that the tool holds.
func TestServerIdentity(t *testing.T) {
	resolve := func(m *caps.Manifest, text string) *caps.Grant {
		w := newWorld(t)
		w.kinds["github"] = m
		g, err := w.resolve(text)
		must.NoError(t, err)
		return g
	}
	changed := serverKind("github", githubTools...)
	changed.Operations[3].Hash = "sha256:other" // list_issues
	was, now := serverKind("github", githubTools...), serverKind("github", append(githubTools, "list_secrets")...)
	if resolve(was, "github.list_issues").ID != resolve(now, "github.list_issues").ID {
		t.Error("one more tool makes another grant")
	}
	for _, text := range []string{"github.list_issues", "github,ro", "github"} {
		if resolve(was, text).ID == resolve(changed, text).ID {
			t.Errorf("%s: another definition makes no other grant", text)
		}
	}
	if resolve(was, "github.get_issue").ID != resolve(changed, "github.get_issue").ID {
		t.Error("another definition of another tool makes another grant")
	}

	approved := func(m *caps.Manifest, text string) []caps.Holding {
		w := newWorld(t)
		w.kinds["github"] = m
		w.ask(text)
		return caps.Holdings(w.hold("github.list_issues"))
	}
	if a, b := approved(was, "github"), approved(now, "github.list_*"); !slices.Equal(a, b) {
		t.Errorf("one more tool asks again: %v, %v", a, b)
	}
	if a, b := approved(was, "github"), approved(changed, "github"); slices.Equal(a, b) {
		t.Error("another definition doesn't ask again")
	}
}

// only is a schema that permits one owner.
type only string

func (o only) Check(args *value.Record) *fault.Fault {
	if len(args.Fields) == 1 && args.Fields[0].Key == "owner" && args.Fields[0].Value == value.Str(o) {
		return nil
	}
	return &fault.Fault{At: "/owner", Message: `it is not "` + string(o) + `"`}
}

// Arguments are held to the server's schema, which they fail, and to the operator's, which
// denies; both before anything is counted.
func TestServerSchemas(t *testing.T) {
	w := serverWorld(t, githubTools...)
	w.kinds["github"].Operations[0].Input = only("acme")
	g, err := caps.Resolve(w.parse("github,calls=1"), caps.ResolveOptions{Kinds: w.kinds, Narrow: map[string]caps.Schema{"github.list_issues": only("acme")}})
	must.NoError(t, err)
	must.NoError(t, w.policy.Grant(g))
	held, ledger := w.hold("github"), caps.NewLedger()
	_, f := w.permit(ledger, held, "github.create_issue", rec("owner", "evil"))
	wantFault(t, f, fault.EffectFailed, "github.create_issue", `at "/owner"`, `it is not "acme"`)
	_, f = w.permit(ledger, held, "github.list_issues", rec("owner", "evil"))
	wantFault(t, f, fault.Denied, "the operator permits", `it is not "acme"`)
	_, f = w.permit(ledger, held, "github.create_issue", rec("owner", strings.Repeat("x", 9<<20)))
	wantFault(t, f, fault.Denied, "more than")
	if _, f = w.permit(ledger, held, "github.create_issue", rec("owner", "acme")); f != nil {
		t.Error("what was refused is counted:", f)
	}
}

// A writes schema stands for those of servers, which write arguments out.
type writes struct{ t *testing.T }

func (w writes) Check(args *value.Record) *fault.Fault {
	if err := text.CheckRecorded(args, caps.DefaultLimits.Max); err != nil {
		w.t.Error("the schema writes arguments:", err)
	}
	return nil
}

// TestAttackDeepArguments: before a schema writes arguments it is known that they are small and not deep, whoever
// measured them.
func TestAttackDeepArguments(t *testing.T) {
	w := serverWorld(t, githubTools...)
	o := &w.kinds["github"].Operations[0]
	o.Params = append(o.Params, caps.Param{Name: "body", Type: "any", Of: types.Data, Optional: true})
	o.Input = writes{t}
	w.grant("github")
	held := w.hold("github")
	twice, inside, deep := value.Value(value.NewInt(1)), value.Value(value.NewInt(1)), value.Value(value.Unit{})
	for range 60 {
		inside = value.FromSlice([]value.Value{inside, inside})
	}
	shared := inside
	for range 1_100 {
		twice, inside = value.FromSlice([]value.Value{twice, twice}), value.FromSlice([]value.Value{inside})
	}
	for range 1_000_000 {
		deep = value.FromSlice([]value.Value{deep})
	}
	for name, body := range map[string]value.Value{"twice": twice, "inside": inside, "shared": shared, "deep": deep, "before": value.FromSlice([]value.Value{deep, shared})} {
		arg := rec("body", body)
		size, _ := text.MeasureRecorded(arg, 1<<20, math.MaxUint64, nil)
		for _, r := range []caps.Request{{}, {Most: 1 << 20}, {Most: 1 << 20, Size: size}} {
			r.Operation, r.Tool, r.Arg = o.Name, "t", arg
			if _, f := w.policy.Permit(caps.NewLedger(), held, r); f == nil {
				t.Errorf("%s, measured as %d: permitted", name, r.Size)
			}
		}
	}
}

// Whole numbers in any spelling are integers where the schema has those, and go out as that.
func TestServerNumbers(t *testing.T) {
	w := serverWorld(t, githubTools...)
	w.grant("github")
	held := w.hold("github")
	dec := func(s string) value.Value {
		d, ok := value.ParseDec(s)
		if !ok {
			t.Fatal(s)
		}
		return d
	}
	p, f := w.permit(caps.NewLedger(), held, "github.get_issue", rec("n", dec("10.0")))
	must.NoFault(t, f)
	if n, ok := p.Args.Fields[0].Value.(value.Int); !ok || n.String() != "10" {
		t.Errorf("%v goes out", p.Args.Fields[0].Value)
	}
	_, f = w.permit(caps.NewLedger(), held, "github.get_issue", rec("n", dec("10.5")))
	wantFault(t, f, fault.EffectFailed, "n: dec where int")
}
