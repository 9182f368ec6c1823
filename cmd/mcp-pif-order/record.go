package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcp-pif/mcp-pif/caps/journal/order"
)

// A record has the last place that this process acknowledged, and what is there, in a file
// beside the engine's, which is on the disk before the answer is given. An engine whose
// files were cut goes on from where they end without a word; the record tells.
type record struct {
	file *os.File // nil: it lasts as long as the process

	mu        sync.Mutex
	told      *sync.Cond
	last      noted // of all
	saved     noted
	saving    bool
	alternate int64 // which half of the file is written next
}

// A noted is a place of the order with that identity.
type noted struct {
	Order string `json:"order"`
	Place uint64 `json:"place"`
	Sum   string `json:"sum"`
}

// slot is how long each half of the file is: a write that is torn leaves the other one.
const slot = 512

// openRecord opens that of a folder; "": it is in memory.
func openRecord(dir string) (*record, error) {
	r := &record{}
	r.told = sync.NewCond(&r.mu)
	if dir == "" {
		return r, nil
	}
	var err error
	if r.file, err = os.OpenFile(filepath.Join(dir, "acknowledged"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	for half := range int64(2) {
		b := make([]byte, slot)
		if _, err := r.file.ReadAt(b, half*slot); err != nil && err != io.EOF {
			return nil, errors.Join(err, r.file.Close())
		}
		var x noted
		text, sum, ok := strings.Cut(strings.TrimRight(string(b), "\x00\n"), "\n")
		if ok && sum == sumOf([]byte(text)) && json.Unmarshal([]byte(text), &x) == nil && x.Place >= r.saved.Place {
			r.saved, r.last, r.alternate = x, x, 1-half
		}
	}
	return r, nil
}

func sumOf(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}

// highest is the last place that was acknowledged.
func (r *record) highest() noted {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// keep has a place survive. What several wait for is written once.
func (r *record) keep(x noted) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.Place > r.last.Place || x.Order != r.last.Order {
		r.last = x
	}
	for r.saved.Order != x.Order || r.saved.Place < x.Place {
		if r.saving {
			r.told.Wait()
			continue
		}
		next := r.last
		r.saving = true
		r.mu.Unlock()
		err := r.write(next)
		r.mu.Lock()
		if r.saving = false; err == nil {
			r.saved = next
		}
		r.told.Broadcast()
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *record) write(x noted) error {
	if r.file == nil {
		return nil
	}
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	b := make([]byte, slot)
	copy(b, fmt.Appendf(nil, "%s\n%s\n", text, sumOf(text)))
	if _, err := r.file.WriteAt(b, r.alternate*slot); err != nil {
		return err
	}
	r.alternate = 1 - r.alternate
	return r.file.Sync()
}

func (r *record) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// whole makes sure that the stream has what this process acknowledged, and no gaps; until ctx
// ends. Where it hasn't, all who follow are told.
func (s *stream) whole(ctx context.Context) error {
	for {
		err := s.holds(ctx, s.record.highest())
		if errors.Is(err, order.ErrEnds) {
			s.lose(err)
			return nil
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		s.log.Info("what the order has isn't known yet", "reason", err)
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// complete says in the log when this server has all that the order had at its start. Until
// then the others are to stay: one that lacks something may come to lead after their end.
// What was damaged can leave a gap that the engine doesn't fill. Where that lasts, and the
// other servers have all, this one is to begin anew.
func (s *stream) complete(e *engine) (anew bool) {
	gap := time.Time{}
	for {
		if info, err := s.info(s.life); err == nil {
			there, lacks := e.has(s.name, info.State.FirstSeq, s.began)
			switch {
			case !there:
				gap = time.Time{}
			case lacks == 0:
				s.log.Info("this process has all that the order has")
				return false
			case gap.IsZero():
				gap = time.Now()
			case time.Since(gap) <= lossTimeout || info.Cluster == nil:
			case info.Cluster.Leader == e.server.Name():
				gap = time.Now()
				if err := s.another(s.life, info); errors.Is(err, order.ErrEnds) {
					s.lose(err)
					return false
				}
			case lack(info.State) == 0 && !slices.ContainsFunc(info.Cluster.Replicas, func(p *jetstream.PeerInfo) bool {
				return p.Name != e.server.Name() && (!p.Current || p.Offline)
			}):
				s.log.Warn("this process lacks places that the others have, and takes all from them anew", "places", lacks)
				return true
			}
		}
		select {
		case <-s.life.Done():
			return false
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// lack is how many places aren't there.
func lack(state jetstream.StreamState) uint64 {
	if state.Msgs == 0 {
		return 0
	}
	return state.LastSeq - state.FirstSeq + 1 - state.Msgs
}

// another has one lead in place of a server that lacks places, and gives the reason to wait;
// that the order lost them, if each of its servers led lately and lacked some.
func (s *stream) another(ctx context.Context, info *jetstream.StreamInfo) error {
	next := ""
	if info.Cluster != nil {
		s.mu.Lock()
		s.lacking[info.Cluster.Leader] = time.Now()
		for _, p := range info.Cluster.Replicas {
			if time.Since(s.lacking[p.Name]) > 10*lossTimeout {
				next = p.Name
			}
		}
		s.mu.Unlock()
	}
	if next == "" {
		return fmt.Errorf("%w: %d of the places %d to %d aren't there", order.ErrEnds, lack(info.State), info.State.FirstSeq, info.State.LastSeq)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, _ := json.Marshal(map[string]any{"placement": map[string]string{"preferred": next}})
	_, err := s.conn.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+s.name, request)
	return cmp.Or(err, fmt.Errorf("%s led and lacks places; %s may have them, and is to lead", info.Cluster.Leader, next))
}

// holds compares the stream with what was acknowledged.
func (s *stream) holds(ctx context.Context, last noted) error {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	// A leader may be one no longer. What it acknowledges is certain.
	mark, err := s.publish(ctx, s.marks(), nil)
	if err != nil {
		return err
	}
	s.began = mark
	info, err := s.info(ctx)
	if err != nil {
		return err
	}
	if info.State.LastSeq >= mark && lack(info.State) > 0 {
		return s.another(ctx, info)
	}
	switch {
	case last.Order != s.identity || last.Place < info.State.FirstSeq:
		return nil
	case mark <= last.Place:
		return fmt.Errorf("%w: its last place was %d, and place %d was acknowledged", order.ErrEnds, mark-1, last.Place)
	}
	data, err := s.stored(ctx, last.Place)
	if errors.Is(err, order.ErrEnds) { // or it was trimmed meanwhile
		if info, failed := s.info(ctx); failed != nil || last.Place < info.State.FirstSeq {
			return failed
		}
	}
	if err == nil && sumOf(data) != last.Sum {
		err = fmt.Errorf("%w: place %d, which was acknowledged, isn't what it was", order.ErrEnds, last.Place)
	}
	return err
}

// lostMark is what a mark says in an order that lost something.
const lostMark = "lost"

// lose has all who follow told, here and by the order at the other processes, that
// something is lost.
func (s *stream) lose(err error) {
	s.mu.Lock()
	known := s.lost
	if known == nil {
		s.lost = err
	}
	s.mu.Unlock()
	if known != nil {
		return
	}
	s.log.Error("the order lost what it had acknowledged: nothing is added to it any more, and its nodes stop; 'mcp-pif cluster repair' on each begins anew in an empty order", "error", err)
	s.grows(0, nil)
	go func() {
		for s.life.Err() == nil {
			ctx, done := s.joined(s.life, ackTimeout)
			_, err := s.publish(ctx, s.marks(), []byte(lostMark))
			done()
			if err == nil {
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	}()
}

// isLost is why the order isn't to be used.
func (s *stream) isLost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}
