package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// An attack is a row of the table.
type attack struct {
	name, doc string
	flags     []string
	stdio     bool
	open      bool   // without tokens
	alone     bool   // nobody else is there, and it ends by itself
	code      string // what the innocent runs; else 1 + 1
	want      string
	lasts     time.Duration // else 8 s
	// before makes ready what no time is taken of.
	before func(ctx context.Context, s *server) error
	do     func(ctx context.Context, s *server) error
}

const timeout = 3 * time.Second

var attacks = []attack{
	program("effect", "an effect that is denied, its argument 1 shared 2^60 times", `!fs.read(fold(p => (fst(p), fst(p)), 1, range(0, 60)))`, 1),
	called("call", "two calls of a tool, the input shared 2^60 times"),
	program("totext", "`to_text` of 1.2 million nested pairs", `length(to_text(fold(p => (fst(p), snd(p)), 0, range(0, 1200000))))`, 1),
	program("unique", "`unique` of three values of 1.2 million nested pairs", `let v = fold(p => (fst(p), snd(p)), 0, range(0, 1200000)) in length(unique([v, v, v]))`, 1),
	program("search", "`contains` in a million items, a thousand times: 10^9 steps", `let l = range(0, 1000000) in fold(p => contains(l, 0 - 1 - snd(p)), false, range(0, 1000))`, 2),
	{name: "cancelled", doc: "the programs above and below, each cancelled after a second", flags: []string{"--store=memory"}, lasts: 25 * time.Second, do: cancelled},
	program("contains", "`contains` of values shared 2^40 times", `let v = fold(p => (fst(p), fst(p)), 1, range(0, 40)) in let w = fold(p => (fst(p), fst(p)), 1, range(0, 40)) in contains([v, v], (w, 2))`, 2),
	program("digits", "an integer of 8 million digits as the result", `fold(p => fst(p) * fst(p), 10, range(0, 23))`, 2),
	program("shared", "a result that is shared 2^24 times", `fold(p => (fst(p), fst(p)), 1, range(0, 24))`, 2),
	{name: "many", doc: "eighty extreme programs, four at a time", flags: []string{"--timeout=3s"}, lasts: 20 * time.Second, do: many},
	{name: "full", doc: "the same, where results and a journal in memory are kept as large as may be", flags: []string{"--timeout=3s", "--store=memory"}, lasts: 20 * time.Second, before: fill, do: many},
	{name: "items", doc: "ten of these, then calls by name with 1.9 million items, of two principals at once", flags: []string{"--timeout=3s"}, lasts: 30 * time.Second, before: heavy, do: items},
	{name: "ids", doc: "stdio: answers that nobody reads, with ids of 15 MiB", stdio: true, alone: true, do: ids},
	{name: "unread", doc: "stdio: 10,000 lists of 1,000 tools that nobody reads", flags: []string{"--store=memory"}, stdio: true, alone: true, lasts: 30 * time.Second, do: unread},
	{name: "journal", doc: "a tool that reads 200 MiB, four times, `--journal-max-size 32MB`", flags: []string{"--journal-max-size=32MB", "--cap=fs.read:./data"}, lasts: 25 * time.Second, before: data, do: reads},
	{name: "writers", doc: "six principals that write 4 MB, three times a run", flags: []string{"--cap=fs:./data"}, lasts: 12 * time.Second,
		do: act(`p => let s = fold(p => fst(p) ++ fst(p), "0123456789abcdef", range(0, 18)) in length(map(i => !fs.write({path: p ++ to_text(i), content: s}), range(0, 3)))`)},
	{name: "readers", doc: "six principals that read four files of 2 MiB at once", flags: []string{"--cap=fs:./data"}, lasts: 12 * time.Second,
		do: act(`p => sum(map(s => length(s), par(!fs.read("1"), !fs.read("2"), !fs.read("3"), !fs.read("4"))))`)},
	{name: "fetchers", doc: "six principals that fetch four answers of 7 MB at once", flags: []string{"--cap=fetch:REMOTE/**"}, lasts: 12 * time.Second,
		do: act(`p => sum(map(a => length(a.body), par(!fetch.request("REMOTE/1"), !fetch.request("REMOTE/2"), !fetch.request("REMOTE/3"), !fetch.request("REMOTE/4"))))`)},
	{name: "plans", doc: "two principals that plan 200 writes of 16 KiB, thirty times at once each", flags: []string{"--cap=fs:./data"}, lasts: 12 * time.Second, do: plans},
	{name: "streams", doc: "no tokens: eight streams whose requests came in chunks", open: true, lasts: 5 * time.Second, do: streams},
	{name: "bodies", doc: "sixteen principals that send 7 MiB each and stop", lasts: 5 * time.Second, do: bodies},
	{name: "idle", doc: "4,000 idle connections of nobody, made again as they end", do: idle},
	{name: "pool", doc: "14 runs of one principal that hold memory; another's list", flags: []string{"--timeout=20s"}, code: `length(map(x => x + 1, range(0, 100000)))`, want: "100000", do: holds},
	{name: "cpu", doc: "63 principals that compute without an end", flags: []string{"--timeout=20s"}, lasts: 6 * time.Second, before: greet, do: computes},
	{name: "lists", doc: "490 slow readers of the first page of 10,000 tools", lasts: 12 * time.Second, before: tools, do: lists},
	{name: "answers", doc: "490 slow readers of results of 256 KiB", lasts: 12 * time.Second, do: results},
	{name: "waiting", doc: "1,960 calls of four principals that wait for their turn, and nobody reads their answers", flags: []string{"--timeout=20s"}, lasts: 15 * time.Second, before: greet, do: waiting},
	{name: "hello", doc: "64 principals that said `initialize`, where something is granted", flags: []string{"--cap=kv:notes/**"}, lasts: 4 * time.Second, before: hello, do: wait},
	{name: "evolves", doc: "64 principals that evolve and run 256 KiB of text, two at once each", flags: []string{"--store=memory"}, lasts: 12 * time.Second, before: greet, do: evolves},
	{name: "stock", doc: "64 principals that make as many tools as they may, of 256 KiB of code or examples", lasts: 30 * time.Second, before: greet, do: stocks},
	{name: "files", doc: "a plugin that makes 400,000 empty files where it can", flags: []string{"--plugin-lock=lock.json", "--cap=litter:all"}, alone: true, lasts: 30 * time.Second, do: litters},
	{name: "kill", doc: "kill -9 while a tool writes, and one more start", flags: []string{"--cap=fs:./data"}, alone: true, lasts: 20 * time.Second, before: data, do: killed},
}

