package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/queue"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A call may have a question for the person before the client. In the older
// protocols the server asks the client, and the call goes on meanwhile. In the newer
// one the call is answered with the question, and the client calls again with what
// the person said: the call is kept under way until then, and what the client brings
// back is a name for it, good once, for the same principal and the same call.

// patienceAsking is how long a person may take.
const patienceAsking = 5 * time.Minute

// mostTalks is how many calls of a server may wait for a person at once.
const mostTalks = 16

// mostPut is how many questions one call may put.
const mostPut = 20

// An elicitor puts questions to the person before a call's client: those of a task together, those of another
// call one at a time.
type elicitor struct {
	ask      func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error)
	talks    *talks        // nil: the questions of a task, which are bounded with it
	patience time.Duration // 0: patienceAsking
	waited   atomic.Int64  // nanoseconds
	put      atomic.Int32  // questions
	turn     sync.Mutex    // of a question that is put alone

	mu    sync.Mutex // guards what follows
	open  int        // questions
	since time.Time  // from when on some are open
}

type elicitorKey struct{}

// elicitorOf is a call's elicitor; nil: its client can't ask anybody.
func elicitorOf(ctx context.Context) *elicitor {
	e, _ := ctx.Value(elicitorKey{}).(*elicitor)
	return e
}

// waited is how long a call has waited for a person: its clock stands still then. A task has
// more time besides.
func waited(ctx context.Context) (d time.Duration) {
	if t := taskOf(ctx); t != nil {
		d = time.Duration(t.extra.Load())
	}
	if e := elicitorOf(ctx); e != nil {
		d += time.Duration(e.waited.Load())
	}
	return d
}

func (e *elicitor) elicit(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	if e.put.Add(1) > mostPut {
		return nil, fmt.Errorf("one call puts at most %d questions", mostPut)
	}
	if e.talks != nil {
		e.turn.Lock()
		defer e.turn.Unlock()
		if e.talks.waiting.Add(1) > mostTalks {
			e.talks.waiting.Add(-1)
			return nil, errors.New("too many questions wait for the user")
		}
		defer e.talks.waiting.Add(-1)
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(e.patience, patienceAsking))
	defer cancel()
	e.count(1)
	res, err := e.ask(ctx, p)
	e.count(-1)
	if err == nil && res == nil {
		err = errors.New("the client gave no answer")
	}
	return res, err
}

// count counts the open questions, and the time in which there are some.
func (e *elicitor) count(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open == 0 {
		e.since = time.Now()
	}
	if e.open += n; e.open == 0 {
		e.waited.Add(int64(time.Since(e.since)))
	}
}

// talks is the calls that wait for what a client brings back.
type talks struct {
	waiting atomic.Int32 // questions
	mu      sync.Mutex
	all     map[string]*talk
}

// A talk is a call under way that may ask.
type talk struct {
	call      string // its digest
	cancel    context.CancelFunc
	questions chan question
	done      chan wire.Answer // has room for one
	ended     chan struct{}

	asked question    // that waits
	timer *time.Timer // ends it where nobody comes back
}

type question struct {
	params *mcp.ElicitParams
	answer chan *mcp.ElicitResult // has room for one
}

// asksAnybody reports whether a call of a tool may have a question.
func (s *Server) asksAnybody(tool string) bool {
	if s.opts.Elicit && tool != "evolve" && len(s.broker.Policy().Confirms()) > 0 {
		return true
	}
	if tool == "evolve" || tool == "run" && s.opts.Elicit && s.broker.Policy().Asking() {
		return s.opts.Elicit && s.broker.Policy().Asking()
	}
	if p := s.broker.Flow(); s.opts.Elicit && p != nil && slices.ContainsFunc(p.Rules, func(r *flow.Rule) bool { return r.Else == flow.Ask }) {
		return true
	}
	for _, g := range s.broker.Policy().Grants() {
		if g.Kind == AskKind {
			return true
		}
	}
	return false
}

// converse does a call, and puts its questions to the person.
func (s *Server) converse(ctx context.Context, req *mcp.CallToolRequest, c Call) (*mcp.CallToolResult, error) {
	if req.Params.RequestState != "" {
		return s.resume(ctx, req, &c)
	}
	if s.mayBeTask(req, &c) {
		return s.asTask(ctx, req, c), nil
	}
	able := req.ClientCapabilities()
	if able == nil || able.Elicitation == nil || able.Elicitation.Form == nil && able.Elicitation.URL != nil || !s.asksAnybody(c.Tool) {
		a := s.Call(ctx, c)
		return a.Result(), nil
	}
	e := &elicitor{talks: &s.talks}
	if older(req) {
		e.ask = req.Session.Elicit
		a := s.Call(context.WithValue(ctx, elicitorKey{}, e), c)
		return a.Result(), nil
	}
	t := &talk{call: digest(&c), questions: make(chan question), done: make(chan wire.Answer, 1), ended: make(chan struct{})}
	e.ask = t.ask
	var under context.Context
	under, t.cancel = context.WithCancel(context.WithValue(context.WithoutCancel(ctx), elicitorKey{}, e))
	go func() {
		defer close(t.ended)
		defer t.cancel()
		t.done <- s.Call(under, c)
	}()
	return s.follow(ctx, t)
}

// older reports whether a call is of a protocol in which the server asks the client.
func older(req *mcp.CallToolRequest) bool {
	p := req.Session.InitializeParams()
	return p != nil && p.ProtocolVersion < "2026-07-28"
}

