package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	sdkmcp "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// The bounds of a list of tools, and how often it is read again.
const (
	maxPages     = 100
	maxTools     = 2000
	maxListed    = 4 << 20 // bytes
	relistEvery  = 5 * time.Second
	relistWithin = 30 * time.Second
)

// tools reads all pages of the list. ttl is how long the server says it is good; 0: it
// doesn't say.
func (s *session) tools(ctx context.Context) (listed []json.RawMessage, ttl time.Duration, err error) {
	left, cursors := int64(maxListed), map[string]bool{}
	for cursor := ""; ; {
		if len(cursors) == maxPages {
			return nil, 0, fmt.Errorf("the list has more than %d pages", maxPages)
		}
		cursors[cursor] = true
		x := &exchange{most: left}
		_, err := s.client.ListTools(exchanging(ctx, x), &sdkmcp.ListToolsParams{Cursor: cursor})
		raw, trouble := x.result()
		if err := cmp.Or(trouble, err); err != nil {
			return nil, 0, err
		}
		var page struct {
			Tools      []json.RawMessage `json:"tools"`
			NextCursor string            `json:"nextCursor"`
			TTL        int64             `json:"ttlMs"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, 0, errors.New("a page of the list can't be read")
		}
		left -= int64(len(raw))
		listed = append(listed, page.Tools...)
		if ttl = 0; page.TTL > 0 {
			ttl = time.Duration(min(page.TTL, int64(24*time.Hour/time.Millisecond))) * time.Millisecond
		}
		switch cursor = page.NextCursor; {
		case len(listed) > maxTools:
			return nil, 0, fmt.Errorf("the list has more than %d tools", maxTools)
		case cursor == "":
			return listed, ttl, nil
		case cursors[cursor]:
			return nil, 0, errors.New("the list begins again after its end")
		}
	}
}

// errOther is why a list isn't held to the lock at all.
var errOther = errors.New("another server answers at its URL")

// list reads the list and holds it to the lock.
func (s *session) list(ctx context.Context) {
	listed, ttl, err := s.tools(ctx)
	var d mcplock.Difference
	if name := s.called(); err == nil && s.u.settings.Server.IsOther(name) {
		err = errOther
		s.u.log.quote("another server than the one that was added answers at its URL, so that all of its tools are held", name)
	} else if err == nil {
		d = mcplock.Compare(s.u.settings.Server, listed)
		s.u.tell(&d)
	} else {
		s.u.log.quote("its list of tools can't be read", err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unreadable, s.listed = err, time.Now()
	if err != nil {
		s.isStale = true // until it can be read
		return
	}
	s.difference, s.ttl = d, ttl
	clear(s.gone)
	for _, word := range d.Gone {
		s.gone[word] = true
	}
}

// relist reads the list again where it is due, and waits for that. A server that says all
// the time that its list changed is asked every five seconds.
func (s *session) relist(ctx context.Context) {
	s.mu.Lock()
	now := time.Now()
	isDue := s.isStale || s.ttl > 0 && now.Sub(s.listed) >= s.ttl
	if isDue && s.listing == nil && now.Sub(s.relisted) >= relistEvery {
		listing := make(chan struct{})
		s.listing, s.relisted, s.isStale = listing, now, false
		go func() {
			ctx, cancel := context.WithTimeout(s.ctx, relistWithin)
			defer cancel()
			s.read(ctx)
			s.mu.Lock()
			s.listing = nil
			s.mu.Unlock()
			close(listing)
		}()
	}
	listing := s.listing
	s.mu.Unlock()
	if listing == nil {
		return
	}
	select {
	case <-listing:
	case <-ctx.Done():
	}
}

// suspect has the list read again before the next call: the server doesn't know a tool, or
// its arguments, as it listed them.
func (s *session) suspect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isStale = true
}

// hold refuses a tool that isn't as it was accepted.
func (s *session) hold(ctx context.Context, o *operation) error {
	s.relist(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.u.settings.Name
	if s.unreadable == errOther {
		return sdk.Fail("denied", "another server than the one that was added answers at the URL of %s, so that all of its tools are held; the operator sees how with mcp-pif mcp diff %[1]s", name).
			WithHint("Tell the user.")
	}
	if s.unreadable != nil {
		return sdk.Fail("denied", "what %s lists can't be read, so that all of its tools are held", name).
			WithHint("Tell the user: mcp-pif mcp test " + name + " tries it, and the operator's log says more.")
	}
	if held, ok := s.difference.Held[o.word]; ok {
		what := "changed " + o.word
		if held.Twice {
			what = "lists " + o.word + " more than once, which it didn't"
		}
		return sdk.Fail("denied", "%s %s since it was accepted%s; the operator sees how with mcp-pif mcp diff %s", name, what, s.u.since(o), name).
			WithHint("Tell the user. The server's other tools can be used.")
	}
	if s.gone[o.word] {
		return noLonger(name)
	}
	return nil
}

// noLonger is the failure of a tool that the server doesn't have.
func noLonger(name string) sdk.Failure {
	return sdk.Fail("not_found", "the server has it no longer").WithHint("Tell the user: mcp-pif mcp diff " + name + " shows what it has.")
}

// since is when a tool was accepted, as " on 3 Nov 2026".
func (u *upstream) since(o *operation) string {
	date := cmp.Or(o.tool.AcceptedOn, u.settings.Server.Added)
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return ""
	}
	return day.Format(" on 2 Jan 2006")
}

// tell logs what differs from the lock, once each.
func (u *upstream) tell(d *mcplock.Difference) {
	var news []string
	for _, word := range slices.Sorted(maps.Keys(d.Held)) {
		news = append(news, "it changed "+word+", which is held: see mcp-pif mcp diff "+u.settings.Name)
	}
	for _, word := range d.Gone {
		news = append(news, "it has "+word+" no longer")
	}
	for i, added := range d.Added {
		if i == 20 {
			news = append(news, "it has still more new tools")
			break
		}
		news = append(news, "it has a new tool, which doesn't exist for programs until it is accepted: "+strconv.QuoteToASCII(short(added.Tool)))
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, text := range news {
		if !u.told[text] && len(u.told) < 1000 {
			u.told[text] = true
			u.log.say(text)
		}
	}
}
