// Package ui is the page on which a person looks at what models made and did: tools, runs,
// authority, questions that wait, servers.
//
// It is a process of its own that opens stores as the command line does, to be read, beside
// any servers. It decides who may see it (door.go: loopback, a name of its own, a key that is
// good once, a cookie) and how words of models, plugins and servers are shown (words.go): all
// of them are a stranger's. It has no authority: it starts no plugin, a replay performs
// nothing, and without [Options.Act] it changes nothing. Approving stays at the terminal: a
// model with a browser could click.
//
// Pages are HTML from templates, and whole without script; the script adds keys and what comes
// while one looks. ui.go is the server; tools.go, runs.go, authority.go, waiting.go and act.go
// are a subject each, beside the templates in pages.
package ui

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/core/step"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// Options is what a page is made from.
type Options struct {
	// Profiles lists the stores that there are, by name.
	Profiles func() ([]string, error)
	// Open opens one of them; to read, or with write set for one action.
	Open func(name string, write bool) (*Store, error)
	// Flags names a store on a command line, as a shell takes it; nil: as --profile does.
	Flags func(name string) string
	// Questions is what waits for an answer.
	Questions *caps.Consents
	// Servers reads the lock file of MCP servers, and Problem says why one wouldn't be
	// started; "": nothing.
	Servers func() (*mcplock.Lock, error)
	Problem func(l *mcplock.Lock, name string) string
	// Changes starts a server and tells how its tools differ from the lock file.
	Changes func(ctx context.Context, l *mcplock.Lock, name string) ([]ServerChange, error)
	// Revocations is what the operator took back.
	Revocations caps.Revocations
	// Act lets the page retire, revoke and roll back.
	Act bool
	// Name is the host's name; "": one that only this start has.
	Name    string
	Version string
	Log     *slog.Logger
	Now     func() time.Time // nil: time.Now
}

// A Store is a profile's tools and journal.
type Store struct {
	Journal *journal.Store
	Tools   *registry.Registry
	Server  *engine.Engine
	Policy  *caps.Policy
	// Flow is where data may flow; nil: nothing is said.
	Flow *flow.Policy
	// Consents is what was answered to the tools' questions; nil: nothing.
	Consents *caps.Consents
	// Replay does a run again, with other code in its place unless with is "": TOOL@VERSION.
	Replay func(ctx context.Context, id, with string) (engine.Answer, run.Verdict, error)
	// Judge judges the requests of a run by Flow, by a replay.
	Judge func(ctx context.Context, id string) ([]run.FlowJudgement, error)
	// Walk gives what walks through a run; nil where that isn't possible, as the verdict says.
	Walk  func(ctx context.Context, id string) (*step.Walk, run.Verdict, error)
	Close func()

	newest  glancer
	sorted  sorted
	walking sync.Mutex
	walked  []walked
}

// A Page serves the pages. It is safe for concurrent use.
type Page struct {
	o       Options
	door    *door
	handler http.Handler

	mu     sync.Mutex
	stores map[string]*Store
	ended  bool
}

// New makes a page for a port.
func New(o Options, port int) *Page {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Flags == nil {
		o.Flags = func(name string) string { return "--profile " + name }
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	p := &Page{o: o, door: newDoor(o.Name, port, o.Now), stores: map[string]*Store{}}
	p.handler = p.door.guard(http.NewCrossOriginProtection().Handler(p.routes()))
	return p
}

// ServeHTTP implements [http.Handler].
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

// Link makes a key and gives the address that it opens, once and for a minute.
func (p *Page) Link() string { return p.door.link() }

// Close lets go of the stores.
func (p *Page) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for _, s := range p.stores {
		s.Close()
	}
	p.stores = nil
}

// Listen opens a port on loopback: on both of its addresses where there are two, since a
// browser may try either, and another user's program must not have the other.
func Listen(port int) (listeners []net.Listener, at int, err error) {
	for range 20 {
		four, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return nil, 0, err
		}
		at = four.Addr().(*net.TCPAddr).Port
		six, err := net.Listen("tcp6", fmt.Sprintf("[::1]:%d", at))
		switch {
		case err == nil:
			return []net.Listener{four, six}, at, nil
		case !inUse(err): // there is no IPv6
			return []net.Listener{four}, at, nil
		}
		four.Close()
		if port != 0 {
			return nil, 0, err
		}
	}
	return nil, 0, errors.New("no port is free on both addresses of loopback")
}

