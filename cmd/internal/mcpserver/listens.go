package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/help"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// A client of the newer protocol may have several subscriptions on one connection. The
// SDK (v1.8.0) tells the one that began last alone of changed lists, and none any
// more once any of them has ended. Here each is told what it asked for: listening sees
// them begin and end, telling gives what is sent for one of them to all. The SDK also
// drops what changes while it knows of no subscription: a client doesn't wait for its
// acknowledgement before it lists the tools, so catchUp tells the client afterwards.

// listens is the subscriptions of each session, and what they can be told of. A change
// is known by its notification's method, that of a resource by its address.
type listens struct {
	mu      sync.Mutex
	of      map[*mcp.ServerSession]*listeners
	changes uint64            // how many there were
	changed map[string]uint64 // which of them was the last, of what has changed
	before  uint64            // which of them may be the last of what isn't in changed
}

// listeners is the subscriptions of one session.
type listeners struct {
	// keeping is held while the SDK enters one, up to its acknowledgement, and while it
	// takes one out, up to when it knows the others again.
	keeping sync.Mutex
	// users is how many are beginning, there or ending.
	users int
	all   []*listen
	// stop ends the listen that stands in the SDK for those whose own was dropped
	// there, and waits until it has ended; nil: there is none.
	stop func()
}

// A listen is one subscription.
type listen struct {
	of    *listeners
	asked context.Context // until the client, or its session, ends it
	ctx   context.Context // as the SDK's handler has it
	req   *mcp.SubscriptionsListenRequest
	since uint64 // how many changes there had been when its session began
	begun bool   // the client was told that it is one
	id    any
	wants mcp.NotificationSubscriptions
	told  map[string]uint64 // of each change it wants, how many there had been when it was told last
}

// A keeper is a listen that nobody began; see keep.
type keeper struct {
	all   []*listen
	known chan struct{} // closed when the SDK knows it
}

// listenKey is the context's key for the subscription that a client began, keeperKey
// for one that nobody began, sinceKey for how many changes there had been when the session
// began. Over HTTP each request is a session, and nobody knows what its client saw: there
// it is 0, when the server began.
type (
	listenKey struct{}
	keeperKey struct{}
	sinceKey  struct{}
)

const (
	acknowledged     = "notifications/subscriptions/acknowledged"
	toolsChanged     = "notifications/tools/list_changed"
	promptsChanged   = "notifications/prompts/list_changed"
	resourcesChanged = "notifications/resources/list_changed"
	resourceUpdated  = "notifications/resources/updated"
)

// listening follows the subscriptions of clients.
func (s *Server) listening(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		r, ok := req.(*mcp.SubscriptionsListenRequest)
		if !ok || r.Params == nil || r.Params.Notifications == nil {
			return next(ctx, method, req)
		}
		its := s.listens.enter(r.Session)
		defer s.listens.leave(r.Session, its)
		inner, end := context.WithCancel(context.WithoutCancel(ctx))
		defer end()
		since, _ := ctx.Value(sinceKey{}).(uint64)
		r = with(r, func(p *mcp.SubscriptionsListenParams) { p.Notifications = s.present(r) })
		l := &listen{of: its, asked: ctx, req: r, since: since}
		l.ctx = context.WithValue(inner, listenKey{}, l)

		its.keeping.Lock() // until it is acknowledged
		ending := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			its.keeping.Lock()
			close(ending)
			end()
		})
		res, err := next(l.ctx, method, r)
		switch ended := !stop(); {
		case ended && l.begun:
			<-ending
		case ended:
			s.unlisten(l, next)
			its.keeping.Unlock()
			<-ending
			its.keeping.Unlock()
			return res, err
		case l.begun: // and it was over at once
			its.keeping.Lock()
		}
		s.unlisten(l, next)
		its.keeping.Unlock()
		return res, err
	}
}

