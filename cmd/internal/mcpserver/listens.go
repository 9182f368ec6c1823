package mcpserver

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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
		l := &listen{of: its, asked: ctx, req: r, since: since}
		l.ctx = context.WithValue(inner, listenKey{}, l)

		its.keeping.Lock() // until it is acknowledged
		ending := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			its.keeping.Lock()
			close(ending)
			end()
		})
		res, err := next(l.ctx, method, req)
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

// note counts changes. It must be called before the SDK is told of them, so that a
// subscription that the SDK doesn't know by then finds them here.
func (ls *listens) note(changes ...string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.changed == nil {
		ls.changed = map[string]uint64{}
	}
	for _, change := range changes {
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
		if ls.changed[change] > l.told[change] {
			l.told[change] = ls.changes
			changes = append(changes, change)
		}
	}
	return changes
}