// Serve answers until ctx ends.
func (p *Page) Serve(ctx context.Context, listeners []net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &http.Server{
		Handler: p, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: slog.NewLogLogger(p.o.Log.Handler(), slog.LevelDebug),
	}
	done := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { done <- s.Serve(l) }()
	}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	err := <-done
	cancel()
	_ = s.Close()
	for range len(listeners) - 1 {
		<-done
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

//go:embed pages assets
var files embed.FS

// A request is what a page is made for.
type request struct {
	*http.Request
	page    *Page
	profile string
	store   *Store // nil: no profile's page
}

// A view is what a page shows.
type view struct {
	Template string // of pages
	Title    string
	Refresh  int // in seconds; 0: never
	Data     any
}

// missing is the error of what isn't there.
type missing string

func (m missing) Error() string { return string(m) }

// routes is the pages there are.
func (p *Page) routes() http.Handler {
	m := http.NewServeMux()
	assets, _ := fs.Sub(files, "assets")
	m.Handle("GET /assets/", http.StripPrefix("/assets/", http.FileServerFS(assets)))
	m.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if names, err := p.o.Profiles(); err == nil && len(names) == 1 {
			http.Redirect(w, r, at(names[0], ""), http.StatusSeeOther)
			return
		}
		p.show(w, r, "", showProfiles)
	})
	for path, show := range map[string]func(*request) (view, error){
		"{$}": showOverview, "tools": showTools, "tool": showTool, "diff": showDiff, "runs": showRuns, "run": showRun, "replay": showReplay, "steps": showSteps, "flame": showFlame,
		"events": showEvents, "authority": showAuthority, "questions": showQuestions, "servers": showServers, "flow": showFlow, "act": showAct,
	} {
		m.HandleFunc("GET /p/{profile}/"+path, func(w http.ResponseWriter, r *http.Request) { p.show(w, r, r.PathValue("profile"), show) })
	}
	m.HandleFunc("GET /p/{profile}/live", p.live)
	for path, do := range map[string]func(*request) (view, error){"example": showExample, "act": doAct, "servers": askServer} {
		m.HandleFunc("POST /p/{profile}/"+path, func(w http.ResponseWriter, r *http.Request) { p.show(w, r, r.PathValue("profile"), do) })
	}
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p.show(w, r, "", func(*request) (view, error) { return view{}, missing("There is no such page.") })
	})
	return m
}

