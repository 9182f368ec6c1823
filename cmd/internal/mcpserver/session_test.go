package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// session connects a client of the SDK's to the server.
func session(t testing.TB, s *Server, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	theirs, ours := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, theirs) }()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts).Connect(ctx, ours, nil)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		cancel()
		wait.For(t, done, "the end of the session")
	})
	return cs
}

// ask calls a tool as a client does, and gives the text of the answer.
func ask(t testing.TB, cs *mcp.ClientSession, tool, arguments string) (string, *mcp.CallToolResult) {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	if len(res.Content) == 0 {
		t.Fatalf("%s %s: no content", tool, arguments)
	}
	return res.Content[0].(*mcp.TextContent).Text, res
}

// TestListed: a client sees the fixed tools and the evolved ones, and hears of
// each change.
func TestListed(t *testing.T) {
	changed := make(chan struct{}, 10)
	s := New(Options{Version: "v1"})
	cs := session(t, s, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }})
	names := func() []string {
		var names []string
		for tool, err := range cs.Tools(t.Context(), nil) {
			must.NoError(t, err)
			names = append(names, tool.Name)
			if tool.Description == "" || tool.Annotations == nil || tool.OutputSchema == nil {
				t.Errorf("%s lacks a description, annotations or an output schema", tool.Name)
			}
			if schema, _ := json.Marshal(tool.InputSchema); strings.Contains(string(schema), "$ref") {
				t.Errorf("%s: its schema isn't flat: %s", tool.Name, schema)
			}
		}
		return names
	}
	if got, want := names(), wire.ToolNames(); !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	ask(t, cs, "evolve", `{"name":"square","code":`+square+`}`)
	wait.For(t, changed, "a notification that the list changed")
	ask(t, cs, "evolve", `{"name":"not listed!","code":1,"draft":true}`)
	if got, want := names(), append(wire.ToolNames(), "square"); !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	if text, _ := ask(t, cs, "square", `{"input":12}`); text != "144" {
		t.Errorf("%s, expected 144", text)
	}
	//lint:ignore SA1019 that logging is not offered is what is tested
	if in := cs.InitializeResult(); !strings.Contains(in.Instructions, `n => if n <= 1 then 1 else n * self(n - 1)`) || in.ServerInfo.Name != "mcp-pif" || in.Capabilities.Logging != nil {
		t.Errorf("initialize: %+v", in)
	}
}

// TestHidden: evolved tools that are not listed can be called all the same.
func TestHidden(t *testing.T) {
	cs := session(t, New(Options{HideEvolved: true}), nil)
	ask(t, cs, "evolve", `{"name":"square","code":`+square+`}`)
	if list, err := cs.ListTools(t.Context(), nil); err != nil || len(list.Tools) != 8 {
		t.Errorf("%d tools listed, %v", len(list.Tools), err)
	}
	if text, _ := ask(t, cs, "square", `{"input":12}`); text != "144" {
		t.Errorf("%s, expected 144", text)
	}
}

// TestFailureIsAnAnswer: what fails is told in an answer, marked as an error,
// with the same in its structure; the protocol's errors are for what is
// malformed.
func TestFailureIsAnAnswer(t *testing.T) {
	cs := session(t, New(Options{}), nil)
	text, res := ask(t, cs, "run", `{"code":{"add":[1]}}`)
	structure := res.StructuredContent.(map[string]any)["error"].(map[string]any)
	if !res.IsError || structure["kind"] != "parse_error" || !strings.HasPrefix(text, "parse_error at code /: ") {
		t.Errorf("%s\n%v", text, structure)
	}
	if _, res := ask(t, cs, "no such tool", `{}`); !res.IsError {
		t.Error("an unknown tool is no error")
	}
}

