package tour

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

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
