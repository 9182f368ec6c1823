package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/jsonvalue"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
	"github.com/mcp-pif/mcp-pif/plugins/mcplogin"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// An upstream is the server that the settings name, and the sessions with it.
type upstream struct {
	settings   Settings
	operations map[string]*operation
	room       chan struct{} // held by each call that is under way
	log        *logger
	tokens     atomic.Uint64
	login      *mcplogin.Source              // nil: nobody logs in
	hide       atomic.Pointer[caps.Scrubber] // the login's tokens
	hidden     []*caps.Secret                // those that it takes out: of the source's lock

	mu        sync.Mutex
	state     string // the folder of what lasts; empty: none
	command   *sdk.Command
	sessions  map[string]*session // by the run, or one under ""
	opened    int                 // capabilities
	failed    error               // why the last session wasn't made
	notUntil  time.Time           // when the next is tried
	told      map[string]bool     // what the operator was told of the server's list
	processes []<-chan struct{}   // closed when nothing of a process is left
}

// An operation is a tool of the server.
type operation struct {
	*caps.Operation
	word  string
	tool  *mcplock.Tool
	flags caps.Flags
	// output reads what the tool declared that it answers, when that is first needed; nil: nothing.
	output func() *check.Foreign
}

// repeatable reports whether a second time changes nothing more.
func (o *operation) repeatable() bool { return o.flags.ReadOnly || o.flags.Idempotent }

func newUpstream(s Settings, m *caps.Manifest) *upstream {
	if s.Concurrent == 0 {
		s.Concurrent = defaultConcurrent
		if s.Elicit && s.Server.Protocol < stateless {
			s.Concurrent = 1
		}
	}
	s.Idle = cmp.Or(s.Idle, defaultIdle)
	u := &upstream{
		settings: s, operations: map[string]*operation{}, room: make(chan struct{}, s.Concurrent),
		log: &logger{name: s.Name, to: os.Stderr}, sessions: map[string]*session{}, told: map[string]bool{},
	}
	u.log.scrub = u.hide.Load
	u.log.keepOut(s.Env, s.Headers)
	if s.Login != "" && s.Server.URL != "" {
		u.login = mcplogin.NewSource(s.Login, s.Server.URL, u.hideTokens)
	}
	if s.Probe {
		return u
	}
	for i := range m.Operations {
		o := &operation{Operation: &m.Operations[i]}
		_, o.word, _ = strings.Cut(o.Name, ".")
		o.tool = s.Server.Tools[o.word]
		verb, _ := m.Verb(o.Verb)
		o.flags = verb.Flags
		o.output = sync.OnceValue(func() *check.Foreign {
			f, _ := check.FromSchema(o.tool.Output, check.MaxAnswer) // an object of the lock, or there is none
			return f
		})
		u.operations[o.Name] = o
	}
	return u
}

// hideTokens keeps tokens out of what comes back from now on.
func (u *upstream) hideTokens(tokens []string) {
	for _, t := range tokens {
		// What is longer than a secret can be is of no use without its end, the signature.
		if s, err := caps.NewSecret(caps.Binding{Name: u.settings.Name + ".login"}, t[max(0, len(t)-maxToken):]); err == nil &&
			!slices.ContainsFunc(u.hidden, func(o *caps.Secret) bool { return o.Value() == s.Value() }) {
			u.hidden = append(u.hidden, s)
		}
	}
	u.hidden = u.hidden[max(0, len(u.hidden)-maxHidden):]
	u.hide.Store(caps.NewScrubber(u.hidden))
}

// maxToken is the bytes of a token that are looked for, maxHidden the tokens: earlier ones may
// still be good somewhere.
const maxToken, maxHidden = 2048, 24

// A capability is an open one.
type capability struct {
	u    *upstream
	most int64 // bytes of an answer
}

// maxAnswer is the bytes of an answer where the capability says nothing.
const maxAnswer = 8 << 20

func (u *upstream) open(c sdk.Capability) *capability {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.opened++
	u.state, u.command = c.State, c.Command
	if dir := u.stateDir(); dir != "" {
		u.log.mu.Lock()
		u.log.file = filepath.Join(dir, LogName)
		u.log.mu.Unlock()
	}
	most := c.Max
	if most <= 0 {
		most = maxAnswer
	}
	return &capability{u: u, most: most}
}

// endTimeout is how long the server's processes may take to be gone when they were ended.
const endTimeout = 10 * time.Second

// Close ends the sessions with the last capability, and waits until nothing of the server is left that writes
// to its folder.
func (c *capability) Close() error {
	u := c.u
	u.mu.Lock()
	isLast := u.opened == 1
	var rest []*session
	if u.opened--; u.opened == 0 {
		rest = slices.Collect(maps.Values(u.sessions))
		clear(u.sessions)
	}
	u.mu.Unlock()
	var ending sync.WaitGroup
	for _, s := range rest {
		ending.Go(s.end)
	}
	ending.Wait() // no longer than one takes
	if !isLast {
		return nil
	}
	late := time.After(endTimeout)
	wait := func(c <-chan struct{}) {
		select {
		case <-c:
		case <-late:
		}
	}
	for _, s := range rest {
		wait(s.ready) // one that was being begun gives up
	}
	u.mu.Lock()
	processes := slices.Clone(u.processes)
	u.mu.Unlock()
	for _, over := range processes {
		wait(over)
	}
	return nil
}