// show answers with a page.
func (p *Page) show(w http.ResponseWriter, r *http.Request, profile string, make func(*request) (view, error)) {
	q := &request{Request: r, page: p, profile: profile}
	var v view
	var err error
	if profile != "" {
		q.store, err = p.open(profile)
	}
	if err == nil {
		v, err = make(q)
	}
	status := http.StatusOK
	if to := moved(""); errors.As(err, &to) {
		http.Redirect(w, r, string(to), http.StatusSeeOther)
		return
	}
	if err != nil {
		status = http.StatusInternalServerError
		if m := missing(""); errors.As(err, &m) {
			status = http.StatusNotFound
		}
		v = view{Template: "problem.html", Title: "It can't be shown", Data: err.Error()}
	}
	text, err := q.render(v)
	if err != nil && v.Template != "problem.html" {
		status = http.StatusInternalServerError
		text, err = q.render(view{Template: "problem.html", Title: "It can't be shown", Data: err.Error()})
	}
	if err != nil {
		p.o.Log.Error("a page can't be made", "page", r.URL.Path, "error", err)
		http.Error(w, "The page can't be made.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// open gives a profile's store as it is now.
func (p *Page) open(name string) (*Store, error) {
	names, err := p.o.Profiles()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, name) {
		return nil, missing("There is no such profile.")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, errors.New("the page is closing")
	}
	s := p.stores[name]
	if s == nil {
		if s, err = p.o.Open(name, false); err != nil {
			return nil, err
		}
		p.stores[name] = s
	}
	if p.o.Revocations.Path != "" && len(s.Policy.Grants()) > 0 {
		if _, err := p.o.Revocations.Apply(s.Policy); err != nil {
			return nil, err
		}
	}
	if s.Consents != nil {
		if err := s.Consents.Poll(); err != nil {
			return nil, err
		}
	}
	_, err = s.Tools.Refresh()
	return s, err
}

// maxPage is how large a page may be. One that would be larger is shown with the beginnings of what is in it.
const maxPage = 1 << 20

// A frame is what the layout is filled from.
type frame struct {
	view
	Profile  string
	Profiles []string
	Here     string // the path below the profile
	Section  string // the page of the navigation that it belongs to
	Act      bool
	Version  string
	Waiting  int    // questions, plans and requests that break a rule
	Whole    string // the command that shows what the page leaves out; "": it leaves out nothing
	Of       string // the end of commands about the store
	Token    string
}

// sections is the pages that stand below another one.
var sections = map[string]string{"run": "runs", "replay": "runs", "steps": "runs", "flame": "runs", "tool": "tools", "diff": "tools", "example": "tools"}

// At is the address of a page of the profile's.
func (f *frame) At(path string, pairs ...any) string { return at(f.Profile, path, pairs...) }

func (q *request) render(v view) ([]byte, error) {
	f := frame{view: v, Of: q.of(), Profile: q.profile, Act: q.page.o.Act, Version: q.page.o.Version, Token: q.page.door.token(q.page.door.session(q.Request))}
	if q.store == nil {
		f.Profile = ""
	}
	f.Profiles, _ = q.page.o.Profiles()
	if _, rest, ok := strings.Cut(strings.TrimPrefix(q.URL.Path, "/p/"), "/"); ok {
		f.Here, f.Section = rest, cmp.Or(sections[rest], rest)
	}
	if questions, _, err := q.page.o.Questions.All(); err == nil {
		f.Waiting = len(questions)
	}
	if q.store != nil {
		plans, _ := run.WaitingPlans(q.store.Journal, time.Now())
		requests, _ := run.WaitingFlows(q.store.Journal, time.Now())
		f.Waiting += len(plans) + len(requests)
	}
	var b bytes.Buffer
	for _, set := range templates() {
		b.Reset()
		if err := set[v.Template].ExecuteTemplate(&b, "layout.html", &f); err != nil {
			return nil, err
		}
		if b.Len() <= maxPage {
			return []byte(visible(b.String())), nil
		}
		f.Whole = q.command()
	}
	return nil, fmt.Errorf("it would have %d bytes: %s shows it", b.Len(), f.Whole)
}

// command is the command that shows what the page is about.
func (q *request) command() string {
	words, name := "journal tail", q.FormValue("name")
	if v := q.FormValue("v"); v != "" {
		name += "@" + v
	}
	name = caps.ShellQuote(name)
	switch _, page, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/p/"), "/"); page {
	case "run", "replay", "steps", "flame":
		words = "journal show " + caps.ShellQuote(q.FormValue("id"))
	case "", "runs":
		words = "journal runs"
	case "tools":
		words = "tools list"
	case "tool", "example":
		words = "tools show " + name
	case "diff":
		words = "tools diff " + name + " " + caps.ShellQuote(q.FormValue("a")) + " " + caps.ShellQuote(q.FormValue("b"))
	case "authority", "act":
		words = "caps"
	case "flow":
		words = "flow"
	case "questions":
		words = "approve --list"
	case "servers":
		if q.Method == http.MethodPost {
			return "mcp-pif mcp upgrade " + name
		}
		return "mcp-pif mcp list"
	}
	return "mcp-pif " + words + q.of()
}

// of is the end of commands about the page's store.
func (q *request) of() string {
	if q.profile == "" {
		return ""
	}
	return " " + q.page.o.Flags(q.profile)
}

// at is the address of a page of a profile's, with pairs of a key and a value.
func at(profile, path string, pairs ...any) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if text := fmt.Sprint(pairs[i+1]); text != "" {
			query.Set(fmt.Sprint(pairs[i]), text)
		}
	}
	u := url.URL{Path: "/p/" + profile + "/" + path, RawQuery: query.Encode()}
	return u.String()
}

// templates is the pages whole, and with the beginnings of what is in them. They are read when the first is shown: other
// commands don't pay for them.
var templates = sync.OnceValue(func() (sets [2]map[string]*template.Template) {
	names, _ := fs.Glob(files, "pages/*.html")
	for i, more := range []template.FuncMap{nil, beginnings} {
		sets[i] = map[string]*template.Template{}
		base := template.Must(template.New("").Funcs(functions).Funcs(more).ParseFS(files, "pages/layout.html", "pages/parts.html"))
		for _, name := range names {
			t := template.Must(base.Clone())
			sets[i][strings.TrimPrefix(name, "pages/")] = template.Must(t.ParseFS(files, name))
		}
	}
	return sets
})

// beginnings is those of functions that show texts and lists, of which they show little.
var beginnings = template.FuncMap{
	"cut":  func(most int, s string) string { return cut(min(most, 40), s) },
	"clip": func(most int, s string) string { return clip(min(most, 40), s) },
	"code": func(src string) []line { return code(clip(2000, src)) },
	"json": func(raw []byte) string { return clip(200, indented(raw)) },
	"few":  func(list []registry.ExampleEffect) []registry.ExampleEffect { return first(3, list) },
}

// functions is what templates call.
var functions = template.FuncMap{
	"cut":   cut,
	"clip":  clip,
	"few":   func(list []registry.ExampleEffect) []registry.ExampleEffect { return first(20, list) },
	"code":  code,
	"json":  indented,
	"count": count,
	"ago":   ago,
	"took":  took,
	"time":  func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") },
	"utc":   func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
	"short": short,
	"label": label,
	"add":   func(a, b int) int { return a + b },
	"add64": func(a uint64, b int) uint64 { return a + uint64(b) },
	"list":  func(items ...any) []any { return items },
	"pair":  func(a, b any) [2]any { return [2]any{a, b} },
	"join":  func(list []string) string { return strings.Join(list, ", ") },
}
