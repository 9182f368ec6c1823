// Package orderv1 is the contract between a node of a cluster and the process that
// keeps the cluster's order, first major version: the Go code generated from
// order.proto, which is its documentation too.
//
// cmd/internal/orders/remote speaks it for a node (order://HOST:PORT,…), cmd/mcp-pif-order serves it from
// JetStream. See caps/journal/order for what an order promises.
package orderv1

//go:generate go run ../../../internal/gen mcppif/order/v1/order.proto
