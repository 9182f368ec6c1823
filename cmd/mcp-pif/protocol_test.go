package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// TestMalformedFrames: every kind of line that is no request of ours is
// answered as JSON-RPC says, or passed over, and the next call works.
func TestMalformedFrames(t *testing.T) {
	t.Parallel()
	p := start(t, "--log-level=error").open()
	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	for _, c := range []struct {
		name, line string
		code       int    // of the error; 0: nothing is answered; 1: any result
		id         string // of the error
	}{
		{"not JSON", `{bad`, -32700, `null`},
		{"words", `hello`, -32700, `null`},
		{"half a message", `{"jsonrpc":"2.0","id":1,"method":"ping"`, -32700, `null`},
		{"two on a line", `{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`, -32700, `null`},
		{"something after it", `{"jsonrpc":"2.0","id":1,"method":"ping"} x`, -32700, `null`},
		{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", -32700, `null`},
		{"NUL", "{\"jsonrpc\":\"2.0\",\"id\":1,\x00\"method\":\"ping\"}", -32700, `null`},
		{"a number", `5`, -32600, `null`},
		{"null", `null`, -32600, `null`},
		{"a string", `"x"`, -32600, `null`},
		{"an empty batch", `[]`, -32600, `null`},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, -32600, `null`},
		{"an empty object", `{}`, -32600, `null`},
		{"no version", `{"id":7,"method":"ping"}`, -32600, `7`},
		{"another version", `{"jsonrpc":"1.0","id":7,"method":"ping"}`, -32600, `7`},
		{"no method", `{"jsonrpc":"2.0","id":7}`, -32600, `7`},
		{"a method that is a number", `{"jsonrpc":"2.0","id":7,"method":5}`, -32600, `7`},
		{"an id that is an object", `{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`, -32600, `null`},
		{"an id twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, -32600, `null`},
		{"params that are a number", `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":5}`, -32600, `7`},
		{"params too deep", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"run","arguments":{"code":` + deep + `}}}`, -32600, `7`},
		{"too long", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"run","arguments":{"code":"` + strings.Repeat("x", 17<<20) + `"}}}`, -32600, `7`},
		{"an unknown method", `{"jsonrpc":"2.0","id":7,"method":"nope"}`, -32601, `7`},
		{"a call without params", `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, -32602, `7`},
		{"a tool's name that is a number", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":5}}`, -1, `7`},
		{"an unknown notification", `{"jsonrpc":"2.0","method":"notifications/nope"}`, 0, ``},
		{"a method that is a notification's, with an id", `{"jsonrpc":"2.0","id":7,"method":"notifications/initialized"}`, -1, `7`},
		{"a second initialize", initialize, -1, `"init"`},
		{"a response nobody waits for", `{"jsonrpc":"2.0","id":99,"result":{}}`, 0, ``},
		{"an error nobody waits for", `{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"x"}}`, 0, ``},
		{"a cancellation of nothing", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}`, 0, ``},
		{"a cancellation without params", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, 0, ``},
		{"a blank line", ``, 0, ``},
		{"spaces", `   `, 0, ``},
		{"a carriage return", `{"jsonrpc":"2.0","id":7,"method":"ping"}` + "\r", 1, `7`},
		{"spaces around", `  {"jsonrpc":"2.0","id":7,"method":"ping"}  `, 1, `7`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.send(c.line)
			if c.code != 0 {
				m := p.receive()
				switch {
				case string(m.ID) != c.id:
					t.Errorf("answered with the id %s, expected %s", m.ID, c.id)
				case c.code == 1 && m.Result == nil, c.code < 0 && m.Error == nil:
					t.Errorf("answered with %+v", m)
				case c.code < -1 && m.Error.Code != c.code:
					t.Errorf("answered with %+v, expected %d", *m.Error, c.code)
				}
			}
			if r := p.call("run", `{"code":{"add":[1,2]}}`); r.Content[0].Text != "3" {
				t.Errorf("the next call gave %s", r.Content[0].Text)
			}
		})
	}
	p.end()
}

// TestDrain: a file of requests piped in is answered to its last line, and the
// server exits well.
func TestDrain(t *testing.T) {
	var requests strings.Builder
	requests.WriteString(initialize + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	const calls = 2000
	fmt.Fprintf(&requests, `{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"evolve","arguments":{"name":"square","code":%s}}}`+"\n", square)
	for i := range calls {
		fmt.Fprintf(&requests, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"square","arguments":{"input":%d}}}`+"\n", i, i)
	}
	// The last line takes a while, and has no newline.
	fmt.Fprintf(&requests, `{"jsonrpc":"2.0","id":"slow","method":"tools/call","params":{"name":"run","arguments":{"code":%s}}}`, omega)
	file := filepath.Join(t.TempDir(), "requests.jsonl")
	must.NoError(t, os.WriteFile(file, []byte(requests.String()), 0o600))
	in, err := os.Open(file)
	must.NoError(t, err)
	defer in.Close()
	cmd := self("mcp-pif", "--log-level=error")
	cmd.Stdin = in
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the server ended with %v", err)
	}
	answers := map[string]json.RawMessage{}
	for line := range strings.Lines(string(out)) {
		var m message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if m.Method == "" {
			answers[string(m.ID)] = m.Result
		}
	}
	if len(answers) != calls+3 {
		t.Errorf("%d answers, expected %d", len(answers), calls+3)
	}
	for i := range calls {
		if want := fmt.Sprintf(`"text":"%d"`, i*i); !strings.Contains(string(answers[fmt.Sprint(i)]), want) {
			t.Fatalf("call %d: %s", i, answers[fmt.Sprint(i)])
		}
	}
	if !strings.Contains(string(answers[`"slow"`]), "out_of_fuel") {
		t.Errorf("the last call: %s", answers[`"slow"`])
	}
}

