// Package elicit puts questions to the person before a call's client: the server's own,
// a tool's by ask.user, an MCP server's, and those of rules about where data may go.
//
// A question is a form of single values; a stranger's words stand in it within a margin,
// and one that wants a password isn't put. In the newer protocol a call with a question
// is answered with it, and waits in [Calls] until its client comes back. What the answer
// means is decided by who asked.
package elicit

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

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/queue"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
)

// A call may have a question for the person before the client. In the older
// protocols the server asks the client, and the call goes on meanwhile. In the newer
// one the call is answered with the question, and the client calls again with what
// the person said: the call is kept under way until then, and what the client brings
// back is a name for it, good once, for the same principal and the same call.

// patienceAsking is how long a person may take.
const patienceAsking = 5 * time.Minute

// MaxCalls is how many calls of a server may wait for a person at once.
const MaxCalls = 16

// mostPut is how many questions one call may put.
const mostPut = 20

// An Elicitor puts questions to the person before a call's client: those of a task together, those of another
// call one at a time.
type Elicitor struct {
	Put      func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error)
	Calls    *Calls        // nil: the questions of a task, which are bounded with it
	Patience time.Duration // 0: patienceAsking
	Waited   atomic.Int64  // nanoseconds
	put      atomic.Int32  // questions
	turn     sync.Mutex    // of a question that is put alone

	mu    sync.Mutex // guards what follows
	open  int        // questions
	since time.Time  // from when on some are open
}

type (
	elicitorKey struct{}
	questionKey struct{}
)

// With has a context's questions be put by e; nil: nobody can be asked.
func With(ctx context.Context, e *Elicitor) context.Context {
	return context.WithValue(ctx, elicitorKey{}, e)
}

// Named has the questions of a context be called by a name that no other question of the
// task has, in whatever process it is put.
func Named(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, questionKey{}, key)
}

// NameOf is the name of a context's questions; "": they have none.
func NameOf(ctx context.Context) string {
	key, _ := ctx.Value(questionKey{}).(string)
	return key
}

// Of is a call's elicitor; nil: its client can't ask anybody.
func Of(ctx context.Context) *Elicitor {
	e, _ := ctx.Value(elicitorKey{}).(*Elicitor)
	return e
}

// Waited is how long a call has waited for a person.
func Waited(ctx context.Context) time.Duration {
	if e := Of(ctx); e != nil {
		return time.Duration(e.Waited.Load())
	}
	return 0
}

// Choose puts a choice, and gives the answer; "": they gave none.
func (e *Elicitor) Choose(ctx context.Context, message string, answers []string) (string, error) {
	type property struct {
		Type  string   `json:"type"`
		Title string   `json:"title"`
		Enum  []string `json:"enum"`
	}
	res, err := e.Ask(ctx, &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: json.RawMessage(wire.Encode(struct {
		Type       string              `json:"type"`
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}{"object", map[string]property{"answer": {"string", "Your answer", answers}}, []string{"answer"}}))})
	if err != nil {
		return "", err
	}
	if text, _ := res.Content["answer"].(string); res.Action == "accept" && slices.Contains(answers, text) {
		return text, nil
	}
	return "", nil
}

func (e *Elicitor) Ask(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	if e.put.Add(1) > mostPut {
		return nil, fmt.Errorf("one call puts at most %d questions", mostPut)
	}
	if e.Calls != nil {
		e.turn.Lock()
		defer e.turn.Unlock()
		if e.Calls.Waiting.Add(1) > MaxCalls {
			e.Calls.Waiting.Add(-1)
			return nil, errors.New("too many questions wait for the user")
		}
		defer e.Calls.Waiting.Add(-1)
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(e.Patience, patienceAsking))
	defer cancel()
	e.count(1)
	res, err := e.Put(ctx, p)
	e.count(-1)
	if err == nil && res == nil {
		err = errors.New("the client gave no answer")
	}
	return res, err
}

// count counts the open questions, and the time in which there are some.
func (e *Elicitor) count(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open == 0 {
		e.since = time.Now()
	}
	if e.open += n; e.open == 0 {
		e.Waited.Add(int64(time.Since(e.since)))
	}
}

// Calls is the calls that wait for what a client brings back.
type Calls struct {
	Waiting atomic.Int32 // questions
	mu      sync.Mutex
	all     map[string]*conversation
}

// A conversation is a call under way that may ask.
type conversation struct {
	who, digest string // whose it is, and its digest
	cancel      context.CancelFunc
	questions   chan question
	done        chan wire.Answer // has room for one
	ended       chan struct{}

	asked question    // that waits
	timer *time.Timer // ends it where nobody comes back
}

