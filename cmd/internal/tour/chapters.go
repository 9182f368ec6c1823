package tour

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// chapters is the tour. Lines with ▸ are calls of a model's, → and ✗ the answers.
var chapters = []chapter{
	{"It computes", []string{}, func(g *guide) error {
		g.tell("The server as a client starts it; ▸ is a model's call, → the answer.")
		if err := g.runs("pow(2, 100) + 1", "1267650600228229401496703205377"); err != nil {
			return err
		}
		if err := g.runs("0.1 + 0.2", "0.3"); err != nil {
			return err
		}
		g.tell("A model makes a tool. Its type and cost are known before it runs.")
		if err := g.evolves("invoice", "lines => lines\n  |> group(l => l.customer)\n  |> map_values(ls => ls |> map(l => l.price * l.count) |> sum)", map[string]any{
			"description": "totals by customer",
			"examples": []any{map[string]any{
				"input": []any{map[string]any{"customer": "ada", "price": json.Number("1.10"), "count": 3}}, "expect": map[string]any{"ada": json.Number("3.30")},
			}},
		}); err != nil {
			return err
		}
		list, err := g.session.ListTools(g.ctx, nil)
		if err != nil {
			return err
		}
		if names := toolNames(list); !slices.Contains(names, "invoice") {
			return fmt.Errorf("expected invoice among %q", names)
		}
		g.tell("From now on it is on the client's list, and called by its name.")
		lines := json.RawMessage(`[{"customer":"ada","price":1.10,"count":3},{"customer":"bob","price":0.20,"count":5},{"customer":"ada","price":0.05,"count":2}]`)
		return g.gives("invoice", map[string]any{"lines": lines}, "invoice  "+string(lines), `{"ada":3.40,"bob":1.00}`)
	}, "run '0.1 + 0.2'"},
	{"It explains mistakes", nil, func(g *guide) error {
		g.tell("An error says where, why, and what to write.")
		if err := g.fails("run", map[string]any{"code": "lenght([1, 2, 3])"}, "run  lenght([1, 2, 3])", 2, "unbound", "length"); err != nil {
			return err
		}
		g.tell("A tool that would fail each time isn't made.")
		label := `price => if price > 99 then "dear" else price * "1.2"`
		if err := g.fails("evolve", map[string]any{"name": "label", "code": label}, "evolve  label =\n  "+label, 4, "refused", "mul takes a number"); err != nil {
			return err
		}
		g.tell("An example that a new version breaks isn't forgotten.")
		if err := g.evolves("spread", "xs => max(xs) - min(xs)", map[string]any{"examples": []any{map[string]any{"input": []int{2, 7, 4}, "expect": 5}}}); err != nil {
			return err
		}
		return g.fails("evolve", map[string]any{"name": "spread", "code": "xs => max(xs)"}, "evolve  spread = xs => max(xs)", 3, "refused", "example 1")
	}, "check 'xs => lenght(xs)'"},
	{"It can't run away", nil, func(g *guide) error {
		g.tell("Steps, memory and depth have budgets: beyond one a program ends with a reason.")
		endless := "let spin = n => spin(n + 1) in spin(0)"
		if err := g.fails("run", map[string]any{"code": endless}, "run  "+endless, 1, "out_of_fuel"); err != nil {
			return err
		}
		doubled := `fold((s, n) => s ++ s, "x", range(0, 100))`
		if err := g.fails("run", map[string]any{"code": doubled}, "run  "+doubled, 1, "out_of_memory"); err != nil {
			return err
		}
		g.tell("The server goes on. Nothing was granted, so nothing can be touched.")
		if err := g.runs("1 + 1", "2"); err != nil {
			return err
		}
		return g.fails("run", map[string]any{"code": `!fs.read("/etc/passwd")`}, `run  !fs.read("/etc/passwd")`, 2, "denied")
	}, "run --steps 1000 'let spin = n => spin(n + 1) in spin(0)'"},
	{"It asks before it acts", []string{"--cap", "fs.read:./sandbox", "--ask", "fs.write:./sandbox", "--ask-via=elicitation"}, func(g *guide) error {
		g.tell("Now the operator grants reading a folder. A tool that writes there has to ask.")
		code := "r => let lines = split(trim(!fs.read(r.from)), \"\\n\")\n     !fs.write({path: r.to, content: join(sort(lines), \"\\n\")}).bytes"
		if err := g.evolves("sort_file", code, map[string]any{"capabilities": []string{"fs.read:./sandbox", "fs.write:./sandbox"}, "description": "sorts the lines of a file"}); err != nil {
			return err
		}
		input := json.RawMessage(`{"from":"numbers.txt","to":"sorted.txt"}`)
		shown := "sort_file  " + string(input)
		if g.refused {
			g.tell("You said no: it can't write.")
			if err := g.fails("run", map[string]any{"tool": "sort_file", "input": input}, shown, 1, "denied", "said no"); err != nil {
				return err
			}
		} else {
			if err := g.gives("run", map[string]any{"tool": "sort_file", "input": input}, shown, "5"); err != nil {
				return err
			}
			written, err := os.ReadFile(filepath.Join(g.dir, "sandbox", "sorted.txt"))
			if err != nil || string(written) != "1\n2\n3" {
				return fmt.Errorf("expected the sorted lines in sorted.txt, got %q, %v", written, err)
			}
			g.say("    sandbox/sorted.txt has %q", written)
		}
		g.tell("It can't leave the folder.")
		outside := json.RawMessage(`{"from":"../tools.db","to":"x"}`)
		return g.fails("run", map[string]any{"tool": "sort_file", "input": outside}, "sort_file  "+string(outside), 1, "denied")
	}, "caps explain 'p => !fs.read(p)'"},
	{"It remembers", nil, func(g *guide) error {
		g.tell("Each request is recorded before it is performed, each answer before it is used.")
		if err := g.command([]string{"journal", "tail", "--kind", "effect", "-n", "5"}, 5, "fs.read", "fs.write", "effect.denied"); err != nil {
			return err
		}
		g.tell("A run is done again from the record alone: the file that it read is deleted.")
		run, err := g.runOf("sort_file")
		if err == nil {
			err = os.Remove(filepath.Join(g.dir, "sandbox", "numbers.txt"))
		}
		if err != nil {
			return err
		}
		replay, want := []string{"replay", run}, "5"
		if g.refused {
			replay, want = append(replay, "--json"), "identical"
		}
		if err := g.command(replay, 4, want); err != nil {
			return err
		}
		g.tell("Each version is kept, and a change to the record is found.")
		if err := g.evolves("spread", "xs => if isEmpty(xs) then 0 else max(xs) - min(xs)", nil); err != nil {
			return err
		}
		if err := g.command([]string{"tools", "rollback", "spread", "1"}, 1, "as version 3"); err != nil {
			return err
		}
		return g.command([]string{"journal", "verify"}, 2, "\nok\n")
	}, "repl --store tour.db, then mcp-pif journal runs --store tour.db"},
	{"It joins your other MCP servers", nil, func(g *guide) error {
		g.tell("Another server is added once: each of its tools is recorded as it is now.")
		shop, err := os.Executable()
		if err != nil {
			return fmt.Errorf("finding this program: %w", err)
		}
		if err := g.command([]string{"mcp", "add", "shop", "--yes", "--accept", "--sandbox=" + tourSandbox(), "--", shop, ServerArgument}, 1, "list_orders", "added shop"); err != nil {
			return err
		}
		if err := g.connect("--cap", "shop,ro"); err != nil {
			return err
		}
		g.tell("One program reads all pages, joins and sums. Only the result comes back.")
		code := `least =>
  let pages = n =>
    let p = !shop.list_orders({page: n}).data
    p.next == 0 ? p.orders : [...p.orders, ...pages(p.next)]
  pages(1) |> filter(o => o.cents >= least) |> group(o => o.customer) |> entries
    |> map((id, os) => {city: !shop.get_customer({id: id}).data.city, cents: sum(map(o => o.cents, os))})`
		if err := g.evolves("by_city", code, map[string]any{"capabilities": []string{"shop"}}); err != nil {
			return err
		}
		if err := g.gives("by_city", map[string]any{"least": 800}, "by_city  800",
			`[{"cents":7184,"city":"London"},{"cents":6237,"city":"Oslo"},{"cents":6286,"city":"London"},{"cents":6335,"city":"Rome"}]`); err != nil {
			return err
		}
		g.tell("The 200 orders never reached the model. What isn't harmless isn't granted.")
		return g.fails("evolve", map[string]any{"name": "wipe", "code": "id => !shop.delete_order({id: id})", "capabilities": []string{"shop"}},
			"evolve  wipe = id => !shop.delete_order({id: id})", 1, "refused")
	}, "mcp add --help"},
}

