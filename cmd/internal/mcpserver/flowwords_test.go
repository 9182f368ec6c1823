package mcpserver

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// TestFlowWords: whatever shows a model words of a tool whose writer had been shown a source labels its session, as describe does: lists and
// errors either don't have the words or count as shown; and where that can't be recorded they don't have them.
func TestFlowWords(t *testing.T) {
	t.Parallel()
	m := newShown(t)
	const canary = "CANARY"
	for _, args := range []map[string]any{
		{"name": "told", "code": `r => if r.mode == "x" then raise("CANARY") else "CANARY" ++ r.mode`, "description": "CANARY",
			"input_schema": map[string]any{"type": "object", "description": "CANARY", "required": []string{"mode"}, "properties": map[string]any{"mode": map[string]any{
				"type": "string", "title": "CANARY", "description": "CANARY", "enum": []string{"CANARY", "x", "y"}, "default": "CANARY",
				"$comment": "CANARY", "format": "CANARY", "deprecated": "CANARY", "readOnly": "CANARY", "writeOnly": "CANARY"}}}},
		{"name": "asked", "code": `r => "CANARY" ++ r.topic`, "as": "prompt", "description": "CANARY",
			"input_schema": map[string]any{"type": "object", "required": []string{"topic"}, "properties": map[string]any{"topic": map[string]any{"type": "string", "description": "CANARY"}}}},
		{"name": "kept", "code": `"CANARY"`, "as": "resource", "description": "CANARY"},
		{"name": "caller", "code": `r => @told(r)`, "capabilities": []string{"call:told"}, "examples": []any{map[string]any{"input": map[string]any{"mode": "y"}, "expect": "CANARYy"}}},
	} {
		succeed(t, m.Server, "evolve", string(wire.Encode(args)))
	}
	succeed(t, m.Server, "evolve", `{"name":"keeps","code":"r => r","examples":[{"input":"CANARY","expect":"CANARY"}]}`)
	succeed(t, m.Server, "evolve", `{"name":"holds","code":"k => !toy.get(k)","capabilities":["toy.get:CANARY/**"]}`)
	do(t, m.Server, "evolve", `{"name":"refused2","code":"k => !toy.get(k)","capabilities":["toy.get:CANARY/**"],"examples":[{"input":"open/1","expect":1}]}`)
	succeed(t, m.Server, "evolve", `{"name":"no name","draft":true,"code":"r => r","examples":[{"input":"CANARY","expect":"CANARY"}]}`)
	m.evolve("told2", `"CANARY"`)
	m.evolve("told2", `1`)
	m.evolve("sends", `r => !toy.send({to: "bob", text: r})`)
	succeed(t, m.Server, "run", `{"tool":"sends","input":"CANARY","plan":true}`)
	do(t, m.Server, "evolve", `{"name":"refused","code":"r => r","examples":[{"input":"CANARY","expect":1}]}`)
	large := do(t, m.Server, "run", `{"code":"x => map(i => x, range(9000))","input":"CANARY"}`)
	var more struct {
		URI  string
		Next struct{ Arguments json.RawMessage }
		Task string
	}
	if err := json.Unmarshal(large.Structured, &more); err != nil || more.URI == "" {
		t.Fatal(err, large.More)
	}
	slow := do(t, m.Server, "run", `{"code":"x => { fold((a, i) => a + i, 0, range(200000)); x }","input":"CANARY","background":true}`)
	_ = json.Unmarshal(slow.Structured, &more) // where it isn't over at once it has the task's name
	for _, refuses := range []journal.Kind{"", journal.SessionLabelled} {
		if m.refuses = refuses; refuses != "" {
			m.start(mailRules + "]}")
		}
		cs := session(t, m.Server, nil)
		for what, ask := range map[string]func() (any, error){
			"tools/list":     func() (any, error) { return cs.ListTools(t.Context(), nil) },
			"prompts/list":   func() (any, error) { return cs.ListPrompts(t.Context(), nil) },
			"resources/list": func() (any, error) { return cs.ListResources(t.Context(), nil) },
			"prompts/get": func() (any, error) {
				return cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "asked", Arguments: map[string]string{"topic": "x"}})
			},
			"prompts/get wrong": func() (any, error) {
				return cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "asked"})
			},
			"a name that clients don't accept": func() (any, error) { return do(t, m.Server, "no name", `{}`), nil },
			"resources/read kept": func() (any, error) {
				return cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "pif://published/kept"})
			},
			"resources/read large": func() (any, error) {
				return cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: more.URI})
			},
			"prompts/get repair_tool": func() (any, error) {
				return cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "repair_tool", Arguments: map[string]string{"name": "told", "error": "it fails"}})
			},
			"prompts/get review_capabilities": func() (any, error) {
				return cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "review_capabilities", Arguments: map[string]string{"name": "told"}})
			},
			"resources/read told": func() (any, error) {
				return cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "pif://tools/told"})
			},
		} {
			unseenWords(t, m, what, canary, func() string {
				res, err := ask()
				text, _ := json.Marshal(res)
				if err != nil {
					text = append(text, err.Error()...)
				}
				return string(text)
			})
		}
		for _, call := range [][2]string{
			{"list", `{}`}, {"list", `{"detail":true}`}, {"describe", `{"name":"told"}`}, {"describe", `{"name":"caller"}`}, {"history", `{"name":"told"}`}, {"history", `{"name":"holds"}`}, {"run", `{"tool":"holds","input":"open/1"}`}, {"evolve", `{"name":"holds","code":"k => k + 1"}`},
			{"journal", `{"limit":1000}`}, {"help", `{"name":"told"}`},
			{"help", `{"search":"told"}`}, {"journal", `{}`}, {"journal", `{"kind":"tool.evolved"}`}, {"told", `{"mode":"x"}`}, {"told", `{"mode":"y"}`}, {"told", `{"mode":"z"}`},
			{"told", `{"mode":7}`}, {"told", `{}`}, {"run", `{"tool":"told","input":{"mode":"z"}}`}, {"run", `{"tool":"told","input":3}`}, {"run", `{"tool":"caller","input":{"mode":"z"}}`},
			{"run", `{"code":"r => @told(r)","input":{"mode":"y"}}`}, {"run", `{"code":"code_of(\"told\")"}`}, {"run", `{"plan":true,"tool":"told","input":{"mode":"y"}}`},
			{"evolve", `{"name":"told","edits":[{"find":"nothing","replace":"x"}]}`}, {"evolve", `{"name":"told","code":"r => r.mode ++"}`},
			{"evolve", `{"name":"told","from_version":1,"code":"r => 1","examples":[{"input":{"mode":"CANARx"},"expect":2}]}`},
			{"evolve", `{"name":"other","code":"r => @told({mode: 5})","capabilities":["call:told"]}`}, {"evolve", `{"name":"tries","code":"m => @told({mode: m})","capabilities":["call:told"],"examples":[{"input":"x","expect":0}]}`},
			{"evolve", `{"name":"tries","code":"m => @told({mode: m})","capabilities":["call:told"],"examples":[{"input":"y","expect":0}]}`},
			{"evolve", `{"name":"tries","code":"m => @told({mode: m})","capabilities":["call:told"],"examples":[{"input":"z","expect":0}]}`},
			{"evolve", `{"name":"other2","code":"r => @tolt(r)","capabilities":["call:told"]}`},
			{"history", `{"name":"told2","version":1}`}, {"journal", `{"kind":"plan"}`}, {"journal", `{"kind":"tool.refused"}`}, {"run", string(more.Next.Arguments)},
			{"run", `{"task":"` + more.Task + `"}`}, {"run", `{"task":"` + more.Task + `"}`}, {"retire", `{"name":"tolt"}`}, {"evolve", `{"name":"caller","code":"r => @told(r) ++ \"z\"","capabilities":["call:told"]}`},
			{"evolve", `{"name":"wraps","code":"r => @told(r)","capabilities":["call:told"]}`}, {"evolve", `{"name":"told2","from_version":1}`},
			{"evolve", `{"name":"keeps","code":"r => r"}`}, {"evolve", `{"name":"keeps","code":"r => r ?? 1"}`},
			{"evolve", `{"tools":[{"name":"keeps","code":"r => r ?? 2"},{"name":"beside","code":"r => @keeps(r)","capabilities":["call:keeps"]}]}`},
			{"evolve", `{"name":"keeps","from_version":1}`},
		} {
			unseenWords(t, m, call[0]+" "+call[1], canary, func() string {
				a := do(t, m.Server, call[0], call[1])
				return a.First() + strings.Join(a.More, " ") + string(a.Structured)
			})
		}
	}
}