type question struct {
	params *mcp.ElicitParams
	answer chan *mcp.ElicitResult // has room for one
}

// ask hands a question to whoever follows the call, and waits for the answer.
func (t *conversation) ask(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
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

// Start begins a call that may ask, and follows it.
func (ts *Calls) Start(ctx context.Context, who, call string, do func(context.Context) wire.Answer) (*mcp.CallToolResult, error) {
	t := &conversation{who: who, digest: call, questions: make(chan question), done: make(chan wire.Answer, 1), ended: make(chan struct{})}
	var under context.Context
	under, t.cancel = context.WithCancel(With(context.WithoutCancel(ctx), &Elicitor{Calls: ts, Put: t.ask}))
	go func() {
		defer close(t.ended)
		defer t.cancel()
		t.done <- do(under)
	}()
	return ts.follow(ctx, t)
}

// Resume goes on with a call whose question is answered; false: the state names none of who's that waits.
func (ts *Calls) Resume(ctx context.Context, state, who, tool string, arguments []byte, answer mcp.InputResponseMap) (res *mcp.CallToolResult, err error, ok bool) {
	p, ok := OpenState(state)
	if !ok || p.Who != who || time.Now().Unix() >= p.Until || p.Call != Digest(tool, arguments) {
		return nil, nil, false
	}
	t := ts.unpark(p.ID)
	if t == nil {
		return nil, nil, false
	}
	said, _ := answer[QuestionName].(*mcp.ElicitResult)
	t.asked.answer <- said
	res, err = ts.follow(ctx, t)
	return res, err, true
}

// follow waits for the end of a call, or for a question of it.
func (ts *Calls) follow(ctx context.Context, t *conversation) (*mcp.CallToolResult, error) {
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
			if state, ok := ts.park(t, q); ok {
				return &mcp.CallToolResult{Content: []mcp.Content{}, InputRequests: mcp.InputRequestMap{QuestionName: q.params}, RequestState: state}, nil
			}
			q.answer <- nil
			stop = context.AfterFunc(ctx, t.cancel)
		}
	}
}

// QuestionName is what a question is called between server and client.
const QuestionName = "question"

// park keeps a call until its question is answered, if there is room.
func (ts *Calls) park(t *conversation, q question) (state string, ok bool) {
	var random [16]byte
	rand.Read(random[:]) // never fails
	id := hex.EncodeToString(random[:])
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.all) >= MaxCalls {
		return "", false
	}
	if ts.all == nil {
		ts.all = map[string]*conversation{}
	}
	ts.all[id] = t
	t.asked = q
	t.timer = time.AfterFunc(patienceAsking, func() {
		if ts.unpark(id) != nil {
			t.cancel()
		}
	})
	return SealState(State{ID: id, Who: t.who, Call: t.digest, Until: time.Now().Add(patienceAsking).Unix()}), true
}

// Parked reports whether a call waits for what its client brings back.
func (ts *Calls) Parked() bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return len(ts.all) > 0
}

// unpark gives the call of a name, once; nil: there is none.
func (ts *Calls) unpark(id string) *conversation {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.all[id]
	delete(ts.all, id)
	if t != nil {
		t.timer.Stop()
	}
	return t
}

// End ends the calls that wait for a person, and returns when they have ended.
func (ts *Calls) End() {
	ts.mu.Lock()
	all := ts.all
	ts.all = nil
	ts.mu.Unlock()
	for _, t := range all {
		t.timer.Stop()
		t.cancel()
		<-t.ended
	}
}

// maxSorted is the longest arguments of which the order of members is no difference: for that values of
// Go are made of them, of which nobody counts the memory.
const maxSorted = 64 << 10

// Digest is the same for the same call, as clients send it again.
func Digest(tool string, arguments []byte) string {
	var v any
	if len(arguments) > maxSorted {
		var compact bytes.Buffer
		if json.Compact(&compact, arguments) == nil {
			arguments = compact.Bytes()
		}
	} else if pifjson.Decode(arguments, &v) == nil {
		arguments = wire.Encode(v) // members in order
	}
	h := sha256.New()
	h.Write([]byte(tool + "\x00"))
	h.Write(arguments)
	return hex.EncodeToString(h.Sum(nil))
}

// A State call is what a client brings back of it.
type State struct {
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

func SealState(p State) string {
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

// OpenState reads what seal wrote, and nothing else.
func OpenState(state string) (p State, ok bool) {
	body, _, _ := strings.Cut(state, ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	// All of it is compared: the decoder passes over line ends.
	if err != nil || !hmac.Equal([]byte(state), []byte(sealed(text))) {
		return p, false
	}
	return p, json.Unmarshal(text, &p) == nil
}