// TestParallelCalls: a thousand calls under way on one connection each get
// their own answer; a client of the SDK's makes them.
func TestParallelCalls(t *testing.T) {
	t.Parallel()
	count := 1000
	if full() {
		count = 20_000
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), &mcp.CommandTransport{Command: self("mcp-pif", "--log-level=error")}, nil)
	must.NoError(t, err)
	defer cs.Close()
	ask := func(arguments string) string {
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "run", Arguments: json.RawMessage(arguments)})
		if err != nil {
			t.Error(err)
			return ""
		}
		return res.Content[0].(*mcp.TextContent).Text
	}
	// At most a thousand at once: the transport refuses more than ten thousand.
	room := make(chan struct{}, 1000)
	var wg sync.WaitGroup
	for i := range count {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			code := fmt.Sprintf(`{"code":{"lam":"x","body":{"add":[{"mul":[{"var":"x"},{"var":"x"}]},%d]}},"input":%d}`, i, i)
			if got, want := ask(code), fmt.Sprint(i*i+i); got != want {
				t.Errorf("call %d gave %s, expected %s", i, got, want)
			}
		})
	}
	wg.Wait()
	if got := ask(`{"code":{"add":[1,2]}}`); got != "3" {
		t.Errorf("the next call gave %s", got)
	}
}

// TestCancelEndlessRun: a cancelled call isn't answered and stops, and the next
// call works.
func TestCancelEndlessRun(t *testing.T) {
	p := start(t, "--log-level=error").open()
	for i := range 20 {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"endless%d","method":"tools/call","params":{"name":"run","arguments":{"code":%s,"steps":1000000000},"_meta":{"progressToken":"p"}}}`, i, omega))
		if m := p.receive(); m.Method != "notifications/progress" {
			t.Fatalf("%+v, expected progress", m)
		}
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"endless%d","reason":"enough"}}`, i))
		if r := p.call("run", `{"code":{"add":[1,2]}}`); r.Content[0].Text != "3" {
			t.Fatalf("the next call gave %s", r.Content[0].Text)
		}
	}
	p.end() // which waits for runs still under way, and finds no answer to them
}