// on attacks a server.
func (a *attack) on(ctx context.Context, binary, dir string) (figures, error) {
	own, err := os.MkdirTemp(dir, a.name)
	if err != nil {
		return figures{}, err
	}
	defer os.RemoveAll(own)
	if slices.ContainsFunc(a.flags, func(f string) bool { return strings.HasSuffix(f, ":./data") }) {
		if err := makeData(own); err != nil {
			return figures{}, err
		}
	}
	if a.name == "files" {
		if err := addLitter(ctx, binary, own); err != nil {
			return figures{wait: -1, late: -1}, err
		}
	}
	flags := []string{"--log-level=warn"}
	for _, f := range a.flags {
		flags = append(flags, strings.Replace(f, "REMOTE", remote(), 1))
	}
	s, err := start(ctx, binary, own, !a.stdio, !a.open && !a.stdio, flags...)
	if err != nil {
		return figures{wait: -1, late: -1}, err
	}
	defer s.kill()
	if a.before != nil {
		ready, cancel := context.WithTimeout(ctx, 3*time.Minute)
		err := a.before(ready, s)
		cancel()
		if err != nil {
			return s.figures, err
		}
	}
	if !a.alone && !a.open && a.name != "hello" { // there, an own store has to be opened
		if _, err := s.call(ctx, "eve", "run", object{"code": 1}); err != nil {
			return s.figures, err
		}
	}
	lasts := cmp.Or(a.lasts, 8*time.Second)
	during, over := context.WithTimeout(ctx, lasts)
	defer over()
	var all sync.WaitGroup
	if !a.alone {
		who, code, want := "eve", "1 + 1", "2"
		if a.open {
			who = ""
		}
		if a.code != "" {
			code, want = a.code, a.want
		}
		all.Go(func() { s.innocent(during, who, code, want) })
	}
	err = a.do(during, s)
	if err == nil && !a.alone {
		<-during.Done()
	}
	over()
	all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.figures, err
}