// TestProgress: a run that was asked with a progress token reports, with
// numbers that grow.
func TestProgress(t *testing.T) {
	told := make(chan *mcp.ProgressNotificationParams, 1000)
	cs := session(t, New(Options{}), &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) { told <- n.Params },
	})
	ask(t, cs, "evolve", `{"name":"countdown","code":`+countdown+`}`)
	params := &mcp.CallToolParams{Name: "run", Arguments: json.RawMessage(`{"tool":"countdown","input":50,"drive":true}`)}
	params.SetProgressToken("p1")
	must.Succeed(t)(cs.CallTool(t.Context(), params))
	// A notification may be handled after the answer.
	if p := wait.For(t, told, "a report of a round"); p.ProgressToken != "p1" || !strings.HasPrefix(p.Message, "round 1, ") {
		t.Errorf("of rounds it says %+v", p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		params := &mcp.CallToolParams{Name: "run", Arguments: json.RawMessage(`{"code":` + omega + `,"steps":1000000000}`)}
		params.SetProgressToken("p2")
		_, _ = cs.CallTool(ctx, params)
	}()
	last := -1.0
	for reports := 0; reports < 2; {
		p := wait.For(t, told, "a report of steps")
		if p.ProgressToken != "p2" {
			continue
		}
		if p.Progress <= last || !strings.HasSuffix(p.Message, " steps") {
			t.Errorf("after %v it says %+v", last, p)
		}
		last = p.Progress
		reports++
	}
	cancel()
	wait.For(t, ended, "the end of the call")
}

// TestUnreadProgress: a run comes to its end whose client doesn't take what it is told; the answer comes after that.
func TestUnreadProgress(t *testing.T) {
	s := New(Options{})
	stuck, read := make(chan struct{}), make(chan struct{})
	var telling atomic.Int32
	begun := sync.OnceFunc(func() { close(stuck) })
	s.mcp.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "notifications/progress" {
				telling.Add(1)
				begun()
				<-read
				defer telling.Add(-1)
			}
			return next(ctx, method, req)
		}
	})
	cs := session(t, s, nil)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		params := &mcp.CallToolParams{Name: "run", Arguments: json.RawMessage(`{"code":` + omega + `,"steps":1000000}`)}
		params.SetProgressToken("p")
		if res, err := cs.CallTool(t.Context(), params); err != nil || !res.IsError || telling.Load() > 0 {
			t.Errorf("%+v, %v, while %d are being told", res, err, telling.Load())
		}
	}()
	wait.For(t, stuck, "what it is told")
	wait.Until(t, "the end of the run", func() bool {
		ended, _, err := s.broker.Journal().Read(journal.Query{Kind: journal.RunEnded})
		return err == nil && len(ended) > 0
	})
	close(read)
	wait.For(t, answered, "the answer")
}

// TestCancelOverMCP: a client's cancellation stops a run, whose turn another has then.
func TestCancelOverMCP(t *testing.T) {
	s := New(Options{Limits: Limits{Runs: 1}})
	started := make(chan struct{}, 1)
	cs := session(t, s, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
			select {
			case started <- struct{}{}:
			default:
			}
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		select {
		case <-started:
		case <-time.After(wait.Limit(t)):
		}
		cancel()
	}()
	params := &mcp.CallToolParams{Name: "run", Arguments: json.RawMessage(`{"code":` + omega + `,"steps":1000000000}`)}
	params.SetProgressToken("p")
	if _, err := cs.CallTool(ctx, params); err == nil {
		t.Error("the call wasn't cancelled")
	}
	if text, _ := ask(t, cs, "run", `{"code":{"add":[1,2]}}`); text != "3" {
		t.Errorf("%s, expected 3", text)
	}
}

// TestParallel: calls under way together each get their own answer.
func TestParallel(t *testing.T) {
	cs := session(t, New(Options{}), nil)
	ask(t, cs, "evolve", `{"name":"square","code":`+square+`}`)
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() {
			if text, _ := ask(t, cs, "run", fmt.Sprintf(`{"tool":"square","input":%d}`, i)); text != fmt.Sprint(i*i) {
				t.Errorf("square of %d is %s", i, text)
			}
		})
	}
	wg.Wait()
}

// TestPanicIsAnswered: a defect below is an answer, and the server goes on.
func TestPanicIsAnswered(t *testing.T) {
	var log strings.Builder
	s := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	cs := session(t, s, nil)
	s.mcp.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return s.recoverPanics(func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "prompts/list" {
					panic("boom")
				}
				return next(ctx, method, req)
			})(ctx, method, req)
		}
	})
	_, err := cs.ListPrompts(t.Context(), nil)
	var wire *jsonrpc.Error
	if err == nil || !strings.Contains(err.Error(), "internal error") {
		t.Errorf("%v %v", err, wire)
	}
	if text, _ := ask(t, cs, "run", `{"code":1}`); text != "1" {
		t.Errorf("%s, expected 1", text)
	}
	if !strings.Contains(log.String(), "stack=") {
		t.Error(log.String())
	}
}