// TestFactorial: exact, by self, however large.
func TestFactorial(t *testing.T) {
	p := start(t, "--log-level=error").open()
	if r := p.call("evolve", `{"name":"factorial","code":`+factorial+`}`); r.IsError {
		t.Fatal(r.Content[0].Text)
	}
	r := p.call("factorial", `{"input":1000}`)
	text := r.Content[0].Text
	if len(text) != 2568 || !strings.HasPrefix(text, "402387260077093773543702433923003985719374864210714632543799910429938512398629020592044208486969404800479988610197196058631666872994808558901323829669944590997424504087073759918823627727188732519779505950995276120874975462497043601418278094646496291056393887437886487337119181045825783647849977012476632889835955735432513185323958463075557409114262417474349347553428646576611667797396668820291207379143853719588249808126867838374559731746136085379534524221586593201928090878297308431392844403281231558611036976801357304216168747609675871348312025478589320767169132448426236131412508780208000261683151027341827977704784635868170164365024153691398281264810213092761244896359928705114964975419909342221566832572080821333186116811553615836546984046708975602900950537616475847728421889679646244945160765353408198901385442487984959953319101723355556602139450399736280750137837615307127761926849034352625200015888535147331611702103968175921510907788019393178114194545257223865541461062892187960223838971476088506276862967146674697562911234082439208160153780889893964518263243671616762179168909779911903754031274622289988005195444414282012187361745992642956581746628302955570299024324153181617210465832036786906117260158783520751516284225540265170483304226143974286933061690897968482590125458327168226458066526769958652682272807075781391858178889652208164348344825993266043367660176999612831860788386150279465955131156552036093988180612138558600301435694527224206344631797460594682573103790084024432438465657245014402821885252470935190620929023136493273497565513958720559654228749774011413346962715422845862377387538230483865688976461927383814900140767310446640259899490222221765904339901886018566526485061799702356193897017860040811889729918311021171229845901641921068884387121855646124960798722908519296819372388642614839657382291123125024186649353143970137428531926649875337218940694281434118520158014123344828015051399694290153483077644569099073152433278288269864602789864321139083506217095002597389863554277196742822248757586765752344220207573630569498825087968928162753848863396909959826280956121450994871701244516461260379029309120889086942028510640182154399457156805941872748998094254742173582401063677404595741785160829230135358081840096996372524230560855903700624271243416909004153690105933983835777939410970027753472000000") {
		t.Errorf("factorial(1000) has %d digits: %s", len(text), text)
	}
	if string(r.StructuredContent["result"]) != text {
		t.Error("the structured result differs from the text")
	}
}

// TestSignal: a server that is told to end does so, also in the middle of a run.
func TestSignal(t *testing.T) {
	p := start(t, "--log-level=error").open()
	p.send(`{"jsonrpc":"2.0","id":"endless","method":"tools/call","params":{"name":"run","arguments":{"code":` + omega + `,"steps":1000000000},"_meta":{"progressToken":"p"}}}`)
	if m := p.receive(); m.Method != "notifications/progress" {
		t.Fatalf("%+v, expected progress", m)
	}
	must.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	ended := make(chan error, 1)
	go func() {
		_, _ = io.Copy(io.Discard, p.out)
		ended <- p.cmd.Wait()
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server ended with %v", err)
		}
	case <-time.After(wait.Limit(t)):
		t.Error("the server didn't end")
	}
}

