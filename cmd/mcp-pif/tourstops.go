package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stops is the tour, place by place.
var stops = []struct {
	title string
	visit func(*guide) error
}{
	{"A client that connects finds four tools.", func(g *guide) error {
		list, err := g.session.ListTools(g.ctx, nil)
		if err != nil {
			return err
		}
		found := toolNames(list)
		g.say("  ← %s", strings.Join(found, ", "))
		if !slices.Equal(found, []string{"evolve", "help", "list", "run"}) {
			return fmt.Errorf("expected evolve, help, list and run")
		}
		return nil
	}},
	{"It evaluates a term: code is JSON, numbers are exact.", func(g *guide) error {
		return g.gives("run", `{"code":{"mul":[4294967296,4294967296]}}`, "18446744073709551616")
	}},
	{"It makes a tool of its own, and calls it. self is the tool itself.", func(g *guide) error {
		if err := g.makes(`{"name":"factorial","description":"n!","code":{"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},1]},"then":1,"else":{"mul":[{"var":"n"},{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}]}}}}}`); err != nil {
			return err
		}
		return g.gives("factorial", `{"input":25}`, "15511210043330985984000000")
	}},
	{"The same language has a text form, a library, records and exact decimals.", func(g *guide) error {
		if err := g.makes(`{"name":"invoice","description":"totals by customer","code":"lines => group(l => l.customer, lines) |> entries |> map(e => (fst(e), sum(map(l => l.price * l.count, snd(e)))))"}`); err != nil {
			return err
		}
		return g.gives("run", `{"tool":"invoice","input":[{"customer":"ada","price":{"dec":"1.10"},"count":3},{"customer":"bob","price":{"dec":"0.20"},"count":5},{"customer":"ada","price":{"dec":"0.05"},"count":2}]}`, `[{"pair":["ada",{"dec":"3.40"}]},{"pair":["bob",{"dec":"1.00"}]}]`)
	}},
	{"The tool is on the client's list now, and on the server's.", func(g *guide) error {
		list, err := g.session.ListTools(g.ctx, nil)
		if err != nil {
			return err
		}
		found := toolNames(list)
		g.say("  ← %s", strings.Join(found, ", "))
		if !slices.Contains(found, "factorial") {
			return fmt.Errorf("expected factorial among them")
		}
		r, err := g.call("list", `{}`)
		if err == nil && !strings.Contains(r.text, `"factorial"`) {
			err = fmt.Errorf("expected factorial, got %s", r.text)
		}
		return err
	}},
	{"A mistake is answered in words that suffice to mend it.", func(g *guide) error {
		if err := g.fails("evolve", `{"name":"cube","code":{"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"},{"var":"n"}]}}}`, "parse_error", "/body"); err != nil {
			return err
		}
		if err := g.makes(`{"name":"cube","code":{"lam":"n","body":{"mul":[{"var":"n"},{"mul":[{"var":"n"},{"var":"n"}]}]}}}`); err != nil {
			return err
		}
		return g.gives("run", `{"tool":"cube","input":3}`, "27")
	}},
	{"A program that never ends is stopped by its budget, and nothing else notices.", func(g *guide) error {
		return g.fails("run", `{"code":{"app":{"func":{"lam":"x","body":{"app":{"func":{"var":"x"},"arg":{"var":"x"}}}},"arg":{"lam":"x","body":{"app":{"func":{"var":"x"},"arg":{"var":"x"}}}}}},"steps":1000000}`, "out_of_fuel")
	}},
	{"A tool may hand its next step back; the answer holds the exact call to make, or drive takes every step.", func(g *guide) error {
		if err := g.makes(`{"name":"countdown","description":"counts a pair (n, sum) down","code":{"lam":"p","body":{"if":{"cond":{"lte":[{"fst":{"var":"p"}},0]},"then":{"snd":{"var":"p"}},"else":{"continue":{"input":{"pair":[{"sub":[{"fst":{"var":"p"}},1]},{"add":[{"fst":{"var":"p"}},{"snd":{"var":"p"}}]}]}}}}}}}`); err != nil {
			return err
		}
		r, err := g.call("run", `{"tool":"countdown","input":{"pair":[100,0]}}`)
		if err != nil {
			return err
		}
		if r.failed || !strings.Contains(r.text, "continuation") {
			return fmt.Errorf("expected a continuation, got %s", r.text)
		}
		g.say("    next: %s", r.field("next"))
		if !strings.Contains(r.field("next"), `"countdown"`) {
			return fmt.Errorf("expected the next call, got %s", r.field("next"))
		}
		return g.gives("run", `{"tool":"countdown","input":{"pair":[100,0]},"drive":true}`, "5050")
	}},
	{"A tool that would act on the world is refused: nothing was granted.", func(g *guide) error {
		return g.fails("evolve", `{"name":"peek","code":{"lam":"path","body":{"fs.read":{"var":"path"}}}}`, "refused", "fs.read")
	}},
	{"help explains every operation.", func(g *guide) error {
		r, err := g.session.CallTool(g.ctx, &mcp.CallToolParams{Name: "help", Arguments: map[string]any{"name": "fold"}})
		if err != nil {
			return err
		}
		text, ok := r.Content[0].(*mcp.TextContent)
		if !ok || r.IsError || !strings.Contains(text.Text, "fold") {
			return fmt.Errorf("expected an explanation of fold")
		}
		g.say(`  → help {"name":"fold"}`)
		g.say("  ← %s", strings.ReplaceAll(text.Text, "\n", "\n    "))
		return nil
	}},
}

func toolNames(list *mcp.ListToolsResult) []string {
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}
