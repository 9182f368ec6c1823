package node

import (
	"context"
	"encoding/json"
	"time"
)

func init() { maxEnded, maxAllEnded = 20, 60 }

// Hold keeps what is decided from the files until release is called.
func (n *Node) Hold() (release func()) {
	n.projecting.Lock()
	return n.projecting.Unlock
}

// Empty has nothing be left of a rate, as a node does it whose clock is ahead.
func (n *Node) Empty(key string, calls int64, per, ahead time.Duration) error {
	content, err := json.Marshal(bucket{0, time.Now().UTC().Add(ahead)})
	if err != nil {
		return err
	}
	return n.write(bucketName(key, calls, per), 1, 0, content)
}

// Settled returns up to which place the node reported that it has all, and where files that are new begin.
func (n *Node) Settled() (reported, origin uint64, err error) {
	all, err := n.reported()
	n.mu.Lock()
	defer n.mu.Unlock()
	return all[n.o.Name].Place, n.origin.Place, err
}

// Trim has the order forget what every node has.
func (n *Node) Trim(ctx context.Context) error { return n.trim(ctx) }

// LongAgo has it be a day since this node heard of a report.
func (n *Node) LongAgo(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.docs[reports+name]
	d.learned = d.learned.Add(-farewell)
	n.docs[reports+name] = d
}