// TestRepeatedInitialize: a session over HTTP that is begun once more has an error with a code.
func TestRepeatedInitialize(t *testing.T) {
	s := New(Options{})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, nil))
	defer web.Close()
	id := ""
	for _, want := range []string{`"serverInfo"`, `"code":-32600,"message":"invalid request: this session is initialized already"`} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if id != "" {
			r.Header.Set("Mcp-Session-Id", id)
		}
		res, err := http.DefaultClient.Do(r)
		must.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		must.NoError(t, err)
		res.Body.Close()
		if id = res.Header.Get("Mcp-Session-Id"); !strings.Contains(string(text), want) {
			t.Errorf("%s, want %s", text, want)
		}
	}
}

// TestModern: the stateless protocol needs no initialize.
func TestModern(t *testing.T) {
	s := New(Options{})
	theirs, ours := mcp.NewInMemoryTransports()
	go s.Serve(t.Context(), theirs)
	conn, err := ours.Connect(t.Context())
	must.NoError(t, err)
	defer conn.Close()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	for i, c := range []struct{ method, params, want string }{
		{"server/discover", `{` + meta + `}`, `"2026-07-28"`},
		{"server/discover", `{` + meta + `}`, `"cacheScope":"private"`}, // it tells what is granted
		{"tools/call", `{"name":"evolve","arguments":{"name":"square","code":` + square + `},` + meta + `}`, `"resultType":"complete"`},
		{"tools/call", `{"name":"square","arguments":{"input":7},` + meta + `}`, `"text":"49"`},
		{"tools/list", `{` + meta + `}`, `"square"`},
	} {
		id, _ := jsonrpc.MakeID(float64(i + 1))
		must.NoError(t, conn.Write(t.Context(), &jsonrpc.Request{ID: id, Method: c.method, Params: json.RawMessage(c.params)}))
		m, err := conn.Read(t.Context())
		must.NoError(t, err)
		if got, _ := jsonrpc.EncodeMessage(m); !strings.Contains(string(got), c.want) {
			t.Errorf("%s: %s, expected %s", c.method, got, c.want)
		}
	}
}

// counted counts what is read of a journal.
type counted struct {
	journal.Journal
	reads atomic.Int64
}

func (c *counted) Read(q journal.Query) ([]journal.Event, bool, error) {
	c.reads.Add(1)
	return c.Journal.Read(q)
}

// TestUpdateReadsOnce: the journal isn't read anew for each answer to a task that this server doesn't do.
func TestUpdateReadsOnce(t *testing.T) {
	t.Parallel()
	j := &counted{Journal: journal.NewMemory(1<<20, nil)}
	for _, kind := range []journal.Kind{journal.TaskCreated, journal.TaskCancelled} {
		_, err := j.Append(journal.Noted, kind, "past-1", "", []byte(`{"call":{"tool":"run","arguments":"{}"}}`))
		must.NoError(t, err)
	}
	kinds, err := caps.NewKinds()
	must.NoError(t, err)
	s := New(Options{Broker: run.New(run.Options{Policy: caps.NewPolicy(kinds, nil), Journal: j})})
	theirs, ours := mcp.NewInMemoryTransports()
	go s.Serve(t.Context(), theirs)
	conn, err := ours.Connect(t.Context())
	must.NoError(t, err)
	defer conn.Close()
	responses := map[string]any{}
	for i := range 1000 {
		responses[fmt.Sprint(i)] = map[string]any{"action": "decline"}
	}
	params, err := json.Marshal(map[string]any{"taskId": "past-1", "inputResponses": responses, "_meta": map[string]any{
		mcp.MetaKeyProtocolVersion: "2026-07-28", mcp.MetaKeyClientInfo: map[string]any{"name": "t", "version": "1"},
		mcp.MetaKeyClientCapabilities: map[string]any{"extensions": map[string]any{tasksExtension: map[string]any{}}},
	}})
	must.NoError(t, err)
	id, _ := jsonrpc.MakeID("1")
	before := j.reads.Load()
	must.NoError(t, conn.Write(t.Context(), &jsonrpc.Request{ID: id, Method: "tasks/update", Params: params}))
	m, err := conn.Read(t.Context())
	must.NoError(t, err)
	got, _ := jsonrpc.EncodeMessage(m)
	if reads := j.reads.Load() - before; reads > 10 || !strings.Contains(string(got), `"complete"`) {
		t.Errorf("the journal was read %d times for %s", reads, got)
	}
}