// present returns what a subscription asks for without the resources that there aren't, unless it asks for nothing else: a client
// that comes back may not know that one was retired, and would hear of nothing. What is left is what is acknowledged.
func (s *Server) present(r *mcp.SubscriptionsListenRequest) *mcp.NotificationSubscriptions {
	wants := *r.Params.Notifications
	left := slices.DeleteFunc(slices.Clone(wants.ResourceSubscriptions), func(uri string) bool {
		absent := new(jsonrpc.Error)
		err := s.subscribe(context.Background(), &mcp.SubscribeRequest{Session: r.Session, Params: &mcp.SubscribeParams{URI: uri, Meta: r.Params.Meta}})
		return errors.As(err, &absent) && absent.Message == noResource
	})
	if wants.ToolsListChanged || wants.PromptsListChanged || wants.ResourcesListChanged || len(left) > 0 {
		wants.ResourceSubscriptions = left
	}
	return &wants
}

// unlisten takes out a subscription that has ended, and has the SDK know the others.
// The caller holds keeping.
func (s *Server) unlisten(l *listen, next mcp.MethodHandler) {
	its := l.of
	if its.stop != nil {
		its.stop()
		its.stop = nil
	}
	s.listens.mu.Lock()
	its.all = slices.DeleteFunc(its.all, func(other *listen) bool { return other == l })
	left := slices.Clone(its.all)
	s.listens.mu.Unlock()
	// Those that are ending, too, as all do with their session, need nothing more.
	if left = slices.DeleteFunc(left, func(other *listen) bool { return other.asked.Err() != nil }); len(left) > 0 {
		its.stop = s.keep(left, next)
	}
}

// keep begins a listen that nobody is told of, for all that the subscriptions want, and
// returns when the SDK knows it.
func (s *Server) keep(all []*listen, next mcp.MethodHandler) (stop func()) {
	first := all[0]
	params := *first.req.Params
	wants := &mcp.NotificationSubscriptions{}
	seen := map[string]bool{}
	for _, l := range all {
		wants.ToolsListChanged = wants.ToolsListChanged || l.wants.ToolsListChanged
		wants.PromptsListChanged = wants.PromptsListChanged || l.wants.PromptsListChanged
		wants.ResourcesListChanged = wants.ResourcesListChanged || l.wants.ResourcesListChanged
		for _, uri := range l.wants.ResourceSubscriptions {
			if seen[uri] {
				continue
			}
			seen[uri] = true
			// One that was retired meanwhile would have all of it refused.
			r := &mcp.SubscribeRequest{Session: first.req.Session, Params: &mcp.SubscribeParams{URI: uri, Meta: params.Meta}}
			if s.subscribe(l.ctx, r) == nil {
				wants.ResourceSubscriptions = append(wants.ResourceSubscriptions, uri)
			}
		}
	}
	params.Notifications = wants
	req := &mcp.SubscriptionsListenRequest{Session: first.req.Session, Params: &params, Extra: first.req.Extra}
	known, ended := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(context.WithValue(first.ctx, keeperKey{}, &keeper{all, known}))
	go func() {
		defer close(ended)
		if _, err := next(ctx, "subscriptions/listen", req); err != nil {
			s.log.Debug("subscriptions are not kept", "error", err)
		}
	}()
	select {
	case <-known:
	case <-ended:
	}
	return func() {
		cancel()
		<-ended
	}
}

// telling gives each subscription what one is sent.
func (s *Server) telling(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == acknowledged {
			if k, ok := ctx.Value(keeperKey{}).(*keeper); ok {
				defer close(k.known)
				return nil, s.catchUp(ctx, next, k.all...)
			}
			l, _ := ctx.Value(listenKey{}).(*listen)
			p, _ := req.GetParams().(*mcp.SubscriptionsAcknowledgedParams)
			if l == nil || p == nil {
				return next(ctx, method, req)
			}
			s.listens.begin(l, p)
			defer l.of.keeping.Unlock()
			if res, err := next(ctx, method, req); err != nil {
				return res, err
			}
			return nil, s.catchUp(ctx, next, l)
		}
		change := changeOf(method, req)
		session, _ := req.GetSession().(*mcp.ServerSession)
		if change == "" || session == nil || req.GetParams().GetMeta()[mcp.MetaKeySubscriptionID] == nil {
			return next(ctx, method, req)
		}
		for _, id := range s.listens.tell(session, change) {
			req.GetParams().SetMeta(map[string]any{mcp.MetaKeySubscriptionID: id})
			if res, err := next(ctx, method, req); err != nil {
				return res, err
			}
		}
		return nil, nil
	}
}