// greet has every principal's server be open.
func greet(ctx context.Context, s *server) error {
	for i := range principals {
		if _, err := s.call(ctx, fmt.Sprint("p", i), "run", object{"code": 1}); err != nil {
			return err
		}
	}
	return nil
}

func wait(ctx context.Context, _ *server) error {
	<-ctx.Done()
	return nil
}

// each does so many at once, and waits for all.
func each(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// timed makes a call that the server's time ends, and notes how much later that was.
func (s *server) timed(ctx context.Context, principal string, arguments object) {
	began := time.Now()
	if _, err := s.call(ctx, principal, "run", arguments); err != nil && ctx.Err() == nil {
		return
	}
	late := max(time.Since(began)-timeout, 0)
	s.note(func(f *figures) { f.late, f.cut = max(f.late, late), f.cut || ctx.Err() != nil })
}

const mostSteps = 1_000_000_000

// programs is those of attacks by one, and one that computes without an end.
var programs = []string{`(f => f(f))(f => f(f))`}

// program is an attack by one program, so many times at once.
func program(name, doc, code string, times int) attack {
	programs = append(programs, code)
	return attack{name: name, doc: doc, flags: []string{"--timeout=" + timeout.String()}, do: func(ctx context.Context, s *server) error {
		each(times, func(int) { s.timed(ctx, "p0", object{"code": code, "steps": mostSteps}) })
		return nil
	}}
}

func called(name, doc string) attack {
	a := program(name, doc, "", 2)
	a.before = func(ctx context.Context, s *server) error {
		if err := s.make(ctx, "p0", object{"name": "f", "code": "x => 1"}); err != nil {
			return err
		}
		return s.make(ctx, "p0", object{"name": "g", "code": `n => call("f", fold(p => (fst(p), fst(p)), 1, range(0, n)))`, "capabilities": []string{"call:f"}})
	}
	a.do = func(ctx context.Context, s *server) error {
		each(2, func(int) { s.timed(ctx, "p0", object{"tool": "g", "input": 60, "steps": mostSteps}) })
		return nil
	}
	return a
}

// extremes want all of something.
var extremes = []string{
	`length(map(x => x + 1, range(0, 1000000)))`,
	`map(x => [x, x], range(0, 200000))`,
	`fold(p => fst(p) * fst(p), 10, range(0, 22))`,
	`length(fold(p => fst(p) ++ fst(p), "0123456789", range(0, 22)))`,
	`fold(p => {a: fst(p), b: fst(p)}, 1, range(0, 22))`,
	`(f => f(f))(f => 1 + f(f))`,
	`length(to_text(map(x => x, range(0, 1000000))))`,
	`let v = fold(p => (fst(p), snd(p)), 0, range(0, 600000)) in equal(v, (v, v))`,
}

// many runs such programs, one after the other.
func many(ctx context.Context, s *server) error {
	each(4, func(w int) {
		for i := range 20 {
			if ctx.Err() == nil {
				_ = s.runs(ctx, fmt.Sprint("p", w), extremes[(i+2*w)%len(extremes)])
			}
		}
	})
	return nil
}

// runs runs code, and says so where that is no program.
func (s *server) runs(ctx context.Context, principal, code string) error {
	answer, err := s.call(ctx, principal, "run", object{"code": code, "steps": mostSteps})
	if strings.Contains(answer, `"kind":"parse_error"`) {
		s.say("**%.80s is no program**", code)
	}
	return err
}

// heavy makes a tool, and runs ten extreme programs.
func heavy(ctx context.Context, s *server) error {
	for _, p := range []string{"p0", "p1"} {
		if err := s.make(ctx, p, object{"name": "f", "code": "xs => length(xs)"}); err != nil {
			return err
		}
	}
	for i := range 10 {
		_ = s.runs(ctx, "p0", extremes[i%len(extremes)])
	}
	return nil
}

// items calls a tool by its name with as many items as there may be.
func items(ctx context.Context, s *server) error {
	each(2, func(i int) {
		item := []string{"1", "[]"}[i]
		list := "[" + strings.Repeat(item+",", 1_900_000) + item + "]"
		for range 3 {
			_, _ = s.post(ctx, fmt.Sprint("p", i), "tools/call", "f", `"name":"f","arguments":{"xs":`+list+`}`)
		}
	})
	return nil
}

// fill has results kept that are too large to show, and a journal in memory.
func fill(ctx context.Context, s *server) error {
	for i := range 32 {
		code := fmt.Sprintf(`fold(p => fst(p) ++ fst(p), "%d0123456789abcde", range(0, 18))`, i%10)
		if err := s.runs(ctx, fmt.Sprint("p", i%8), code); err != nil {
			return err
		}
	}
	for i := range 160 {
		if _, err := s.call(ctx, fmt.Sprint("p", i%16), "run", object{"code": fmt.Sprintf("length(%q)", strings.Repeat(fmt.Sprint(i%10), 250_000))}); err != nil {
			return err
		}
	}
	return nil
}

// ids sends requests whose answers are long, and reads none.
func ids(ctx context.Context, s *server) error {
	fmt.Fprintln(s.in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	done := make(chan struct{})
	go func() {
		defer close(done)
		id := strings.Repeat("x", 15<<20)
		for i := range 30 {
			if _, err := fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":"%d%s","method":"ping"}`+"\n", i, id); err != nil {
				return
			}
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.kill()
		<-done
	}
	return nil
}

// makeData fills a folder of files that differ.
func makeData(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		return err
	}
	dice := rand.New(rand.NewPCG(1, 2))
	for i := range 100 {
		text := make([]byte, 2<<20)
		for j := range text {
			text[j] = byte('a' + dice.IntN(26))
		}
		if err := os.WriteFile(filepath.Join(dir, "data", fmt.Sprint(i)), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func data(ctx context.Context, s *server) error {
	if err := s.make(ctx, "p0", object{"name": "reads", "code": `n => sum(map(i => length(!fs.read(to_text(i))), range(0, 100)))`, "capabilities": []string{"fs.read:./data"}}); err != nil {
		return err
	}
	if !slices.Contains(s.cmd.Args, "--cap=fs:./data") {
		return nil
	}
	return s.make(ctx, "p0", object{"name": "writes", "code": `n => sum(map(i => let w = !fs.write({path: "out" ++ to_text(i), content: !fs.read(to_text(i))}) in 1, range(0, 100)))`, "capabilities": []string{"fs:./data"}})
}

// make makes a tool, which has to be one.
func (s *server) make(ctx context.Context, principal string, tool object) error {
	answer, err := s.call(ctx, principal, "evolve", tool)
	if err == nil && strings.Contains(answer, `"isError":true`) {
		err = fmt.Errorf("there is no tool %v: %.300s", tool["name"], answer)
	}
	return err
}

// remote is a server of answers of 7 MB.
var remote = sync.OnceValue(func() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return ""
	}
	body := strings.Repeat("x", 7_000_000)
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
	}()
	return "http://" + l.Addr().String()
})

// act makes a tool for each of six principals, runs each of them again and again, and notes how many runs came to their ends.
func act(code string) func(ctx context.Context, s *server) error {
	return func(ctx context.Context, s *server) error {
		var ends atomic.Int64
		each(6, func(i int) {
			p := fmt.Sprint("p", i)
			granted := "fs:./data"
			if strings.Contains(code, "REMOTE") {
				granted = "fetch:" + remote() + "/**"
			}
			tool := object{"name": "acts", "code": strings.ReplaceAll(code, "REMOTE", remote()), "capabilities": []string{granted}}
			if err := s.make(ctx, p, tool); err != nil && ctx.Err() == nil {
				s.say("%v", err)
			}
			for ctx.Err() == nil {
				if answer, err := s.call(ctx, p, "run", object{"tool": "acts", "input": p, "steps": mostSteps}); err == nil && !strings.Contains(answer, `"isError":true`) {
					ends.Add(1)
				}
			}
		})
		s.say("%d runs came to their ends", ends.Load())
		return nil
	}
}

// reads has a tool read, again and again, and notes how large the store gets.
func reads(ctx context.Context, s *server) error {
	most := int64(0)
	watch, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		for watch.Err() == nil {
			most = max(most, size(filepath.Join(s.dir, "state")))
			time.Sleep(20 * time.Millisecond)
		}
	})
	for range 4 {
		_, _ = s.call(ctx, "p0", "run", object{"tool": "reads", "steps": mostSteps})
	}
	stop()
	all.Wait()
	text := fmt.Sprintf("the store: %d MB of 32", most/1e6)
	if most > 32e6*mostStore/100 {
		text = "**" + text + "**"
	}
	s.say("%s", text)
	return nil
}