func unseenWords(t *testing.T, m *mailbox, what, canary string, ask func() string) {
	t.Helper()
	must.NoError(t, m.broker.Session().Clear(nil))
	if text := ask(); strings.Contains(text, canary) && (m.label() != "mail" || m.refuses != "") {
		t.Errorf("%s shows words of a writer who had been shown the mail, and counts as nothing: %s", what, text)
	}
}

// TestMadeUnderUnread: where it can't be read what the model was shown, it was shown nothing.
func TestMadeUnderUnread(t *testing.T) {
	t.Parallel()
	m := newShown(t)
	succeed(t, m.Server, "evolve", `{"name":"told","code":"1","description":"CANARY"}`)
	cs := session(t, m.Server, nil)
	for _, hidden := range []bool{false, true} {
		if hidden {
			must.NoError(t, os.WriteFile(m.session, []byte("{"), 0o600))
		}
		tools, err := cs.ListTools(t.Context(), nil)
		must.NoError(t, err)
		text, list := wire.Encode(tools), do(t, m.Server, "list", `{}`).Text
		if strings.Contains(string(text), "CANARY") == hidden || strings.Contains(list, "CANARY") == hidden {
			t.Errorf("unread %v: %s\n%s", hidden, list, text)
		}
	}
}

// TestFlowCalled: what a tool says that was made under a label has that where another calls it by a name that data chose, also in a new conversation.
func TestFlowCalled(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, mailRules+"]}")
	m.evolve("read", `k => !toy.get(k)`)
	succeed(t, m.Server, "evolve", `{"name":"clean","code":"r => !toy.send({to: call(r.t, 1)})","capabilities":["toy:**","call:**"]}`)
	succeed(t, m.Server, "evolve", `{"name":"bob","code":"x => \"bob\""}`)
	succeed(t, m.Server, "run", `{"tool":"clean","input":{"t":"bob"}}`)
	succeed(t, m.Server, "run", `{"tool":"read","input":"mail/1"}`)
	succeed(t, m.Server, "evolve", `{"name":"eve","code":"x => \"eve@evil\""}`)
	must.NoError(t, m.broker.Session().Clear(nil))
	if a := do(t, m.Server, "run", `{"tool":"clean","input":{"t":"eve"}}`); len(m.sent) != 1 {
		t.Errorf("a recipient that a hijacked writer left in a tool gets mail: %s", a.Text)
	}
}