// ask hands a question to whoever follows the call, and waits for the answer.
func (t *talk) ask(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	q := question{p, make(chan *mcp.ElicitResult, 1)}
	select {
	case t.questions <- q:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case res := <-q.answer:
		return res, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// follow waits for the end of a call, or for a question of it.
func (s *Server) follow(ctx context.Context, t *talk) (*mcp.CallToolResult, error) {
	stop := context.AfterFunc(ctx, t.cancel)
	for {
		select {
		case a := <-t.done:
			stop()
			return a.Result(), nil
		case q := <-t.questions:
			if !stop() {
				a := wire.Failed(queue.Cancelled())
				return a.Result(), nil
			}
			if state, ok := s.park(t, q); ok {
				return &mcp.CallToolResult{Content: []mcp.Content{}, InputRequests: mcp.InputRequestMap{questionName: q.params}, RequestState: state}, nil
			}
			q.answer <- nil
			stop = context.AfterFunc(ctx, t.cancel)
		}
	}
}

// questionName is what a question is called between server and client.
const questionName = "question"

// park keeps a call until its question is answered, if there is room.
func (s *Server) park(t *talk, q question) (state string, ok bool) {
	var random [16]byte
	rand.Read(random[:]) // never fails
	id := hex.EncodeToString(random[:])
	s.talks.mu.Lock()
	defer s.talks.mu.Unlock()
	if len(s.talks.all) >= mostTalks {
		return "", false
	}
	if s.talks.all == nil {
		s.talks.all = map[string]*talk{}
	}
	s.talks.all[id] = t
	t.asked = q
	t.timer = time.AfterFunc(patienceAsking, func() {
		if s.unpark(id) != nil {
			t.cancel()
		}
	})
	return seal(parked{ID: id, Who: s.who(), Call: t.call, Until: time.Now().Add(patienceAsking).Unix()}), true
}

// unpark gives the call of a name, once; nil: there is none.
func (s *Server) unpark(id string) *talk {
	s.talks.mu.Lock()
	defer s.talks.mu.Unlock()
	t := s.talks.all[id]
	delete(s.talks.all, id)
	if t != nil {
		t.timer.Stop()
	}
	return t
}

// resume goes on with a call whose question is answered.
func (s *Server) resume(ctx context.Context, req *mcp.CallToolRequest, c *Call) (*mcp.CallToolResult, error) {
	p, ok := open(req.Params.RequestState)
	var t *talk
	if ok && !older(req) && p.Who == s.who() && p.Call == digest(c) && time.Now().Unix() < p.Until {
		t = s.unpark(p.ID)
	}
	if t == nil {
		a := wire.Failed(&fault.Fault{
			Kind:    fault.InvalidRequest,
			Message: "the requestState names no call that waits for this answer: it was answered, it is over, or it isn't of this call",
			Hint:    "Call the tool again without requestState and inputResponses.",
		})
		return a.Result(), nil
	}
	res, _ := req.Params.InputResponses[questionName].(*mcp.ElicitResult)
	t.asked.answer <- res
	return s.follow(ctx, t)
}

// hangUp ends the calls that wait, when the last session is over.
func (s *Server) hangUp() {
	s.sessions.Lock()
	open := s.open
	s.sessions.Unlock()
	if open == 0 {
		s.EndWaiting()
	}
}

// EndWaiting ends the calls that wait for a person, and returns when they have
// ended.
func (s *Server) EndWaiting() {
	s.talks.mu.Lock()
	all := s.talks.all
	s.talks.all = nil
	s.talks.mu.Unlock()
	for _, t := range all {
		t.timer.Stop()
		t.cancel()
		<-t.ended
	}
}

// who is whose server this is.
func (s *Server) who() string {
	if c := s.broker.Consents(); c != nil {
		return c.Who
	}
	return ""
}

// digest is the same for the same call.
func digest(c *Call) string {
	arguments := []byte(c.Arguments)
	var v any
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.UseNumber()
	if d.Decode(&v) == nil {
		arguments = wire.Encode(v) // members in order
	}
	sum := sha256.Sum256([]byte(c.Tool + "\x00" + string(arguments)))
	return hex.EncodeToString(sum[:])
}

// A parked call is what a client brings back of it.
type parked struct {
	ID    string `json:"id"`
	Who   string `json:"who"`
	Call  string `json:"call"`
	Until int64  `json:"until"`
}

// sealing is this process's key.
var sealing = sync.OnceValue(func() []byte {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return key
})

func seal(p parked) string {
	return sealed(wire.Encode(p))
}

func sealed(text []byte) string {
	return base64.RawURLEncoding.EncodeToString(text) + "." + base64.RawURLEncoding.EncodeToString(mac(text))
}

func mac(text []byte) []byte {
	h := hmac.New(sha256.New, sealing())
	h.Write([]byte("mcp-pif parked call\x00"))
	h.Write(text)
	return h.Sum(nil)
}

// open reads what seal wrote, and nothing else.
func open(state string) (p parked, ok bool) {
	body, _, _ := strings.Cut(state, ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	// All of it is compared: the decoder passes over line ends.
	if err != nil || !hmac.Equal([]byte(state), []byte(sealed(text))) {
		return p, false
	}
	return p, json.Unmarshal(text, &p) == nil
}
