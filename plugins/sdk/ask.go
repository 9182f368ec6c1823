package sdk

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// A Question is one for the user of the host's client.
type Question struct {
	// Message is what is asked, at most 4 KiB. The host shows it as the words of a stranger.
	Message string
	// Schema is the form: the JSON Schema of an object whose members are strings, numbers,
	// integers and booleans, at most 16 KiB. nil: there is none.
	Schema []byte
}

// An Answer is what came of a [Question].
type Answer struct {
	// Action is accept, decline or cancel.
	Action string
	// Content is what was filled in, a JSON object, where the action is accept.
	Content []byte
	// Reason says why nobody was asked; empty: the user answered.
	Reason string
}

// declined is the answer to a question that nobody was asked.
func declined(reason string) Answer { return Answer{Action: "decline", Reason: reason} }

type (
	askKey   struct{}
	askerKey struct{}
)

// Ask puts a question to the user, and waits for the answer; the time of the request stands
// still meanwhile. Where nobody can be asked it declines at once. The host decides that: it
// lets only the plugins of servers ask whose operator said so.
func Ask(ctx context.Context, q Question) Answer {
	if ask, ok := ctx.Value(askKey{}).(func(context.Context, Question) Answer); ok {
		return ask(ctx, q)
	}
	return declined("the host asks nobody here")
}

// WithAsk returns a context whose requests put their questions to ask. It is for tests that
// use [Direct].
func WithAsk(ctx context.Context, ask func(context.Context, Question) Answer) context.Context {
	return context.WithValue(ctx, askKey{}, ask)
}

// An asker puts the questions of one request.
type asker struct {
	send  func(context.Context, *pluginv1.InvokeStreamResponse) bool
	clock *clock // nil: the request has no time

	may   uint32
	rooms bool // the host knows of room
	had   int64

	mu     sync.Mutex
	put    uint32
	answer map[uint32]chan Answer // each has room for one
}

func (a *asker) ask(ctx context.Context, q Question) Answer {
	a.mu.Lock()
	number := a.put + 1
	if number > a.may {
		a.mu.Unlock()
		return declined(fmt.Sprintf("one request puts at most %d questions", a.may))
	}
	a.put = number
	a.mu.Unlock()
	if a.clock != nil {
		a.clock.stop()
		defer a.clock.start()
	}
	event := &pluginv1.Question{Number: number, Message: q.Message, Schema: q.Schema}
	return a.exchange(ctx, number, &pluginv1.InvokeStreamResponse{Event: &pluginv1.InvokeStreamResponse_Question{Question: event}})
}

// exchange sends what has an answer, and waits for that.
func (a *asker) exchange(ctx context.Context, number uint32, event *pluginv1.InvokeStreamResponse) Answer {
	answer := make(chan Answer, 1)
	a.mu.Lock()
	a.answer[number] = answer
	a.mu.Unlock()
	if !a.send(ctx, event) {
		return declined("the request is over")
	}
	select {
	case got := <-answer:
		return got
	case <-ctx.Done():
		return Answer{Action: "cancel", Reason: "the request is over"}
	}
}

// Answer implements the contract: it brings the answer to a question. One for nobody is
// dropped.
func (s *server) Answer(_ context.Context, r *pluginv1.AnswerRequest) (*pluginv1.AnswerResponse, error) {
	s.mu.Lock()
	a := s.askers[r.GetCall()]
	s.mu.Unlock()
	if a != nil {
		a.mu.Lock()
		answer := a.answer[r.GetNumber()]
		delete(a.answer, r.GetNumber())
		a.mu.Unlock()
		if answer != nil {
			answer <- Answer{Action: r.GetAction(), Content: r.GetContent(), Reason: r.GetReason()}
		}
	}
	return &pluginv1.AnswerResponse{}, nil
}