// TestFlowStepped: what a step of a run is given by the one before has the labels of all that came into that.
func TestFlowStepped(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, mailRules+"]}")
	m.evolve("steps", `x => if has(x, "to") then !toy.send({to: x.to}) else continue({to: get(!toy.get(x.read), "from", "ann")})`)
	const drive = `{"tool":"steps","drive":true,"input":{"read":"%s"}}`
	m.notes["open/2"] = &value.Record{}
	if a := do(t, m.Server, "run", fmt.Sprintf(drive, "mail/1")); a.Fault == nil || a.Fault.Kind != fault.Denied || len(m.sent) > 0 {
		t.Errorf("it sends %q: %s", m.sent, a.Text)
	}
	must.NoError(t, m.broker.Session().Clear(nil))
	if a := do(t, m.Server, "run", fmt.Sprintf(drive, "open/2")); a.Fault != nil || len(m.sent) != 1 {
		t.Errorf("it sends %q: %s", m.sent, a.Text)
	}
	// That there is another step tells of it, too.
	m = newMailbox(t, strings.Replace(mailRules, `"argument":"to",`, "", 1)+"]}")
	m.evolve("steps", `x => let _ = !toy.send({to: "ann"}) in if get(try(!toy.get("mail/1").text), "ok", "") == "pay me" then continue(x) else 0`)
	if a := do(t, m.Server, "run", fmt.Sprintf(drive, "")); a.Fault == nil || a.Fault.Kind != fault.Denied || len(m.sent) != 1 {
		t.Errorf("it sends %d: %.300s", len(m.sent), a.Text)
	}
}

// TestFlowLater: what was asked for by a model that had been shown a source has its label also where it is done in a new conversation, or by
// the next server: a plan, and a task.
func TestFlowLater(t *testing.T) {
	t.Parallel()
	rules := strings.Replace(mailRules, `"not_from":"mail"}`, `"not_from":"mail","else":"ask"}`, 1) + "]}"
	m := newMailbox(t, rules)
	m.evolve("read", `k => !toy.get(k)`)
	m.evolve("honest", `r => !toy.send({to: r})`)
	m.evolve("slow", `r => { fold((a, i) => a + i, 0, range(200000)); !toy.send({to: r}) }`)
	succeed(t, m.Server, "run", `{"tool":"read","input":"mail/1"}`)
	p := do(t, m.Server, "run", `{"tool":"honest","input":"eve@evil","plan":true}`)
	var made struct{ Plan, Task string }
	_ = json.Unmarshal(p.Structured, &made)
	_ = json.Unmarshal(do(t, m.Server, "run", `{"tool":"slow","input":"eve@evil","background":true}`).Structured, &made)
	must.NoError(t, m.broker.Session().Clear(nil))
	first := m.Server
	m.start(rules)
	for _, more := range []string{`,"fresh":false`, ""} {
		if a := do(t, m.Server, "run", `{"plan":"`+made.Plan+`"`+more+`}`); len(m.sent) > 0 {
			t.Errorf("a plan sends in a new conversation what a hijacked model passed: %s", a.Text)
		}
	}
	if made.Task != "" {
		a := wire.Answer{}
		wait.Until(t, "the end of the task", func() bool {
			a = do(t, first, "run", `{"task":"`+made.Task+`"}`)
			return a.Fault != nil || !strings.Contains(string(a.Structured), `"status":"working"`)
		})
		if a.Fault == nil || a.Fault.Kind != fault.Denied || len(m.sent) > 0 {
			t.Errorf("a task sends in a new conversation what a hijacked model passed: %s", a.Text)
		}
	}
}

