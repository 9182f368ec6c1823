package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcp-pif/mcp-pif/caps/journal/order"
)

var (
	requestTimeout = 2 * time.Second
	ackTimeout     = 4 * time.Second
)

const (
	// pollInterval bounds what a lost hint delays, and how long what is recent isn't held against
	// what the near server has.
	pollInterval = 250 * time.Millisecond
	// lagTimeout is how long this server may be behind the leader and still be alive.
	lagTimeout = 2 * time.Second
	// lossTimeout is how long a place must be missing before it is called lost: a
	// server that catches up has gaps for a moment.
	lossTimeout = 10 * time.Second
	// checkInterval is how often who waits at the end looks whether it still is the end.
	checkInterval = 3 * time.Second
	identityKey   = "mcp-pif.identity"
	// recentBytes is how large a proposal may be that is kept until those have it who follow here.
	recentBytes = 64 << 10
)

// A stream is an order in a JetStream stream. Proposals are the messages of one subject;
// marks, of another one, are only there to see where the stream ends. It is followed by
// reading ranges from whichever server is near (direct get): each has a prefix of the
// order. Nothing else of what the servers say is relied on but acknowledgements.
type stream struct {
	conn     *nats.Conn
	js       jetstream.JetStream
	name     string
	replicas int
	log      *slog.Logger
	identity string
	life     context.Context
	end      context.CancelCauseFunc
	record   *record
	began    uint64 // the end of the order when it was opened

	mu      sync.Mutex
	lost    error                // why it isn't to be used any more
	grown   chan struct{}        // closed by a hint
	hint    *nats.Subscription   // while there are followers
	last    uint64               // the last place that was hinted at
	hinted  time.Time            // when
	recent  [64]message          // what was acknowledged to this process lately, by place
	behind  time.Time            // since when it is behind the leader; zero if it isn't
	lacking map[string]time.Time // when a server led and lacked places

	followers int
}

// openStream opens the stream of a name, and makes it where there is none, once its servers
// can: until ctx ends.
func openStream(ctx context.Context, conn *nats.Conn, name string, replicas int, r *record, log *slog.Logger) (*stream, error) {
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(requestTimeout))
	if err != nil {
		return nil, err
	}
	s := &stream{conn: conn, js: js, name: name, replicas: replicas, log: log, record: r, grown: make(chan struct{}), lacking: map[string]time.Time{}}
	s.life, s.end = context.WithCancelCause(context.Background())
	for said := ""; ; {
		info, err := s.find(ctx)
		if err == nil {
			s.identity = info.Config.Metadata[identityKey]
			break
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("the stream %s: %w", name, err)
		}
		if err.Error() != said {
			said = err.Error()
			log.Info("the order isn't there yet", "reason", said)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	if err := s.whole(ctx); err != nil {
		return nil, fmt.Errorf("the stream %s: %w", name, err)
	}
	return s, nil
}

// listen has hints wake who follows here, until leave is called. A process that nobody follows at is sent none.
func (s *stream) listen() (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followers == 0 {
		s.hint, err = s.conn.Subscribe(s.hints(), func(m *nats.Msg) {
			place, _ := strconv.ParseUint(string(m.Data), 10, 64)
			s.grows(place, nil)
		})
		if err != nil {
			return nil, err
		}
	}
	s.followers++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.followers--; s.followers == 0 {
			_ = s.hint.Unsubscribe()
		}
	}, nil
}

func (s *stream) proposals() string { return s.name + ".p" }
func (s *stream) marks() string     { return s.name + ".m" }
func (s *stream) hints() string     { return s.name + "-hint" }

// find returns the stream, which it makes where there is none.
func (s *stream) find(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := s.info(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		config := jetstream.StreamConfig{
			Name: s.name, Subjects: []string{s.name + ".*"}, Storage: jetstream.FileStorage, Replicas: s.replicas,
			Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, AllowDirect: true, MaxMsgSize: -1,
			Metadata: map[string]string{identityKey: rand.Text()},
		}
		if _, err := s.js.CreateStream(ctx, config); err != nil {
			return nil, err
		}
		info, err = s.info(ctx)
	}
	if err != nil {
		return nil, err
	}
	c := info.Config
	switch {
	case c.Metadata[identityKey] == "":
		return nil, fmt.Errorf("the stream %s isn't an order's", s.name)
	case !c.AllowDirect || c.Storage != jetstream.FileStorage || c.MaxAge != 0 || c.MaxMsgs > 0 || c.MaxBytes > 0 || c.Replicas < s.replicas:
		return nil, fmt.Errorf("the stream %s has another configuration: it needs direct get, file storage, no limits and %d replicas", s.name, s.replicas)
	}
	return info, nil
}