// TestUpdateWhole: of the answers to a task's questions none is taken where one is malformed.
func TestUpdateWhole(t *testing.T) {
	t.Parallel()
	s := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p").server
	ask(t, session(t, s, nil), "evolve", `{"name":"all","code":"m => par(!ask.user(m), !ask.user(m), !ask.user(m), !ask.user(m), !ask.user(m), !ask.user(m))","capabilities":["ask"]}`)
	task := s.AsTask(t.Context(), Call{Tool: "all", Arguments: json.RawMessage(`{"input":"?"}`)}, true).ID
	open := func() []*engine.TaskQuestion {
		st, _ := s.TaskState(t.Context(), task, true)
		return st.Questions
	}
	wait.Until(t, "the questions", func() bool { return len(open()) == 6 })
	theirs, ours := mcp.NewInMemoryTransports()
	go s.Serve(t.Context(), theirs)
	conn, err := ours.Connect(t.Context())
	must.NoError(t, err)
	defer conn.Close()
	for i, bad := range []bool{true, true, true, true, false} {
		responses, action := map[string]any{}, "decline"
		if bad {
			action = "cancel"
		}
		for i, q := range open() {
			responses[q.Key] = map[string]any{"action": action}
			if bad && i == 5 {
				responses[q.Key] = map[string]any{}
			}
		}
		params, err := json.Marshal(map[string]any{"taskId": task, "inputResponses": responses, "_meta": map[string]any{
			mcp.MetaKeyProtocolVersion: "2026-07-28", mcp.MetaKeyClientInfo: map[string]any{"name": "t", "version": "1"},
			mcp.MetaKeyClientCapabilities: map[string]any{"extensions": map[string]any{tasksExtension: map[string]any{}}},
		}})
		must.NoError(t, err)
		id, _ := jsonrpc.MakeID(float64(i))
		must.NoError(t, conn.Write(t.Context(), &jsonrpc.Request{ID: id, Method: "tasks/update", Params: params}))
		m, err := conn.Read(t.Context())
		for must.NoError(t, err); isRequest(m); must.NoError(t, err) { // that there is a tool since
			m, err = conn.Read(t.Context())
		}
		if got, _ := jsonrpc.EncodeMessage(m); strings.Contains(string(got), "is no result of elicitation/create") != bad {
			t.Errorf("malformed is %v: %s", bad, got)
		}
	}
	wait.Until(t, "the end", func() bool { st, _ := s.TaskState(t.Context(), task, true); return st.Status == engine.TaskCompleted })
	if st, _ := s.TaskState(t.Context(), task, true); strings.Count(st.Answer.Text, `"decline"`) != 6 {
		t.Error(st.Answer.Text)
	}
}

func isRequest(m jsonrpc.Message) bool { _, ok := m.(*jsonrpc.Request); return ok }