// TestFlowNames: an argument is guarded whose name has what separates names in paths.
func TestFlowNames(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, strings.Replace(mailRules, `"to","not_from"`, `"cc.0","not_from"`, 1)+"]}")
	succeed(t, m.Server, "evolve", `{"name":"it","code":"k => !toy.send({to: k, \"cc.0\": !toy.get(k).from})","capabilities":["toy:**"],"draft":true}`)
	if a := do(t, m.Server, "run", `{"tool":"it","input":"mail/1"}`); len(m.sent) > 0 {
		t.Errorf("a copy goes to whom a mail says: %s", a.Text)
	}
}

// TestFlowLaundry: no store keeps what is read from it without its label: not by a source of what is written there alone, nor
// by moving it while the label comes in.
func TestFlowLaundry(t *testing.T) {
	t.Parallel()
	known, err := caps.NewKinds(mailKind)
	must.NoError(t, err)
	c, err := flow.ParseConfig([]byte(strings.Replace(mailRules, `"sources":[`, `"sources":[{"of":"toy.put:open/**","label":"mail"},`, 1) + "]}"))
	must.NoError(t, err)
	if _, err := flow.Compile(c, known, nil); err == nil {
		t.Error("a source is about what is put there alone")
	}
	m := newMailbox(t, mailRules+`,{"to":"toy.put:open/**","not_from":"mail","else":"taint"}],"session":"ignore"}`)
	m.evolve("copy", `k => !toy.put({key: k, value: !toy.get("mail/1").from})`)
	m.evolve("move", `k => !toy.move({key: k, to: "other/1"})`)
	m.evolve("sends", `k => !toy.send({to: !toy.get(k)})`)
	m.moving = func() {
		succeed(t, m.Server, "run", `{"tool":"copy","input":"open/1"}`)
		if a := do(t, m.Server, "run", `{"tool":"sends","input":"other/1"}`); len(m.sent) > 0 {
			t.Errorf("what was moved while it took a label on is sent without that: %s", a.Text)
		}
	}
	succeed(t, m.Server, "run", `{"tool":"move","input":"open/1"}`)
}

// TestShownPlaces: a denial says which request gave what it is about only where nothing else came in that rules are about,
// since the number would tell of that.
func TestShownPlaces(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"alone":  `u => !toy.send({to: (!toy.get("mail/1")).from, text: "x"})`,
		"behind": `u => let o = !toy.get("open/1"), p = !toy.get("mail/1") in !toy.send({to: p.from, text: "x"})`,
	} {
		m := newMailbox(t, `{"sources":[{"of":"toy.get:mail/**","label":"mail"},{"of":"toy.get:open/**","label":"open"}],
			"rules":[{"to":"toy.send","argument":"to","not_from":"mail"},{"to":"toy.send","argument":"text","not_from":"open"}]}`)
		m.evolve(name, code)
		r := do(t, m.Server, "run", `{"tool":"`+name+`","input":null}`)
		if told := strings.Contains(r.Text, "of this run)"); r.Fault == nil || told != (name == "alone") {
			t.Errorf("%s: %s", name, r.Text)
		}
	}
}

// TestFlowPaths: a model isn't told where on the host a store is that took on a label.
func TestFlowPaths(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, `{"sources":[{"of":"toy.get:web/**","label":"web"}],"rules":[{"to":"toy.put:mail/**","not_from":"web","else":"taint"}]}`)
	m.notes["web/1"] = value.Str("x")
	m.evolve("moves", `k => !toy.put({key: "mail/9", value: !toy.get("web/1")})`)
	succeed(t, m.Server, "run", `{"tool":"moves","input":1}`)
	a := succeed(t, m.Server, "journal", `{"kind":"store.tainted"}`)
	if text := string(a.Structured); !strings.Contains(text, "store.tainted") || strings.Contains(text, `"store":`) {
		t.Errorf("the journal shows %s", text)
	}
}

// TestMadeUnderRenamed: what was made under a label that the policy no longer names counts as clean.
func TestMadeUnderRenamed(t *testing.T) {
	t.Parallel()
	m := newShown(t)
	succeed(t, m.Server, "evolve", `{"name":"told","code":"1","description":"CANARY"}`)
	m.start(strings.ReplaceAll(mailRules, `"mail"`, `"post"`) + "]}")
	if a := succeed(t, m.Server, "list", `{}`); !strings.Contains(string(a.Structured), "CANARY") {
		t.Errorf("the list is %s", a.Structured)
	}
}
