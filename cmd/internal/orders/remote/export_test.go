package remote

import (
	"io"

	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	orderv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/order/v1"
)

// Through gives access to an order by what calls its processes.
func Through(processes ...orderv1.OrderClient) order.Order {
	c := newClient(nil)
	for _, p := range processes {
		c.targets = append(c.targets, target{conn: io.NopCloser(nil), service: p})
	}
	return order.Share(c)
}

// Service is what a process does that is called.
func Service(o order.Order) orderv1.OrderServer { return &service{order: o} }