// perform performs an operation.
func (u *upstream) perform(ctx context.Context, c *capability, name string, args value.Value) (value.Value, error) {
	if u.hops(ctx) > maxHops {
		return nil, sdk.Fail("denied", "%s would be the server of a server of a server of mcp-pif: more than %d in a row are refused", u.settings.Name, maxHops).
			WithHint("Tell the user: the operator's servers call each other in a circle, or in too long a row.")
	}
	select {
	case u.room <- struct{}{}:
	case <-ctx.Done():
		return nil, notSent("other calls of the server were under way until its time was over")
	}
	defer func() { <-u.room }()
	if ctx.Err() != nil {
		return nil, notSent("there was no time left for it")
	}
	if u.settings.Probe {
		return u.look(ctx, c, name, args)
	}
	o := u.operations[name]
	text, err := o.arguments(args)
	if err != nil {
		return nil, err
	}
	for tries := 0; ; tries++ {
		s, err := u.session(ctx)
		if err != nil {
			return nil, err
		}
		v, trouble := s.perform(ctx, o, text, c.most)
		u.release(s, trouble)
		if trouble == nil {
			return v, nil
		}
		// Once more where nothing was sent, or where that changes nothing.
		if tries == 0 && ctx.Err() == nil && trouble.isLost && (!trouble.wasSent || o.repeatable()) {
			continue
		}
		return nil, trouble.failure
	}
}

// hops is how many of these programs are in a row when a request reaches the server.
func (u *upstream) hops(ctx context.Context) int {
	return max(u.settings.Hops, sdk.Hops(ctx)) + 1
}

// arguments writes the arguments of a call, by their names on the wire.
func (o *operation) arguments(args value.Value) (json.RawMessage, error) {
	record, ok := args.(*value.Record)
	if args == nil {
		record, ok = &value.Record{}, true
	}
	if !ok {
		return nil, sdk.Fail("invalid", "the arguments are a record")
	}
	out := []byte{'{'}
	for _, f := range record.Fields {
		text, err := jsonvalue.Write(f.Value)
		if err != nil {
			return nil, sdk.Fail("invalid", "the argument %q: %s", short(f.Key), err)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		name := f.Key
		for _, p := range o.Takes() {
			if p.Name == f.Key && p.Wire != "" {
				name = p.Wire
			}
		}
		if name == f.Key && o.tool.Params[f.Key] != "" {
			name = o.tool.Params[f.Key]
		}
		key, err := jsonvalue.Write(value.Str(name))
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, key...), ':'), text...)
	}
	return append(out, '}'), nil
}

// session gives the session that a request belongs to, made if there is none.
func (u *upstream) session(ctx context.Context) (*session, error) {
	key := ""
	if u.settings.Session == "run" {
		key = runOf(ctx)
	}
	u.mu.Lock()
	s := u.sessions[key]
	if s == nil || s.hasEnded() {
		if time.Now().Before(u.notUntil) {
			defer u.mu.Unlock()
			return nil, u.failed
		}
		s = newSession(u, key)
		u.sessions[key] = s
		go s.connect()
	}
	s.users++
	if s.idle != nil {
		s.idle.Stop()
	}
	u.mu.Unlock()
	select {
	case <-s.ready:
		if s.failed == nil {
			return s, nil
		}
		u.release(s, nil)
		return nil, s.failed
	case <-ctx.Done():
		u.release(s, nil)
		return nil, notSent("the server was still starting")
	}
}

// release gives a session back after a request. One that is of no use is ended, when nobody
// uses it any more; another lasts as long as it may be idle.
func (u *upstream) release(s *session, t *trouble) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s.users--
	if t != nil && t.isLost || s.hasEnded() {
		u.forget(s)
	}
	if s.users > 0 {
		return
	}
	if u.sessions[s.key] != s {
		go s.end()
		return
	}
	s.idle = time.AfterFunc(u.settings.Idle, func() {
		u.mu.Lock()
		isIdle := s.users == 0
		if isIdle {
			u.forget(s)
		}
		u.mu.Unlock()
		if isIdle {
			s.end()
		}
	})
}

// forget takes a session out, so that the next request makes another. The caller holds mu.
func (u *upstream) forget(s *session) {
	if u.sessions[s.key] == s {
		delete(u.sessions, s.key)
	}
}

// runOf is the run that a request belongs to: the part of its key that its other requests
// have too.
func runOf(ctx context.Context) string {
	key := sdk.Key(ctx)
	if at := strings.LastIndexByte(key, '-'); at > 0 {
		return key[:at]
	}
	return key
}

// retryDelay is how long after a session that couldn't be made the next is tried.
const retryDelay = time.Second

// rejected notes that a session couldn't be made.
func (u *upstream) rejected(s *session, why error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.failed, u.notUntil = why, time.Now().Add(retryDelay)
	u.forget(s)
}