// TestManyTools: ten thousand tools can be made, listed and called; the next
// one is refused. The large count takes PIF_FULL=1.
func TestManyTools(t *testing.T) {
	t.Parallel()
	count := must.Full(1500, 10_000)
	p := start(t, "--log-level=error").open()
	go func() {
		for i := range count {
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"e%d","method":"tools/call","params":{"name":"evolve","arguments":{"name":"tool%05d","code":{"lam":"x","body":{"add":[{"var":"x"},%d]}}}}}`, i, i, i))
		}
	}()
	for made := 0; made < count; {
		if m := p.receive(); m.Method == "" {
			if r := p.tool(m); r.IsError {
				t.Fatal(r.Content[0].Text)
			}
			made++
		}
	}
	if r := p.call("tool00277", `{"input":1}`); r.Content[0].Text != "278" {
		t.Errorf("tool00277 gave %s", r.Content[0].Text)
	}
	// tools/list comes in pages; so does the tool list, in larger ones.
	listed, cursor := 0, ""
	for pages := 0; pages < 100; pages++ {
		params := "{}"
		if cursor != "" {
			params = fmt.Sprintf(`{"cursor":%q}`, cursor)
		}
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"l%d","method":"tools/list","params":%s}`, pages, params))
		var list struct {
			Tools      []struct{ Name string }
			NextCursor string
		}
		must.NoError(t, json.Unmarshal(p.answer(fmt.Sprintf(`"l%d"`, pages)).Result, &list))
		listed += len(list.Tools)
		if cursor = list.NextCursor; cursor == "" {
			break
		}
	}
	if listed != count+8 {
		t.Errorf("%d tools listed, expected %d", listed, count+8)
	}
	listed, arguments := 0, `{}`
	for range 100 {
		r := p.call("list", arguments)
		var tools []json.RawMessage
		var next struct{ Arguments json.RawMessage }
		_ = json.Unmarshal(r.StructuredContent["tools"], &tools)
		_ = json.Unmarshal(r.StructuredContent["next"], &next)
		listed += len(tools)
		if n := len(r.Content[0].Text); n > 300<<10 {
			t.Errorf("list gave %d bytes at once", n)
		}
		if arguments = string(next.Arguments); arguments == "" {
			break
		}
	}
	if listed != count {
		t.Errorf("list gave %d tools, expected %d", listed, count)
	}
	if full() {
		if r := p.call("evolve", `{"name":"one_more","code":1}`); r.kind() != "refused" {
			t.Errorf("one more than 10,000: %s", r.Content[0].Text)
		}
	}
	p.still(t)
	t.Logf("%d tools; at most %d MiB were resident", count, p.peak()>>20)
	p.end()
}

// TestLargeTools: tools as large as they may be fill the room for code, and no
// more of the server's memory than it may have.
func TestLargeTools(t *testing.T) {
	t.Parallel()
	p := start(t, "--log-level=error").open()
	code := "[1" + strings.Repeat(",1", 125_000) + "]"
	made := 0
	for i := range 40 {
		if r := p.call("evolve", fmt.Sprintf(`{"name":"large%d","code":%s}`, i, code)); r.IsError {
			if r.kind() != "refused" {
				t.Fatal(r.Content[0].Text)
			}
			break
		}
		made++
	}
	if made < 30 || made == 40 {
		t.Errorf("%d tools of 250 kB were made", made)
	}
	if r := p.call("run", `{"code":{"length":{"eval":{"code_of":"large0"}}}}`); r.Content[0].Text != "125001" {
		t.Errorf("large0 gave %.200s", r.Content[0].Text)
	}
	if r := p.call("evolve", `{"name":"large0","code":1}`); r.IsError {
		t.Errorf("a smaller version is refused: %s", r.Content[0].Text)
	}
	p.still(t)
	t.Logf("%d tools; at most %d MiB were resident", made, p.peak()>>20)
	p.end()
}

// TestLargeCodeTogether: code as large as it may be, of the kind that takes most, in
// many calls at once and in tools, takes no more memory than the server may have.
func TestLargeCodeTogether(t *testing.T) {
	t.Parallel()
	tools, calls := 4, 8
	if full() {
		tools, calls = 12, 24
	}
	p := start(t, "--log-level=error").open()
	code := quoted("x => [-x" + strings.Repeat(",-x", 80_000) + "]")
	for i := range tools {
		if r := p.call("evolve", fmt.Sprintf(`{"name":"large%d","code":%s}`, i, code)); r.IsError {
			t.Fatal(r.Content[0].Text)
		}
	}
	go func() {
		for i := range calls {
			what := fmt.Sprintf(`"tool":"large%d"`, i/2%tools)
			if i%2 == 0 {
				what = `"code":` + code
			}
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"c%d","method":"tools/call","params":{"name":"run","arguments":{%s,"input":1}}}`, i, what))
		}
	}()
	for done := 0; done < calls; {
		if m := p.receive(); m.Method == "" {
			if r := p.tool(m); r.IsError {
				t.Error(r.Content[0].Text)
			}
			done++
		}
	}
	p.still(t)
	t.Logf("%d tools; at most %d MiB were resident", tools, p.peak()>>20)
	p.end()
}