// info returns what the stream's leader says.
func (s *stream) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := s.js.Stream(ctx, s.name)
	if err != nil {
		return nil, err
	}
	return stream.CachedInfo(), nil
}

// grows wakes who follows: the order has a place, and there what this process knows, if it does.
func (s *stream) grows(place uint64, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if place > s.last {
		s.last, s.hinted = place, time.Now()
	}
	if p != nil && len(p) <= recentBytes {
		s.recent[place%64] = message{place, bytes.Clone(p), true}
	}
	close(s.grown)
	s.grown = make(chan struct{})
}

// why returns the reason of an error: the order was closed, the caller's context ended, or
// the error itself.
func (s *stream) why(ctx context.Context, err error) error {
	switch {
	case s.life.Err() != nil:
		return order.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

// joined returns a context that ends with ctx, with the order, and after a while.
func (s *stream) joined(ctx context.Context, limit time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(s.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// Propose publishes p. It never says that p has no place, whatever the server says.
func (s *stream) Propose(ctx context.Context, p []byte) error {
	if len(p) > order.MaxProposal {
		return order.ErrTooLarge
	}
	if err := s.why(ctx, nil); err != nil {
		return err
	}
	if err := s.isLost(); err != nil {
		return err
	}
	inner, done := s.joined(ctx, ackTimeout)
	defer done()
	before := s.record.highest()
	place, err := s.publish(inner, s.proposals(), p)
	if err == nil && before.Order == s.identity && place <= before.Place {
		err = fmt.Errorf("%w: place %d was acknowledged twice", order.ErrEnds, place)
		s.lose(err)
	}
	if err == nil {
		// Who follows has it while it is noted, and would notice that it is lost.
		s.grows(place, p)
		s.conn.Publish(s.hints(), strconv.AppendUint(nil, place, 10)) // a lost hint is made up for by polling
		err = s.record.keep(noted{s.identity, place, sumOf(p)})
	}
	if err != nil {
		return s.why(ctx, err)
	}
	return nil
}

// publish returns the acknowledged place.
func (s *stream) publish(ctx context.Context, subject string, p []byte) (uint64, error) {
	answer, err := s.conn.RequestWithContext(ctx, subject, p)
	if err != nil {
		return 0, err
	}
	var ack struct {
		Stream string          `json:"stream"`
		Seq    uint64          `json:"seq"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return 0, err
	}
	if len(ack.Error) > 0 || ack.Stream != s.name || ack.Seq == 0 {
		return 0, fmt.Errorf("no acknowledgement: %.200s", answer.Data)
	}
	return ack.Seq, nil
}

// Follow reads ranges, and waits for hints between them.
func (s *stream) Follow(ctx context.Context, from uint64, fn func(uint64, []byte) error) error {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	leave, err := s.listen()
	if err != nil {
		return s.why(outer, err)
	}
	defer leave()
	r := &reader{stream: s, from: from}
	defer r.close()
	fresh := false // nothing was read since the first place was looked up
	for checked := (time.Time{}); ; {
		s.mu.Lock()
		grown := s.grown
		s.mu.Unlock()
		var some []message
		var err error
		if r.from > 0 {
			some, err = r.read(ctx)
		} else if info, failed := r.info(ctx); failed == nil {
			r.from, fresh = max(info.State.FirstSeq, 1), true
			continue
		} else {
			err = failed
		}
		if ended := cmp.Or(s.why(outer, nil), s.isLost()); ended != nil {
			return ended
		}
		for _, x := range some {
			if x.proposal {
				if err := fn(x.place, x.p); err != nil {
					return err
				}
			} else if string(x.p) == lostMark {
				return fmt.Errorf("%w: one of its processes found that", order.ErrEnds)
			}
			if !r.end {
				r.before = r.before[:0]
			}
			r.from, r.before, fresh = x.place+1, append(r.before, x), false
		}
		if isFinal(err) {
			return err
		}
		if _, behind := r.behind(); len(some) > 0 && err == nil && (behind || !r.end) {
			continue
		}
		if time.Since(checked) > checkInterval {
			// At the end, or beyond it, or before what is kept, or without an answer.
			again := r.check(ctx)
			if fresh && errors.Is(again, order.ErrTrimmed) {
				r.from = 0
				continue
			}
			if isFinal(again) {
				return s.why(outer, again)
			}
			if again == nil {
				checked = time.Now()
			}
			err = cmp.Or(err, again)
		}
		timer := time.NewTimer(r.pause(err))
		select {
		case <-ctx.Done():
		case <-grown:
		case <-timer.C:
		}
		timer.Stop()
		if r.missing.IsZero() {
			continue
		}
		if checked = (time.Time{}); r.missed.Sub(r.missing) > lossTimeout {
			err := r.check(ctx)
			if err == nil {
				if _, err = s.stored(ctx, r.from); errors.Is(err, order.ErrEnds) {
					var info *jetstream.StreamInfo
					if info, err = s.info(ctx); err == nil && lack(info.State) > 0 {
						err = s.another(ctx, info)
					}
				}
			}
			if isFinal(err) {
				return s.why(outer, err)
			}
			r.missing = time.Time{} // the leader has it, or doesn't answer
		}
	}
}

func isFinal(err error) bool {
	return errors.Is(err, order.ErrEnds) || errors.Is(err, order.ErrTrimmed) || errors.Is(err, order.ErrOther)
}

// A reader is at a place.
type reader struct {
	*stream
	from    uint64
	before  []message // what came before the place and is yet to be read again
	missing time.Time // since when the place isn't there though later ones are
	missed  time.Time // when that was seen last
	inbox   *nats.Subscription
	prefix  string
	turn    int
	end     bool      // all was read that was there, or is recent
	ended   time.Time // when that was read
}

// A message is a place of the stream.
type message struct {
	place    uint64
	p        []byte
	proposal bool
}

func (r *reader) close() {
	if r.inbox != nil {
		r.inbox.Unsubscribe()
	}
}

// behind reports whether there is more by what was hinted at, and for how long that was known.
func (r *reader) behind() (since time.Duration, behind bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.hinted), r.from <= r.last
}

// pause returns how long to wait for a hint: little where one came that says of a place
// which the near server doesn't have yet.
func (r *reader) pause(err error) time.Duration {
	switch since, behind := r.behind(); {
	case err != nil:
		return 100 * time.Millisecond
	case !behind:
		return pollInterval
	case since < 20*time.Millisecond:
		return time.Millisecond
	case since < time.Second:
		return 20 * time.Millisecond
	}
	return pollInterval
}

// read returns some messages from the reader's place on, without gaps. It reads what
// is before them, too: an engine that lost its end may have given the place again.
func (r *reader) read(ctx context.Context) (some []message, err error) {
	if r.end && len(r.before) < len(r.recent) && time.Since(r.ended) < pollInterval {
		// What was acknowledged since is certain, also where the near server doesn't have it yet.
		r.mu.Lock()
		for m := r.recent[r.from%64]; m.place == r.from+uint64(len(some)); m = r.recent[(m.place+1)%64] {
			m.p = append([]byte{}, m.p...)
			some = append(some, m)
		}
		r.mu.Unlock()
		if len(some) > 0 {
			return some, nil
		}
	}
	r.end = false
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if r.inbox == nil {
		r.prefix = nats.NewInbox()
		if r.inbox, err = r.conn.SubscribeSync(r.prefix + ".*"); err != nil {
			return nil, err
		}
	}
	r.turn++
	reply := r.prefix + "." + strconv.Itoa(r.turn)
	next, size := r.from-uint64(len(r.before)), uint64(4<<20)
	for _, m := range r.before {
		size += uint64(len(m.p)) + 1<<10
	}
	request, _ := json.Marshal(map[string]uint64{"seq": next, "batch": 256, "max_bytes": size})
	if err := r.conn.PublishRequest("$JS.API.DIRECT.GET."+r.name, reply, request); err != nil {
		return nil, err
	}
	for {
		m, err := r.inbox.NextMsgWithContext(ctx)
		if err != nil {
			if errors.Is(err, nats.ErrSlowConsumer) {
				r.close()
				r.inbox = nil
			}
			return some, err
		}
		if m.Subject != reply {
			continue // of an earlier request
		}
		switch code := m.Header.Get("Status"); code {
		case "":
		case "204", "404":
			if r.end = len(some) == 0 && next == r.from; r.end {
				r.ended = time.Now()
				r.before = r.before[max(0, len(r.before)-1):]
			}
			return some, nil
		case "503":
			return some, nats.ErrNoResponders
		default:
			return some, fmt.Errorf("direct get: %s %s", code, m.Header.Get("Description"))
		}
		place, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
		if err != nil {
			return some, err
		}
		if place != next {
			if next < place && place <= r.from {
				if info, err := r.info(ctx); err == nil && info.State.FirstSeq == place {
					r.before = r.before[uint64(len(r.before))-(r.from-place):] // it was trimmed
				}
			}
			now := time.Now()
			if now.Sub(r.missed) > 2*requestTimeout { // nobody looked meanwhile
				r.missing = time.Time{}
			}
			if r.missed = now; r.missing.IsZero() {
				r.missing = now
			}
			return some, nil // what follows belongs to this turn, and is passed over
		}
		if next++; place < r.from {
			if !bytes.Equal(m.Data, r.before[uint64(len(r.before))-(r.from-place)].p) {
				return nil, fmt.Errorf("%w: place %d isn't what it was", order.ErrEnds, place)
			}
			continue
		}
		r.missing = time.Time{}
		some = append(some, message{place, append([]byte{}, m.Data...), m.Header.Get("Nats-Subject") == r.proposals()})
	}
}

// check compares the reader's place with what the leader has.
func (r *reader) check(ctx context.Context) error {
	info, err := r.info(ctx)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return order.ErrOther
	case err != nil:
		return err
	case info.Config.Metadata[identityKey] != r.identity:
		return order.ErrOther
	case r.from < info.State.FirstSeq && info.State.FirstSeq > 0:
		return order.ErrTrimmed
	case r.from > info.State.LastSeq+1:
		// A leader may be one no longer. What it acknowledges is certain.
		mark, err := r.publish(ctx, r.marks(), nil)
		if err == nil && mark < r.from {
			err = fmt.Errorf("%w: its last place was %d", order.ErrEnds, mark-1)
		}
		return err
	}
	return nil
}

// stored returns what the leader has at a place, where it has something.
func (s *stream) stored(ctx context.Context, place uint64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var answer struct {
		Message *struct {
			Data []byte `json:"data"`
		} `json:"message"`
		Error *jetstream.APIError `json:"error"`
	}
	m, err := s.conn.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+s.name, fmt.Appendf(nil, `{"seq":%d}`, place))
	if err == nil {
		err = json.Unmarshal(m.Data, &answer)
	}
	switch {
	case err != nil:
		return nil, err
	case answer.Error != nil && answer.Error.ErrorCode != jetstream.JSErrCodeMessageNotFound:
		return nil, answer.Error
	case answer.Message == nil:
		return nil, fmt.Errorf("%w: place %d isn't there", order.ErrEnds, place)
	}
	return answer.Message.Data, nil
}

// Alive returns an error unless the leader answers and this process isn't behind it for long.
func (s *stream) Alive(ctx context.Context) error {
	info, err := s.info(ctx)
	if err != nil {
		return err
	}
	answer, err := s.conn.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+s.name, fmt.Appendf(nil, `{"seq":%d}`, max(info.State.LastSeq, 1)))
	near := err == nil && (info.State.Msgs == 0 || answer.Header.Get("Nats-Sequence") != "")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case near:
		s.behind = time.Time{}
	case s.behind.IsZero():
		s.behind = time.Now()
	case time.Since(s.behind) > lagTimeout:
		return errors.New("this server is behind the leader")
	}
	return nil
}

// Identity returns that of the stream which was opened. Follow notices where another one
// is there now.
func (s *stream) Identity(ctx context.Context) (string, error) {
	if err := s.why(ctx, nil); err != nil {
		return "", err
	}
	return s.identity, nil
}

// Trim purges what is before a place.
func (s *stream) Trim(ctx context.Context, before uint64) error {
	inner, done := s.joined(ctx, 2*ackTimeout)
	defer done()
	err := func() error {
		stream, err := s.js.Stream(inner, s.name)
		if err != nil {
			return err
		}
		state := stream.CachedInfo().State
		if before = min(before, state.LastSeq+1); before <= state.FirstSeq {
			return nil
		}
		return stream.Purge(inner, jetstream.WithPurgeSequence(before))
	}()
	if err != nil {
		return s.why(ctx, err)
	}
	return nil
}

func (s *stream) Close() error {
	s.end(order.ErrClosed)
	s.conn.Close()
	return s.record.close()
}
