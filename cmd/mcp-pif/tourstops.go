package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stops is the tour, place by place, of a server that grants nothing.
var stops = []stop{
	{"A client that connects finds eight tools.", func(g *guide) error {
		list, err := g.session.ListTools(g.ctx, nil)
		if err != nil {
			return err
		}
		found := toolNames(list)
		g.say("  ← %s", strings.Join(found, ", "))
		if !slices.Equal(found, []string{"evolve", "run", "list", "help", "describe", "history", "journal", "retire"}) {
			return fmt.Errorf("expected evolve, run, list, help, describe, history, journal and retire")
		}
		return nil
	}},
	{"It evaluates a term: code is JSON, numbers are exact.", func(g *guide) error {
		return g.gives("run", `{"code":{"mul":[4294967296,4294967296]}}`, "18446744073709551616")
	}},
	{"It makes a tool, and calls it. self is the tool itself.", func(g *guide) error {
		if err := g.makes(`{"name":"factorial","description":"n!","code":{"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},1]},"then":1,"else":{"mul":[{"var":"n"},{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}]}}}}}`); err != nil {
			return err
		}
		return g.gives("factorial", `{"input":25}`, "15511210043330985984000000")
	}},
	{"The same language has a text form, a library, records and exact decimals.", func(g *guide) error {
		if err := g.makes(`{"name":"invoice","description":"totals by customer","code":"lines => group(l => l.customer, lines) |> entries |> map(e => (fst(e), sum(map(l => l.price * l.count, snd(e)))))"}`); err != nil {
			return err
		}
		return g.gives("run", `{"tool":"invoice","input":[{"customer":"ada","price":1.10,"count":3},{"customer":"bob","price":0.20,"count":5},{"customer":"ada","price":0.05,"count":2}]}`, `[{"pair":["ada",3.40]},{"pair":["bob",1.00]}]`)
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
	{"Errors say how to fix them.", func(g *guide) error {
		if err := g.fails("evolve", `{"name":"cube","code":{"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"},{"var":"n"}]}}}`, "parse_error", "/body"); err != nil {
			return err
		}
		if err := g.makes(`{"name":"cube","code":{"lam":"n","body":{"mul":[{"var":"n"},{"mul":[{"var":"n"},{"var":"n"}]}]}}}`); err != nil {
			return err
		}
		return g.gives("run", `{"tool":"cube","input":3}`, "27")
	}},
	{"Before a tool runs, its type and cost are known, and whether an equivalent tool exists.", func(g *guide) error {
		r, err := g.call("evolve", `{"name":"total","description":"the sum of the squares","code":"xs => sum(map(x => x * x, xs))","strict":true}`)
		if err != nil {
			return err
		}
		if err := g.told(r, map[string]string{"type": `"(list[num]) -> num"`, "cost": "linear"}); err != nil {
			return err
		}
		if r, err = g.call("evolve", `{"name":"third_power","code":"side => side * (side * side)"}`); err != nil {
			return err
		}
		if err := g.told(r, map[string]string{"notes": "cube@1"}); err != nil {
			return err
		}
		return g.fails("evolve", `{"name":"half","code":"x => if x > 10 then x / 2 else \"small\" + x"}`, "refused", "fails each time")
	}},
	{"An infinite loop is stopped by its step budget; nothing else is affected.", func(g *guide) error {
		return g.fails("run", `{"code":{"app":{"func":{"lam":"x","body":{"app":{"func":{"var":"x"},"arg":{"var":"x"}}}},"arg":{"lam":"x","body":{"app":{"func":{"var":"x"},"arg":{"var":"x"}}}}}},"steps":1000000}`, "out_of_fuel")
	}},
	{"A long job can return after each step: repeat the call it hands back, or pass drive to run all steps.", func(g *guide) error {
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
	{"A tool that needs a file is refused, since nothing was granted. The answer names the flag that grants it.", func(g *guide) error {
		return g.fails("evolve", `{"name":"peek","code":"path => !fs.read({path: path})","capabilities":["fs.read:./sandbox"]}`, "refused", "--cap")
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

// grantedStops is the rest of it, of a server that grants a folder.
var grantedStops = []stop{
	{"The server is another process, and has the tools that the first one made.", func(g *guide) error {
		return g.gives("factorial", `{"input":5}`, "120")
	}},
	{"Examples are tests: a later version that breaks them is refused, and nothing changes.", func(g *guide) error {
		if err := g.makes(`{"name":"cube","code":"n => n * n * n","description":"the third power","examples":[{"input":3,"expect":27}]}`); err != nil {
			return err
		}
		if err := g.fails("evolve", `{"name":"cube","code":"n => n * n"}`, "refused", "example 1", "27"); err != nil {
			return err
		}
		return g.gives("cube", `{"input":3}`, "27")
	}},
	{"The same tool is accepted now: it declares what the operator granted.", func(g *guide) error {
		if err := g.makes(`{"name":"peek","code":"path => !fs.read({path: path})","capabilities":["fs.read:./sandbox"]}`); err != nil {
			return err
		}
		return g.gives("peek", `{"input":"numbers.txt"}`, `"3\n1\n2\n"`)
	}},
	{"A tool reads a file, sorts its lines and writes another.", func(g *guide) error {
		if err := g.makes(`{"name":"sort_file","description":"sorts the lines of one file into another","capabilities":["fs.read,write:./sandbox"],` +
			`"code":"r => let lines = filter(l => length(l) > 0, split(!fs.read({path: r.from}), \"\\n\")) in !fs.write({path: r.to, content: join(sort(lines), \"\\n\")}).bytes"}`); err != nil {
			return err
		}
		if err := g.gives("run", `{"tool":"sort_file","input":{"from":"numbers.txt","to":"sorted.txt"}}`, "5"); err != nil {
			return err
		}
		written, err := os.ReadFile(filepath.Join(g.dir, "sandbox", "sorted.txt"))
		if err != nil || string(written) != "1\n2\n3" {
			return fmt.Errorf("expected the sorted lines in sorted.txt, got %q, %v", written, err)
		}
		g.say("  sandbox/sorted.txt holds %q", written)
		return nil
	}},
	{"It can't leave the granted folder, do what it didn't declare, or lend its permissions to inline code.", func(g *guide) error {
		if err := g.fails("peek", `{"input":"../secret.txt"}`, "denied"); err != nil {
			return err
		}
		if err := g.fails("evolve", `{"name":"wipe","code":"path => !fs.remove({path: path})","capabilities":["fs.read:./sandbox"]}`, "refused", "fs.remove"); err != nil {
			return err
		}
		return g.fails("run", `{"code":"!fs.read({path: \"numbers.txt\"})"}`, "denied")
	}},
	{"The journal has every request, decision and result.", func(g *guide) error {
		r, err := g.call("journal", `{"kind":"effect"}`)
		if err != nil {
			return err
		}
		var events []struct {
			Seq  int
			Kind string
			Data struct {
				Op, Capability string
				Error          struct{ Kind string }
			}
		}
		if err := json.Unmarshal(r.data["events"], &events); err != nil {
			return fmt.Errorf("the journal's events: %w", err)
		}
		seen := map[string]int{}
		for _, e := range events {
			seen[e.Kind+" "+e.Data.Op]++
			g.say("    %3d %-16s %-8s %s%s", e.Seq, e.Kind, e.Data.Op, e.Data.Capability, e.Data.Error.Kind)
		}
		if seen["effect.requested fs.read"] != 2 || seen["effect.requested fs.write"] != 1 || seen["effect.denied fs.read"] != 2 || seen["effect.outcome "] != 3 {
			return fmt.Errorf("the journal has other effects than were asked for: %v", seen)
		}
		return nil
	}},
	{"Every version is kept. The operator rolls back to one while the server runs.", func(g *guide) error {
		if err := g.prints([]string{"tools", "rollback", "cube", "1"}, "as version 3"); err != nil {
			return err
		}
		if err := g.prints([]string{"tools", "history", "cube"}, "rolled back to 1"); err != nil {
			return err
		}
		return g.gives("cube", `{"input":2}`, "8")
	}},
	{"Any run can be replayed from the journal alone: the file that it read is deleted by now.", func(g *guide) error {
		run, err := g.runOf("sort_file")
		if err == nil {
			err = os.Remove(filepath.Join(g.dir, "sandbox", "numbers.txt"))
		}
		if err != nil {
			return err
		}
		return g.prints([]string{"replay", run}, "5")
	}},
	{"Tampering with the journal is detected.", func(g *guide) error {
		return g.prints([]string{"journal", "verify"}, "\nok\n")
	}},
}

// runOf is what the journal calls the last run of a tool.
func (g *guide) runOf(tool string) (string, error) {
	r, err := g.call("journal", `{"kind":"run.started"}`)
	if err != nil {
		return "", err
	}
	var events []struct {
		Run  string
		Data struct{ Tool string }
	}
	if err := json.Unmarshal(r.data["events"], &events); err != nil {
		return "", fmt.Errorf("the journal's events: %w", err)
	}
	for _, e := range slices.Backward(events) {
		if e.Data.Tool == tool {
			return e.Run, nil
		}
	}
	return "", fmt.Errorf("the journal has no run of %s", tool)
}

func toolNames(list *mcp.ListToolsResult) []string {
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	return names
}
