package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/lease"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// A rate holds for all nodes together: what is left of it is a document of the cluster's
// authority, from which a node takes some tokens at a time. Two that take at once have one
// refused, which tries again. What a node takes and doesn't use is lost.

// rated begins the names of those documents.
const rated = "rate/"

// A bucket is what is left of a rate: it is full at first and fills as time goes by. That is
// what a node measures since it has had the bucket, or its clock shows: the time, which
// never goes back, is that of the clock most ahead, and who is behind isn't kept waiting.
type bucket struct {
	Tokens float64   `json:"tokens"`
	Time   time.Time `json:"time"`
}

// A pool is the tokens of a rate that a node has.
type pool struct {
	mu    sync.Mutex
	n     int64
	until lease.Time
}

// Take takes one of a rate of so many calls in a time, which has a key on all nodes. A model
// sees its error.
func (n *Node) Take(ctx context.Context, key string, calls int64, per time.Duration) error {
	if n.o.Own {
		return nil // the process counts
	}
	name := bucketName(key, calls, per)
	n.mu.Lock()
	p := n.pools[name]
	if p == nil {
		p = new(pool)
		n.pools[name] = p
	}
	n.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n == 0 || p.until.Over() {
		p.n = 0
		got, err := n.takeSome(ctx, name, calls, per)
		if err != nil {
			return err
		}
		p.n, p.until = got, lease.Now().Add(2*Lease)
	}
	p.n--
	return nil
}

func bucketName(key string, calls int64, per time.Duration) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d/%d", key, calls, per))
	return rated + hex.EncodeToString(sum[:12])
}

// takeSome takes what the rate gives in a second, at most a tenth of it, and at least one.
func (n *Node) takeSome(ctx context.Context, name string, calls int64, per time.Duration) (some int64, err error) {
	for {
		docs, at, err := n.documents()
		if err != nil {
			return 0, err
		}
		now := time.Now().UTC()
		d, known := docs[name]
		b := bucket{float64(calls), now}
		if known {
			if err := json.Unmarshal(d.Content, &b); err != nil {
				return 0, err
			}
		}
		if known {
			passed := max(now.Sub(b.Time), lease.Since(d.learned))
			b.Tokens, b.Time = min(float64(calls), b.Tokens+float64(passed)*float64(calls)/float64(per)), b.Time.Add(passed)
		}
		if b.Tokens < 1 {
			next := time.Duration((1 - b.Tokens) * float64(per) / float64(calls))
			return 0, fmt.Errorf("all nodes of the cluster together have done it as often as the operator allows; the next is in %s", next.Round(time.Millisecond))
		}
		some = max(1, min(int64(b.Tokens), calls/10, int64(float64(calls)*float64(time.Second)/float64(per))))
		b.Tokens -= float64(some)
		content, _ := json.Marshal(b) // numbers that are finite
		switch err = n.write(name, d.Version+1, at[name], content); {
		case err == nil:
			return some, nil
		case !errors.Is(err, statefile.ErrMoved):
			n.o.Log.Error("the cluster's rate can't be counted", "error", err)
			return 0, errors.New("how often the nodes of the cluster have done it can't be counted now")
		case ctx.Err() != nil:
			return 0, ctx.Err()
		}
	}
}