// Room waits until the host has room for an outcome of so many bytes, of which little is read yet. Once it said so it isn't
// asked again for what grew by its form alone. The error is a [Failure], or why ctx ended. One at a time asks for a request.
func Room(ctx context.Context, bytes int64) error {
	if room, ok := ctx.Value(roomKey{}).(func(int64) error); ok {
		return room(bytes)
	}
	a, ok := ctx.Value(askerKey{}).(*asker)
	if !ok || !a.rooms || bytes < max(wire.LargeOutcome, 2*a.had) {
		return nil
	}
	got := a.exchange(ctx, 0, &pluginv1.InvokeStreamResponse{Event: &pluginv1.InvokeStreamResponse_Room{Room: uint64(bytes)}})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if got.Action != "accept" {
		return Fail("failed", "there was no room for %d bytes of an answer: too many effects are under way", bytes).
			WithHint("Try again later, or ask for less at once.")
	}
	a.had = bytes
	return nil
}

type roomKey struct{}

// WithRoom returns a context whose requests ask room for room, each time. It is for tests that use [Direct].
func WithRoom(ctx context.Context, room func(bytes int64) error) context.Context {
	return context.WithValue(ctx, roomKey{}, room)
}

// Reading returns a reader of what an outcome is made of, such as the body of an answer from elsewhere, of size bytes; -1:
// nobody knows. What is read beyond 64 KiB waits until the host has room, so that the plugin holds no more than that;
// where there is none the reader fails with a [Failure]. One at a time reads for a request.
func Reading(ctx context.Context, from io.Reader, size int64) io.Reader {
	return &reading{ctx: ctx, from: from, size: size, next: wire.LargeOutcome}
}

type reading struct {
	ctx             context.Context
	from            io.Reader
	got, next, size int64
}

// Read implements [io.Reader].
func (r *reading) Read(p []byte) (int, error) {
	if r.got == r.next {
		if r.next *= 2; r.size >= r.got {
			r.next = r.size + 1 // the end is seen, too
		}
		if err := Room(r.ctx, r.next); err != nil {
			return 0, err
		}
	}
	n, err := r.from.Read(p[:min(int64(len(p)), r.next-r.got)])
	r.got += int64(n)
	return n, err
}

// A clock ends a request when its time is over. It stands still while the request waits for
// the user.
type clock struct {
	end context.CancelCauseFunc

	mu      sync.Mutex
	timer   *time.Timer
	left    time.Duration
	since   time.Time
	waiting int
}

func newClock(left time.Duration, end context.CancelCauseFunc) *clock {
	c := &clock{end: end, left: left, since: time.Now()}
	c.timer = time.AfterFunc(left, c.over)
	return c
}

func (c *clock) over() { c.end(context.DeadlineExceeded) }

func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting++; c.waiting == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
}

func (c *clock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting--; c.waiting == 0 {
		c.since = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}

type progressKey struct{}

// Progress tells whoever waits how a request is getting on, in a short sentence.
// It costs nothing where nobody listens, and never waits.
func Progress(ctx context.Context, format string, args ...any) {
	if hear, ok := ctx.Value(progressKey{}).(func(string)); ok {
		hear(fmt.Sprintf(format, args...))
	}
}

// WithProgress returns a context whose requests tell hear how they get on, one
// call at a time for each request. It is for tests that use [Direct].
func WithProgress(ctx context.Context, hear func(message string)) context.Context {
	return context.WithValue(ctx, progressKey{}, hear)
}

type keyKey struct{}

// Key is the same for two requests only if they are the same act, for plugins
// that can tell a repetition; empty where the host gives none.
func Key(ctx context.Context) string {
	key, _ := ctx.Value(keyKey{}).(string)
	return key
}

type hopsKey struct{}

// Hops is how many servers of mcp-pif a request came through before it reached this host's,
// for plugins that pass it on to others; 0: it came from a client of its own.
func Hops(ctx context.Context) int {
	n, _ := ctx.Value(hopsKey{}).(int)
	return n
}

// WithKey returns a context whose requests have a key. It is for tests that use
// [Direct].
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyKey{}, key)
}