// catchUp tells subscriptions what changed while the SDK knew of none.
func (s *Server) catchUp(ctx context.Context, next mcp.MethodHandler, all ...*listen) error {
	for _, l := range all {
		meta := mcp.Meta{mcp.MetaKeySubscriptionID: l.id}
		for _, change := range s.listens.missed(l) {
			method, req := change, mcp.Request(nil)
			switch change {
			case toolsChanged:
				req = notification(l, &mcp.ToolListChangedParams{Meta: meta})
			case promptsChanged:
				req = notification(l, &mcp.PromptListChangedParams{Meta: meta})
			case resourcesChanged:
				req = notification(l, &mcp.ResourceListChangedParams{Meta: meta})
			default:
				method, req = resourceUpdated, notification(l, &mcp.ResourceUpdatedNotificationParams{Meta: meta, URI: change})
			}
			if _, err := next(ctx, method, req); err != nil {
				return err
			}
		}
	}
	return nil
}

func notification[P mcp.Params](l *listen, params P) mcp.Request {
	return &mcp.ServerRequest[P]{Session: l.req.Session, Params: params}
}

// changeOf returns what a notification tells of; "": nothing that can be subscribed to.
func changeOf(method string, req mcp.Request) string {
	switch method {
	case toolsChanged, promptsChanged, resourcesChanged:
		return method
	case resourceUpdated:
		if p, ok := req.GetParams().(*mcp.ResourceUpdatedNotificationParams); ok {
			return p.URI
		}
	}
	return ""
}

// enter gives the subscriptions of a session, which leave is to be called for.
func (ls *listens) enter(session *mcp.ServerSession) *listeners {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	its := ls.of[session]
	if its == nil {
		if ls.of == nil {
			ls.of = map[*mcp.ServerSession]*listeners{}
		}
		its = &listeners{}
		ls.of[session] = its
	}
	its.users++
	return its
}

func (ls *listens) leave(session *mcp.ServerSession, its *listeners) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if its.users--; its.users == 0 {
		delete(ls.of, session)
	}
}

// begin makes a subscription one that is told of what it wants.
func (ls *listens) begin(l *listen, p *mcp.SubscriptionsAcknowledgedParams) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.begun, l.id, l.wants = true, p.Meta[mcp.MetaKeySubscriptionID], p.Notifications
	l.told = map[string]uint64{}
	for _, uri := range l.wants.ResourceSubscriptions {
		l.told[uri] = l.since
	}
	for change, wanted := range map[string]bool{
		toolsChanged: l.wants.ToolsListChanged, promptsChanged: l.wants.PromptsListChanged, resourcesChanged: l.wants.ResourcesListChanged,
	} {
		if wanted {
			l.told[change] = l.since
		}
	}
	l.of.all = append(l.of.all, l)
}

// maxChanged is of how much it is known when it changed last: names of tools come and go.
const maxChanged = 10_000

// note counts changes. It must be called before the SDK is told of them, so that a
// subscription that the SDK doesn't know by then finds them here.
func (ls *listens) note(changes ...string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.changed == nil {
		ls.changed = map[string]uint64{}
	}
	for _, change := range changes {
		if len(ls.changed) >= maxChanged {
			clear(ls.changed)
			ls.before = ls.changes
		}
		ls.changes++
		ls.changed[change] = ls.changes
	}
}

// noted returns how many changes there were.
func (ls *listens) noted() uint64 {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.changes
}

// tell returns the ids of a session's subscriptions that want a change, which are told of
// it then.
func (ls *listens) tell(session *mcp.ServerSession, change string) (ids []any) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if its := ls.of[session]; its != nil {
		for _, l := range its.all {
			if _, wanted := l.told[change]; wanted {
				l.told[change] = ls.changes
				ids = append(ids, l.id)
			}
		}
	}
	return ids
}

// missed returns the changes that a subscription wants and wasn't told of. It is told of
// them then.
func (ls *listens) missed(l *listen) (changes []string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, change := range slices.Sorted(maps.Keys(l.told)) {
		if max(ls.changed[change], ls.before) > l.told[change] {
			l.told[change] = ls.changes
			changes = append(changes, change)
		}
	}
	return changes
}