// TestArrivalOrder: calls sent without waiting mean the tools that were there,
// or were being made, when they were sent.
func TestArrivalOrder(t *testing.T) {
	s := New(Options{})
	theirs, ours := mcp.NewInMemoryTransports()
	go s.Serve(t.Context(), theirs)
	conn, err := ours.Connect(t.Context())
	must.NoError(t, err)
	defer conn.Close()
	const versions = 50
	want := map[string]string{}
	go func() {
		send := func(id int, method, params string) {
			key, _ := jsonrpc.MakeID(float64(id))
			if id == 0 {
				key = jsonrpc.ID{}
			}
			if err := conn.Write(t.Context(), &jsonrpc.Request{ID: key, Method: method, Params: json.RawMessage(params)}); err != nil {
				t.Error(err)
			}
		}
		send(1, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
		send(0, "notifications/initialized", `{}`)
		for v := range versions {
			send(1000+v, "tools/call", fmt.Sprintf(`{"name":"evolve","arguments":{"name":"f","code":%d}}`, v))
			send(2000+v, "tools/call", `{"name":"run","arguments":{"tool":"f"}}`)
			send(3000+v, "tools/call", `{"name":"f"}`)
		}
	}()
	for v := range versions {
		want[fmt.Sprint(2000+v)] = fmt.Sprint(v)
		want[fmt.Sprint(3000+v)] = fmt.Sprint(v)
	}
	for len(want) > 0 {
		m, err := conn.Read(t.Context())
		must.NoError(t, err)
		res, ok := m.(*jsonrpc.Response)
		if !ok {
			continue
		}
		id := fmt.Sprint(res.ID.Raw())
		if expected, ok := want[id]; ok {
			delete(want, id)
			if !strings.Contains(string(res.Result), `"text":"`+expected+`"`) {
				t.Errorf("call %s: %s, expected %s", id, res.Result, expected)
			}
		}
	}
}

// TestShortRunsDontWait: while more long runs are under way than there are
// processors, short ones are answered at once. No time is measured: the long
// ones can't end before the short ones have.
func TestShortRunsDontWait(t *testing.T) {
	s := New(Options{Limits: Limits{Timeout: time.Hour}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			a := s.Call(ctx, Call{Tool: "run", Arguments: json.RawMessage(`{"code":` + omega + `,"steps":1000000000}`)})
			if a.Fault == nil || a.Fault.Kind != "cancelled" {
				t.Errorf("a long run ended: %s", a.Text)
			}
		})
	}
	for i := range 50 {
		if a := succeed(t, s, "run", fmt.Sprintf(`{"code":%s,"input":%d}`, square, i)); a.Text != fmt.Sprint(i*i) {
			t.Errorf("%s", a.Text)
		}
	}
	cancel()
	wg.Wait()
}

