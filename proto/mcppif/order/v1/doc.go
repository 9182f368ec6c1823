// Package orderv1 is the contract between a node of a cluster and the process that
// keeps the cluster's order, first major version: the Go code generated from
// order.proto, which is its documentation too.
//
// cmd/internal/orders/remote has both sides: a node's access (order://HOST:PORT,…), and the
// service, which cmd/mcp-pif-order starts for an order in JetStream. See caps/journal/order
// for what an order promises.
package orderv1

//go:generate go run ../../../internal/gen mcppif/order/v1/order.proto