// subscribe says whether an address can be watched. It must be written as this
// server writes it, so that a client can't watch one thing under many names.
func (s *Server) subscribe(_ context.Context, req *mcp.SubscribeRequest) error {
	uri := req.Params.URI
	a, ok := parseAddress(uri)
	if !ok {
		return notFound(req.ProtocolVersion(), uri)
	}
	switch {
	case uri == capabilitiesURI:
		return nil
	case a.parts[0] == "tools" && len(a.parts) == 2 && len(a.query) == 0:
		if _, ok := s.Latest().Get(a.parts[1]); !ok {
			return notFound(req.ProtocolVersion(), uri)
		}
		if want := wire.ToolURI(a.parts[1]); uri != want {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "to be watched, this resource is written " + want}
		}
		return nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("this resource can't be watched; %s and pif://tools/NAME can", capabilitiesURI)}
}

// publishing is what clients were told of.
type publishing struct {
	mu      sync.Mutex
	as      map[string]string // how tools are published that are
	granted []string          // what is granted, and the secrets there are
	updates map[string]bool   // addresses that clients are still to be told of
	telling bool
}

// watchPublished begins with what there is.
func (s *Server) watchPublished() {
	s.publish.as, s.publish.updates = map[string]string{}, map[string]bool{}
	for _, t := range s.tools.Snapshot().All() {
		if t.As != registry.AsTool {
			s.publish.as[t.Name] = t.As
		}
	}
	s.publish.granted = s.granted()
}

// granted is what the resource of capabilities depends on.
func (s *Server) granted() []string {
	policy := s.broker.Policy()
	grants, ofServers := help.Grants(policy)
	return slices.Concat(grants, ofServers, policy.SecretTexts())
}

// changedPublished tells clients what else is another when tools are: the lists of
// prompts and of resources, and the resources they watch.
func (s *Server) changedPublished(names []string, tools *registry.Snapshot) {
	uris := make([]string, len(names))
	prompts := false
	s.publish.mu.Lock()
	for i, name := range names {
		uris[i] = wire.ToolURI(name)
		as := ""
		if t, ok := tools.Get(name); ok {
			as = t.As
		}
		prompts = prompts || as == registry.AsPrompt || s.publish.as[name] == registry.AsPrompt
		if as == registry.AsTool {
			delete(s.publish.as, name)
		} else {
			s.publish.as[name] = as
		}
	}
	s.publish.mu.Unlock()
	// The SDK tells clients of its own lists; see changed.
	if prompts {
		s.listens.note(promptsChanged)
		s.mcp.AddPrompt(fixedPrompts[0].declare(), s.prompt)
	}
	s.listens.note(resourcesChanged)
	s.mcp.AddResource(fixedResources[1], s.read)
	s.updated(uris...)
}

// changedGrants tells clients if something else is granted now than they were told.
func (s *Server) changedGrants() {
	now := s.granted()
	s.publish.mu.Lock()
	same := slices.Equal(now, s.publish.granted)
	s.publish.granted = now
	s.publish.mu.Unlock()
	if !same {
		s.updated(capabilitiesURI)
	}
}

// updated tells those who watch an address, without waiting for them: one that
// changes often meanwhile is told of once.
func (s *Server) updated(uris ...string) {
	s.listens.note(uris...)
	s.publish.mu.Lock()
	defer s.publish.mu.Unlock()
	for _, uri := range uris {
		s.publish.updates[uri] = true
	}
	if !s.publish.telling && len(s.publish.updates) > 0 {
		s.publish.telling = true
		go s.tellUpdates()
	}
}

// tellUpdates tells until there is nothing more to tell.
func (s *Server) tellUpdates() {
	for {
		s.publish.mu.Lock()
		todo := s.publish.updates
		s.publish.updates = map[string]bool{}
		s.publish.telling = len(todo) > 0
		s.publish.mu.Unlock()
		if len(todo) == 0 {
			return
		}
		for _, uri := range slices.Sorted(maps.Keys(todo)) {
			if err := s.mcp.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
				s.log.Debug("an update not sent", "uri", uri, "err", err)
			}
		}
	}
}