// session begins one of the older protocols.
func (s *server) session(ctx context.Context, principal string) (string, error) {
	_, h, err := s.send(ctx, principal, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, nil)
	return h.Get("Mcp-Session-Id"), err
}

// hold keeps connections open until the attack is over, each with what it was sent.
func (s *server) hold(ctx context.Context, n int, text func(i int) string) error {
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for i := range n {
		c, err := s.dial(ctx, text(i))
		if err != nil {
			break
		}
		conns = append(conns, c)
	}
	<-ctx.Done()
	return nil
}

func streams(ctx context.Context, s *server) error {
	var ids []string
	for range 8 {
		id, err := s.session(ctx, "")
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	return s.hold(ctx, 8, func(i int) string {
		return head("GET", "", "") + "Mcp-Session-Id: " + ids[i] + "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	})
}

func bodies(ctx context.Context, s *server) error {
	body := strings.Repeat(" ", 7<<20)
	each(16, func(i int) {
		_ = s.hold(ctx, 1, func(int) string {
			return head("POST", fmt.Sprint("p", i), stateless) + "Content-Length: 8000000\r\n\r\n" + body
		})
	})
	return nil
}

// idle asks for the health on each connection, so that it may stay.
func idle(ctx context.Context, s *server) error {
	each(8, func(int) {
		conns := make([]net.Conn, 500)
		defer func() {
			for _, c := range conns {
				if c != nil {
					c.Close()
				}
			}
		}()
		one := make([]byte, 4096)
		for i := 0; ctx.Err() == nil; i = (i + 1) % len(conns) {
			if c := conns[i]; c != nil {
				_ = c.SetReadDeadline(time.Now())
				if _, err := c.Read(one); errors.Is(err, os.ErrDeadlineExceeded) {
					time.Sleep(time.Millisecond)
					continue
				}
				c.Close()
			}
			c, err := s.dial(ctx, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if err != nil {
				conns[i] = nil
				time.Sleep(10 * time.Millisecond)
				continue
			}
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			_, _ = c.Read(one)
			conns[i] = c
		}
	})
	return nil
}

func holds(ctx context.Context, s *server) error {
	each(14, func(int) {
		for ctx.Err() == nil {
			_, _ = s.call(ctx, "p0", "run", object{"code": `let l = map(x => x + 1, range(0, 300000)) in (f => f(f))(f => if length(l) > 0 then f(f) else 0)`, "steps": mostSteps})
			time.Sleep(20 * time.Millisecond)
		}
	})
	return nil
}

func computes(ctx context.Context, s *server) error {
	each(2*63, func(i int) {
		for ctx.Err() == nil {
			_, _ = s.call(ctx, fmt.Sprint("p", i/2), "run", object{"code": `(f => f(f))(f => f(f))`, "steps": mostSteps})
		}
	})
	return nil
}

func tools(ctx context.Context, s *server) error {
	const all, each = 10_000, 16
	for i := 0; i < all; i += each {
		made := make([]object, each)
		for j := range made {
			made[j] = object{"name": fmt.Sprintf("tool_%d", i+j), "code": fmt.Sprintf("n => n + %d", i+j), "description": strings.Repeat("adds ", 60)}
		}
		if err := s.make(ctx, "p0", object{"tools": made}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// slow reads answers by a few bytes, on so many connections.
func (s *server) slow(ctx context.Context, n int, request string) error {
	each(n, func(int) {
		for ctx.Err() == nil {
			c, err := s.dial(ctx, request)
			if err != nil {
				return
			}
			_ = c.(*net.TCPConn).SetReadBuffer(4096)
			in := bufio.NewReaderSize(c, 1024)
			for ctx.Err() == nil {
				_ = c.SetReadDeadline(time.Now().Add(time.Second))
				if _, err := in.Discard(512); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					break
				}
				select {
				case <-ctx.Done():
				case <-time.After(200 * time.Millisecond):
				}
			}
			c.Close()
		}
	})
	return nil
}

func request(principal, method, name, params string) string {
	body := message(method, params)
	h := head("POST", principal, stateless) + "Mcp-Method: " + method + "\r\n"
	if name != "" {
		h += "Mcp-Name: " + name + "\r\n"
	}
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", h, len(body), body)
}

func lists(ctx context.Context, s *server) error {
	return s.slow(ctx, 490, request("p0", "tools/list", "", ""))
}

func results(ctx context.Context, s *server) error {
	return s.slow(ctx, 490, request("p0", "tools/call", "run", `"name":"run","arguments":{"code":"map(x => x, range(100000, 135000))"}`))
}

func waiting(ctx context.Context, s *server) error {
	each(4, func(i int) {
		_ = s.slow(ctx, 490, request(fmt.Sprint("p", i), "tools/call", "run", `"name":"run","arguments":{"code":"(f => f(f))(f => f(f))","steps":1000000000}`))
	})
	return nil
}

func hello(ctx context.Context, s *server) error {
	for i := range principals {
		if _, err := s.session(ctx, fmt.Sprint("p", i)); err != nil {
			return err
		}
	}
	return nil
}

// killed kills the server in the middle of writes, starts another, and counts what is left.
func killed(ctx context.Context, s *server) error {
	go func() { _, _ = s.call(ctx, "p0", "run", object{"tool": "writes", "steps": mostSteps}) }()
	parts := func() []string {
		files, _ := filepath.Glob(filepath.Join(s.dir, "data", ".pif-*"))
		return files
	}
	for ctx.Err() == nil && len(parts()) == 0 {
		time.Sleep(time.Millisecond)
	}
	s.kill()
	left := func() int {
		folders, _ := filepath.Glob(filepath.Join(s.dir, "tmp", "*"))
		return len(parts()) + len(folders)
	}
	first := left()
	again, err := start(ctx, s.cmd.Path, s.dir, true, true, "--log-level=warn", "--cap=fs:./data")
	if err != nil {
		return err
	}
	if _, err := again.call(ctx, "p0", "run", object{"code": 1}); err != nil {
		s.say("%v", err)
	}
	for end := time.Now().Add(5 * time.Second); len(parts()) > 0 && time.Now().Before(end); { // a plugin's process starts, and sweeps
		time.Sleep(10 * time.Millisecond)
	}
	again.stop()
	text := fmt.Sprintf("left after kill -9: %d, after one more start: %d", first, left())
	if left() > 0 {
		text = "**" + text + "**"
	}
	s.say("%s", text)
	return nil
}

// unread asks for lists over standard input, and reads none. How many tools there are doesn't matter:
// a page has a thousand.
func unread(ctx context.Context, s *server) error {
	end := context.AfterFunc(ctx, s.kill)
	defer end()
	out := bufio.NewReader(s.out)
	ask := func(id int, method, params string) error {
		if _, err := fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params); err != nil {
			return err
		}
		for {
			if line, err := out.ReadString('\n'); err != nil || strings.Contains(line, fmt.Sprintf(`"id":%d,`, id)) {
				return err
			}
		}
	}
	if err := ask(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`); err != nil {
		return err
	}
	fmt.Fprintln(s.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i := range 100 {
		var made []string
		for j := range 10 {
			made = append(made, fmt.Sprintf(`{"name":"tool_%d","code":"n => n + %d","description":%q}`, 10*i+j, j, strings.Repeat("adds ", 60)))
		}
		if err := ask(i+1, "tools/call", `{"name":"evolve","arguments":{"tools":[`+strings.Join(made, ",")+`]}}`); err != nil {
			return err
		}
	}
	for i := range 10_000 {
		if _, err := fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", 1000+i); err != nil {
			break
		}
	}
	<-ctx.Done()
	return nil
}

// evolves has every principal make large tools, several at once.
func evolves(ctx context.Context, s *server) error {
	code := "[1" + strings.Repeat(",1", 130_000) + "]"
	each(2*principals, func(i int) {
		for ctx.Err() == nil {
			tool, arguments := "run", object{"code": code}
			if i%2 == 0 {
				tool, arguments = "evolve", object{"name": "t0", "code": code}
			}
			if _, err := s.call(ctx, fmt.Sprint("p", i/2), tool, arguments); err != nil && ctx.Err() == nil {
				time.Sleep(20 * time.Millisecond) // there is no room for more
			}
		}
	})
	return nil
}

// stocks has every principal make tools, and try again where no more fit.
func stocks(ctx context.Context, s *server) error {
	long := strings.Repeat("x", 250_000)
	each(principals, func(i int) {
		for j := 0; ctx.Err() == nil; j++ {
			tool := object{"name": fmt.Sprint("t", j), "code": fmt.Sprintf("x => [%q, %d]", long[j:], j)}
			if j >= 32 {
				tool = object{"name": fmt.Sprint("t", j), "code": "x => 1", "examples": []object{{"input": long, "expect": 1}}}
			}
			if answer, err := s.call(ctx, fmt.Sprint("p", i), "evolve", tool); err != nil || strings.Contains(answer, `"isError":true`) {
				time.Sleep(20 * time.Millisecond) // there is no room for more
			}
		}
	})
	return nil
}

// cancelled cancels a run of each program, and notes when the journal has its end.
func cancelled(ctx context.Context, s *server) error {
	ended := func() int {
		text, _ := s.call(ctx, "p0", "journal", object{"kind": "run.ended", "limit": 50})
		return strings.Count(text, `"kind":"run.ended"`)
	}
	for _, code := range programs {
		if code == "" { // its attack has another
			continue
		}
		before := ended()
		one, cancel := context.WithTimeout(ctx, time.Second)
		_, err := s.call(one, "p0", "run", object{"code": code, "steps": mostSteps})
		began := time.Now()
		cancel()
		if err == nil {
			continue // it was over before
		}
		for ctx.Err() == nil && ended() == before {
			time.Sleep(5 * time.Millisecond)
		}
		late := time.Since(began)
		s.note(func(f *figures) { f.late, f.cut = max(f.late, late), f.cut || ctx.Err() != nil })
	}
	return nil
}

// pluginEnv is what a host sets for its plugins: this program is one, too.
const pluginEnv = "MCP_PIF_PLUGIN"

// litterCount is how many files the plugin makes where it can.
const litterCount = 400_000

type littering struct {
	Scope string `pif:"scope,main,designates" doc:"all"`
}

type littered struct{ Made int }

// litter is a plugin without privileges that makes empty files in its own folders.
func litter() {
	sdk.Serve(sdk.Plugin{
		Kind: "litter", Version: "1.0.0", Doc: "makes empty files", Scope: sdk.Segments,
		Operations: []sdk.Operation{sdk.Op("make", "makes empty files", sdk.Flags{},
			func(ctx context.Context, _ any, _ littering) (l littered, _ error) {
				for _, dir := range []string{".", os.TempDir(), os.Getenv("PLUGIN_UNIX_SOCKET_DIR")} {
					for i := 0; i < litterCount && ctx.Err() == nil; i++ {
						f, err := os.Create(filepath.Join(dir, "litter"+strconv.Itoa(i)))
						if err != nil {
							break
						}
						f.Close()
						l.Made++
					}
				}
				return l, nil
			})},
	})
}

// addLitter puts the plugin in a lock.
func addLitter(ctx context.Context, binary, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"add", self}, {"accept", "litter"}} {
		add := exec.CommandContext(ctx, binary, append([]string{"plugin"}, append(args, "--yes", "--plugin-lock", filepath.Join(dir, "lock.json"))...)...)
		if out, err := add.CombinedOutput(); err != nil {
			return fmt.Errorf("plugin %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

// litters has the plugin make files, and notes how many it made and how long the server's end takes then.
func litters(ctx context.Context, s *server) error {
	if err := s.make(ctx, "p0", object{"name": "litter", "code": `n => !litter.make("all")`, "capabilities": []string{"litter:all"}}); err != nil {
		return err
	}
	if _, err := s.call(ctx, "p0", "run", object{"tool": "litter"}); err != nil {
		return err
	}
	files := count(filepath.Join(s.dir, "tmp"))
	began := time.Now()
	s.stop()
	took, left := time.Since(began), count(filepath.Join(s.dir, "tmp"))
	said := fmt.Sprintf("files: %d, left: %d; the end took %s", files, left, round(took))
	if files > 100 || left > 0 || took > 5*time.Second {
		said = "**" + said + "**"
	}
	s.say("%s", said)
	return nil
}

// count is how many files and folders are in a folder.
func count(dir string) (n int) {
	_ = filepath.WalkDir(dir, func(string, os.DirEntry, error) error { n++; return nil })
	return n - 1
}