// tourSandbox is how the tour has the system hold plugins: as well as it can.
func tourSandbox() string {
	if host.System().Holds() {
		return "require"
	}
	return "best-effort"
}

// runOf returns the journal's name of the first run of a tool.
func (g *guide) runOf(tool string) (string, error) {
	r, err := g.call("journal", map[string]any{"kind": "run.started"})
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
	for _, e := range events {
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

// ServerArgument is the first argument of this program when it is the MCP server
// that the tour puts behind it: a shop with orders and customers.
const ServerArgument = "__tour_shop"

type (
	orderPage struct {
		Page int `json:"page" jsonschema:"from 1 on"`
	}
	order struct {
		ID       int    `json:"id"`
		Customer string `json:"customer"`
		Cents    int    `json:"cents"`
		Note     string `json:"note"`
	}
	orders struct {
		Orders []order `json:"orders"`
		Next   int     `json:"next" jsonschema:"the next page; 0: there is none"`
	}
	customerID struct {
		ID string `json:"id"`
	}
	customer struct {
		Name string `json:"name"`
		City string `json:"city"`
	}
)

// shopOrders are how many orders the shop has, and how many a page has.
const shopOrders, pageOrders = 200, 50

// Serve is this program as the tour's shop.
func Serve() int {
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1.0.0"}, nil)
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(server, &mcp.Tool{Name: "list_orders", Description: "Lists orders, a page at a time.", Annotations: reads},
		func(_ context.Context, _ *mcp.CallToolRequest, p orderPage) (*mcp.CallToolResult, orders, error) {
			out := orders{Orders: []order{}}
			day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for id := max(0, p.Page-1) * pageOrders; id < shopOrders && id < p.Page*pageOrders; id++ {
				out.Orders = append(out.Orders, order{id, fmt.Sprintf("c%d", id%4), 100 + id*7%900, "ordered on " + day.AddDate(0, 0, id).Format(time.DateOnly) + ", to be wrapped as a gift"})
			}
			if p.Page*pageOrders < shopOrders {
				out.Next = p.Page + 1
			}
			return nil, out, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "get_customer", Description: "Gives a customer by the id.", Annotations: reads},
		func(_ context.Context, _ *mcp.CallToolRequest, c customerID) (*mcp.CallToolResult, customer, error) {
			known := map[string]customer{"c0": {"Ada", "London"}, "c1": {"Bob", "Oslo"}, "c2": {"Cy", "London"}, "c3": {"Di", "Rome"}}
			found, ok := known[c.ID]
			if !ok {
				return nil, found, fmt.Errorf("there is no customer %s", c.ID)
			}
			return nil, found, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "delete_order", Description: "Deletes an order."},
		func(context.Context, *mcp.CallToolRequest, order) (*mcp.CallToolResult, any, error) {
			return nil, nil, fmt.Errorf("nothing is deleted in a tour")
		})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return cli.StatusFailed
	}
	return 0
}
