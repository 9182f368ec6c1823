package mcpserver

import (
	"context"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A client of the newer protocol may have several subscriptions on one connection. The
// SDK (v1.8.0) tells the one that began last alone of changed lists, and none any
// more once any of them has ended. Here each is told what it asked for: listening sees
// them begin and end, telling gives what is sent for one of them to all.

// listens is the subscriptions of each session.
type listens struct {
	mu sync.Mutex
	of map[*mcp.ServerSession]*listeners
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
	begun bool // the client was told that it is one
	id    any
	wants mcp.NotificationSubscriptions
}

// listenKey is the context's key for the subscription that a client began, keeperKey
// for what is closed when the SDK knows one that nobody began.
type (
	listenKey struct{}
	keeperKey struct{}
)

const acknowledged = "notifications/subscriptions/acknowledged"

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
		l := &listen{of: its, asked: ctx, req: r}
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
	ctx, cancel := context.WithCancel(context.WithValue(first.ctx, keeperKey{}, known))
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
			if known, ok := ctx.Value(keeperKey{}).(chan struct{}); ok {
				close(known)
				return nil, nil
			}
			l, _ := ctx.Value(listenKey{}).(*listen)
			p, _ := req.GetParams().(*mcp.SubscriptionsAcknowledgedParams)
			if l != nil && p != nil {
				s.listens.begin(l, p)
				defer l.of.keeping.Unlock()
			}
			return next(ctx, method, req)
		}
		wanted := wantedBy(method, req)
		session, _ := req.GetSession().(*mcp.ServerSession)
		if wanted == nil || session == nil || req.GetParams().GetMeta()[mcp.MetaKeySubscriptionID] == nil {
			return next(ctx, method, req)
		}
		for _, id := range s.listens.who(session, wanted) {
			req.GetParams().SetMeta(map[string]any{mcp.MetaKeySubscriptionID: id})
			if res, err := next(ctx, method, req); err != nil {
				return res, err
			}
		}
		return nil, nil
	}
}

// wantedBy says which subscriptions a notification is for; nil: it is for none.
func wantedBy(method string, req mcp.Request) func(*mcp.NotificationSubscriptions) bool {
	switch method {
	case "notifications/tools/list_changed":
		return func(n *mcp.NotificationSubscriptions) bool { return n.ToolsListChanged }
	case "notifications/prompts/list_changed":
		return func(n *mcp.NotificationSubscriptions) bool { return n.PromptsListChanged }
	case "notifications/resources/list_changed":
		return func(n *mcp.NotificationSubscriptions) bool { return n.ResourcesListChanged }
	case "notifications/resources/updated":
		if p, ok := req.GetParams().(*mcp.ResourceUpdatedNotificationParams); ok {
			return func(n *mcp.NotificationSubscriptions) bool { return slices.Contains(n.ResourceSubscriptions, p.URI) }
		}
	}
	return nil
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
	l.of.all = append(l.of.all, l)
}

// who is the ids of a session's subscriptions that want something.
func (ls *listens) who(session *mcp.ServerSession, wanted func(*mcp.NotificationSubscriptions) bool) (ids []any) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if its := ls.of[session]; its != nil {
		for _, l := range its.all {
			if wanted(&l.wants) {
				ids = append(ids, l.id)
			}
		}
	}
	return ids
}