// TestTrace: a trace tells of each evaluation, and is nothing when off.
func TestTrace(t *testing.T) {
	var log strings.Builder
	s := New(Options{Trace: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	succeed(t, s, "run", `{"code":{"add":[1,{"mul":[2,3]}]},"steps":100}`)
	succeed(t, s, "evolve", `{"name":"sq","code":"n => n * n"}`)
	succeed(t, s, "run", `{"code":"let f = eval(code_of(\"sq\")) in f(4)"}`)
	succeed(t, s, "evolve", `{"name":"cube","code":"m => m * m * m"}`)
	succeed(t, s, "run", `{"code":"@cube(3) + 1"}`)
	for _, want := range []string{
		`msg=eval run=`, `step=0 left=100`, `term="2 * 3"`, `tool=cube code="m => m * m * m"`, `param=m argument=3`, `term=@cube(3)`, `value=27`, `msg=done run=`, `steps=5`, `msg=value`, `value=16`,
		`msg="closure made"`, `msg="closure applied"`, `param=n argument=4`, `msg="code looked up"`, `tool=sq`, `env=[n]`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the trace lacks %q:\n%s", want, log.String())
		}
	}
	log.Reset()
	succeed(t, s, "run", `{"code":"fold((acc, x) => [...acc, x], [], range(0, 700)) |> length","memory":65536}`)
	if !strings.Contains(log.String(), "trace ends here") || strings.Contains(log.String(), "msg=failed") {
		t.Error("the trace of a run that allocates much doesn't say that it goes on")
	}
}

// TestTraceIsBounded: of a term a trace writes no more than it shows, however large the
// term is.
func TestTraceIsBounded(t *testing.T) {
	s := New(Options{Trace: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	succeed(t, s, "evolve", `{"name":"f","code":"n => if n == 0 then 0 else length(\"`+strings.Repeat("é", 50_000)+`\") + self(n - 1)"}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if a := succeed(t, s, "run", `{"tool":"f","input":100}`); a.Text != "5000000" {
		t.Errorf("%s", a.Text)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 5<<20 {
		t.Errorf("a trace of terms of 100 KB, 200 bytes of each shown, takes %d bytes", n)
	}
}

// TestArrivalSnapshot: a call sees the tools there were when it was read, even
// if it is handled after the next evolve.
func TestArrivalSnapshot(t *testing.T) {
	s := New(Options{})
	succeed(t, s, "evolve", `{"name":"f","code":1}`)
	o := &orderly{server: s}
	id, _ := jsonrpc.MakeID("x")
	read := &jsonrpc.Request{ID: id, Method: "tools/call", Params: json.RawMessage(`{"name":"f"}`)}
	o.stamp(read)
	succeed(t, s, "evolve", `{"name":"f","code":2}`)

	req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "f"}, Extra: read.Extra.(*mcp.RequestExtra)}
	ctx := context.WithValue(t.Context(), requestKey{}, &request{name: "f"})
	for _, c := range []struct {
		extra *mcp.RequestExtra
		want  string
	}{{req.Extra, "1"}, {nil, "2"}} {
		req.Extra = c.extra
		res, err := s.handle(ctx, req)
		must.NoError(t, err)
		if got := res.Content[0].(*mcp.TextContent).Text; got != c.want {
			t.Errorf("%s, expected %s", got, c.want)
		}
	}
}

// eras is a protocol of each era that clients speak.
var eras = []string{"2026-07-28", "2025-11-25"}

// inEras runs a test with a client of each era, on a server of its own.
func inEras(t *testing.T, test func(t *testing.T, version string)) {
	for _, version := range eras {
		t.Run(version, func(t *testing.T) { test(t, version) })
	}
}

// speaking connects a client of the SDK's that speaks a version.
func speaking(t testing.TB, s *Server, version string, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	theirs, ours := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, theirs) }()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts).Connect(ctx, ours, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		cancel()
		wait.For(t, done, "the end of the session")
	})
	if got := cs.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("the session speaks %s, not %s", got, version)
	}
	return cs
}

// code is the code of a protocol's error; 0: it is none.
func code(err error) int64 {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e.Code
	}
	return 0
}

// readText reads a resource that has one text.
func readText(t testing.TB, cs *mcp.ClientSession, uri string) *mcp.ResourceContents {
	t.Helper()
	res, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		t.Fatalf("%s: %v", uri, err)
	}
	if len(res.Contents) != 1 || res.Contents[0].URI != uri || res.Contents[0].Text == "" {
		t.Fatalf("%s: %+v", uri, res.Contents)
	}
	return res.Contents[0]
}

// withToy is a server that knows of notes, and the grant of them, which isn't
// granted yet.
func withToy(t testing.TB) (*Server, *caps.Policy, *caps.Grant) {
	t.Helper()
	known, err := caps.NewKinds(toy)
	must.NoError(t, err)
	policy := caps.NewPolicy(known, time.Now)
	c, err := caps.Parse("toy:notes/**", known)
	must.NoError(t, err)
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: known})
	must.NoError(t, err)
	return New(Options{Broker: run.New(run.Options{Policy: policy, Handler: steady{}, Journal: journal.NewMemory(8<<20, nil)})}), policy, g
}

// A stuck connection has calls to read, and a client that reads no answer.
type stuck struct {
	fed
	given    atomic.Int32 // answers
	released chan struct{}
	once     sync.Once
}

func (c *stuck) Connect(context.Context) (mcp.Connection, error) { return c, nil }
func (c *stuck) SessionID() string                               { return "" }
func (c *stuck) Close() error                                    { c.once.Do(func() { close(c.requests) }); return nil }

func (c *stuck) Write(context.Context, jsonrpc.Message) error {
	c.given.Add(1)
	<-c.released
	return nil
}

// TestUnreadAnswers: no more answers are made than a few while the client reads none, and all of them when it
// does.
func TestUnreadAnswers(t *testing.T) {
	const calls, atOnce = 200, 2
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}`
	for method, params := range map[string]string{
		"tools/list":     `{` + meta + `}`,
		"resources/list": `{` + meta + `}`,
		"tools/call":     `{"name":"list","arguments":{},` + meta + `}`,
		"tools/call ":    `{"name":"run","arguments":{"code":"1+1"},` + meta + `}`,
		"tools/call  ":   `{"name":"help","arguments":{},` + meta + `}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Options{Limits: Limits{Runs: atOnce}})
			c := &stuck{fed: fed{requests: make(chan *jsonrpc.Request, calls)}, released: make(chan struct{})}
			for i := range calls {
				id, _ := jsonrpc.MakeID(float64(i))
				c.requests <- &jsonrpc.Request{ID: id, Method: strings.TrimSpace(method), Params: json.RawMessage(params)}
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- s.Serve(ctx, c) }()
			synctest.Wait()
			if n := c.given.Load(); n != atOnce {
				t.Errorf("%s: %d answers were made that nobody reads", params, n)
			}
			close(c.released)
			synctest.Wait()
			if n := c.given.Load(); n != calls {
				t.Errorf("%s: %d answers of %d", params, n, calls)
			}
			cancel()
			<-ended
			for range atOnce { // every turn was given back
				if _, f := s.Turn(t.Context(), 0); f != nil {
					t.Error(f)
				}
			}
		})
	}
}

// A fed connection has what is to be read, and forgets what is written.
type fed struct {
	mcp.Connection
	requests chan *jsonrpc.Request
}

func (f *fed) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case r, ok := <-f.requests:
		if !ok {
			return nil, io.EOF
		}
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *fed) Write(context.Context, jsonrpc.Message) error { return nil }

// TestNothingIsReadMeanwhile: after an evolve and after a retire nothing is read
// until it is answered, or asks the client something; an answer to another call, and
// other calls, hold nothing up.
func TestNothingIsReadMeanwhile(t *testing.T) {
	id := func(n float64) jsonrpc.ID {
		key, err := jsonrpc.MakeID(n)
		must.NoError(t, err)
		return key
	}
	calls := func(n float64, tool string) *jsonrpc.Request {
		return &jsonrpc.Request{ID: id(n), Method: "tools/call", Params: json.RawMessage(`{"name":"` + tool + `"}`)}
	}
	for _, test := range []struct {
		tool   string
		free   bool // at once
		writes jsonrpc.Message
		frees  bool
	}{
		{"evolve", false, &jsonrpc.Response{ID: id(1)}, true},
		{"retire", false, &jsonrpc.Response{ID: id(1)}, true},
		{"retire", false, &jsonrpc.Response{ID: id(2)}, false},
		{"evolve", false, &jsonrpc.Response{ID: id(2)}, false},
		{"evolve", false, &jsonrpc.Request{ID: id(1), Method: "elicitation/create"}, true},
		{"evolve", false, &jsonrpc.Request{Method: "notifications/progress"}, false},
		{"run", true, nil, true},
		{"r", true, nil, true},
	} {
		f := &fed{requests: make(chan *jsonrpc.Request, 2)}
		o := &orderly{Connection: f, server: New(Options{})}
		f.requests <- calls(1, test.tool)
		f.requests <- calls(2, "run")
		must.Succeed(t)(o.Read(t.Context()))
		read := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := o.Read(ctx)
			read <- err
		}()
		if !test.free {
			// Whether it waits can't be seen but by what it waits for.
			o.mu.Lock()
			waits := o.done != nil
			o.mu.Unlock()
			if !waits || len(f.requests) != 1 {
				t.Errorf("%s: the next call is read", test.tool)
			}
			must.NoError(t, o.Write(ctx, test.writes))
		}
		o.mu.Lock()
		freed := o.done == nil
		o.mu.Unlock()
		if freed != test.frees {
			t.Errorf("%s, and %+v is written: reading goes on: %v", test.tool, test.writes, freed)
		}
		if freed {
			if err := wait.For(t, read, "the next call"); err != nil || len(f.requests) != 0 {
				t.Errorf("%s: %v", test.tool, err)
			}
		}
		cancel()
		if !freed {
			wait.For(t, read, "the end of reading")
		}
	}
}

// TestTurnsOfRequests: what takes much memory whatever was asked waits for its turn, which by a connection ends when
// its answer is written; what a tool publishes has a run's.
func TestTurnsOfRequests(t *testing.T) {
	s := New(Options{Limits: Limits{Waiting: 1}})
	succeed(t, s, "evolve", `{"name":"f","code":1}`)
	succeed(t, s, "evolve", `{"name":"p","code":"_ => 1","as":"resource"}`)
	cs := speaking(t, s, eras[0], nil)
	complete := func() error {
		_, err := cs.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: "pif://tools/{name}"}, Argument: mcp.CompleteParamsArgument{Name: "name"}})
		return err
	}
	read := func(uri string) func() error {
		return func() error {
			_, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: wire.Scheme + uri})
			return err
		}
	}
	requests := map[string]func() error{
		"completion/complete": complete, "a tool": read("tools/f"), "the language": read("language"), "the server": read("server"),
	}
	waiting, cancel := context.WithCancel(t.Context())
	var leaves []func()
	waits := make(chan struct{})
	go func() { // takes all there are, and then the one place to wait
		defer close(waits)
		for {
			leave, f := s.Turn(waiting, 0)
			switch {
			case f == nil:
				leaves = append(leaves, leave)
			case waiting.Err() != nil:
				return
			}
		}
	}()
	wait.Until(t, "a full queue", func() bool {
		ctx, stop := context.WithCancel(waiting)
		stop()
		leave, f := s.Turn(ctx, 0)
		if f == nil {
			leave()
		}
		return f != nil && f.Kind == fault.Overloaded
	})
	for name, request := range requests {
		if err := request(); code(err) != codeOverloaded {
			t.Errorf("%s has no turn: %v", name, err)
		}
	}
	must.NoError(t, read("published/p")())
	cancel()
	wait.For(t, waits, "the one that waited")
	for _, leave := range leaves {
		leave()
	}
	for range 20 { // each leaves
		for name, request := range requests {
			if err := request(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	o := &orderly{server: s}
	for _, method := range []string{"tools/call", "tools/list", "completion/complete", "resources/read"} {
		o.Connection = &fed{requests: make(chan *jsonrpc.Request, 1)}
		req := &jsonrpc.Request{ID: must.Value(jsonrpc.MakeID("x")), Method: method}
		o.Connection.(*fed).requests <- req
		_, err := o.Read(t.Context())
		must.NoError(t, err)
		if extra, _ := req.Extra.(*mcp.RequestExtra); arrivalOf(extra) == nil {
			t.Errorf("%s isn't held until its answer is written", method)
		}
	}
}

// TestReadingIsHeldUpOnce: where an evolve isn't answered in time, what comes next doesn't each wait as long.
func TestReadingIsHeldUpOnce(t *testing.T) {
	s := New(Options{})
	id, err := jsonrpc.MakeID(1.0)
	must.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		f := &fed{requests: make(chan *jsonrpc.Request, 3)}
		o := &orderly{Connection: f, server: s}
		f.requests <- &jsonrpc.Request{ID: id, Method: "tools/call", Params: json.RawMessage(`{"name":"evolve"}`)}
		f.requests <- &jsonrpc.Request{Method: "notifications/cancelled"}
		f.requests <- &jsonrpc.Request{Method: "ping"}
		began := time.Now()
		for range 3 {
			_, err := o.Read(t.Context())
			must.NoError(t, err)
		}
		if d := time.Since(began); d != patience {
			t.Errorf("it takes %v", d)
		}
	})
}

// TestChangesAreBounded: what is known of changes doesn't grow with names that come and go, and nobody misses any.
func TestChangesAreBounded(t *testing.T) {
	ls := &listens{}
	ls.note("a")
	l := &listen{since: ls.noted(), of: &listeners{}}
	ls.begin(l, &mcp.SubscriptionsAcknowledgedParams{Notifications: mcp.NotificationSubscriptions{ResourceSubscriptions: []string{"a", "b"}}})
	if got := ls.missed(l); len(got) > 0 {
		t.Errorf("%q", got)
	}
	ls.note("b")
	for i := range maxChanged {
		ls.note(fmt.Sprint("pif://tools/", i))
	}
	if n := len(ls.changed); n > maxChanged {
		t.Errorf("%d are known", n)
	}
	if got := ls.missed(l); !slices.Contains(got, "b") {
		t.Errorf("%q", got)
	}
	if got := ls.missed(l); len(got) > 0 {
		t.Errorf("once more: %q", got)
	}
	ls.note("a")
	if got := ls.missed(l); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%q", got)
	}
}
