package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A world is a state directory with what models made in it, and the program that serves the
// page over it.
type world struct {
	dir    string // with the state and a sandbox
	binary string
	page   *exec.Cmd
	stdin  io.WriteCloser
	lines  *bufio.Reader
}

// root is the repository, from the folder of this package.
const root = "../../../.."

// build compiles the program.
func build(dir string) (string, error) {
	binary := filepath.Join(dir, "mcp-pif")
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/mcp-pif")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return binary, nil
}

func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.binary, args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(w.dir, "state"), "TZ=UTC")
	return cmd
}

// run runs a command to its end.
func (w *world) run(args ...string) error {
	if out, err := w.command(args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// A session is a client of a server of ours.
type session struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	n   int
}

// serve starts a server as a client would.
func (w *world) serve(client string, flags ...string) (*session, error) {
	cmd := w.command(append([]string{"serve", "--log-level=error"}, flags...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	s := &session{cmd: cmd, in: in, out: bufio.NewScanner(out)}
	s.out.Buffer(nil, 64<<20)
	_, err = s.ask("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": client, "version": "1"}})
	if err == nil {
		_, err = fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return s, err
}

// ask sends a request and waits for its answer.
func (s *session) ask(method string, params any) (json.RawMessage, error) {
	s.n++
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.n, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(s.in, "%s\n", text); err != nil {
		return nil, err
	}
	for s.out.Scan() {
		var m struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if json.Unmarshal(s.out.Bytes(), &m) == nil && m.ID == s.n {
			if m.Error != nil {
				return nil, errors.New(string(m.Error))
			}
			return m.Result, nil
		}
	}
	return nil, errors.Join(errors.New("the server ended"), s.out.Err())
}

// call calls a tool; fails says whether it is meant to fail.
func (s *session) call(fails bool, tool string, arguments map[string]any) error {
	raw, err := s.ask("tools/call", map[string]any{"name": tool, "arguments": arguments})
	if err != nil {
		return err
	}
	var a struct{ IsError bool }
	if err := json.Unmarshal(raw, &a); err != nil {
		return err
	}
	if a.IsError != fails {
		return fmt.Errorf("%s %v: %s", tool, arguments, raw)
	}
	return nil
}

// end ends the server.
func (s *session) end() error {
	s.in.Close()
	return s.cmd.Wait()
}

type object = map[string]any

// populate has a model make and run tools, so that each view has something to show.
func (w *world) populate() error {
	for _, dir := range []string{"notes", "outbox", "archive/2025"} {
		if err := os.MkdirAll(filepath.Join(w.dir, dir), 0o700); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"notes/monday.txt": "ship the parser\nwrite to Ann\n", "notes/tuesday.txt": "review the cost model\n", "notes/wednesday.txt": "nothing\n",
	} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := w.run("mcp", "add", "shop", "--yes", "--accept", "--sandbox=best-effort", "--", w.binary, "__tour_shop"); err != nil {
		return err
	}
	s, err := w.serve("claude-code", "--sandbox=best-effort", "--cap", "fs:./notes", "--cap", "kv:notes/**", "--cap", "kv:attic/**", "--confirm", "kv:attic/**", "--cap", "clock:utc", "--cap", "shop,ro", "--cap", "fs.read:./archive",
		"--cap", "fetch.get:https://api.example.com/v1/**", "--ask", "fs:./outbox", "--deny", "fs:./notes/private",
		"--label", "archive=fs.read:./archive", "--no-flow", "archive>fetch")
	if err != nil {
		return err
	}
	evolve := func(name, code, description string, more object) error {
		a := object{"name": name, "code": code, "description": description}
		maps.Copy(a, more)
		return s.call(false, "evolve", a)
	}
	for _, step := range []func() error{
		func() error {
			return evolve("square", "n => n * n", "Squares a number.", object{"examples": []object{{"input": 3, "expect": 9}, {"input": -2, "expect": 4}}})
		},
		func() error {
			return evolve("invoice_total", "order => sum(map(l => l.price * l.n, order.lines))", "The total of an order's lines.", object{"examples": []object{{"input": object{"lines": []object{{"price": 250, "n": 2}}}, "expect": 500}}})
		},
		func() error {
			return evolve("invoice_total", "(order, rate) =>\n  let net = sum(map(l => l.price * l.n, order.lines)) in\n  {net, tax: net * rate / 100}", "The total of an order's lines, with tax in percent.",
				object{"examples": []object{}})
		},
		func() error {
			return evolve("read_note", "day => trim(!fs.read({path: day ++ \".txt\"}))", "Reads the note of a day.", object{"capabilities": []string{"fs.read:./notes"},
				"examples": []object{{"input": "monday", "expect": "call Bob", "effects": []object{{"op": "fs.read", "value": "call Bob\n"}}}}})
		},
		func() error {
			return evolve("week", "days =>\n  // each note, side by side\n  par(map(d => '{@read_note(d)}, days))", "Reads several notes.", object{"capabilities": []string{"call:read_note"}, "draft": true})
		},
		func() error {
			return evolve("digest", "days =>\n  let notes = map(d => {day: d, text: @read_note(d)}, days) in\n  let at = !clock.now({}) in\n  let _ = !kv.put({key: \"notes/digest\", value: notes}) in\n  {at: to_text(at), lines: map(n => $\"{n.day}: {n.text}\", notes)}",
				"Collects the notes of some days and remembers them.", object{"capabilities": []string{"call:read_note", "kv:notes/**", "clock:utc"}})
		},
		func() error {
			return evolve("orders", "page => map(o => o.cents, !shop.list_orders({page: page}).data.orders)", "The amounts on a page of the shop's orders.", object{"capabilities": []string{"shop"}, "draft": true})
		},
		func() error {
			return evolve("forecast", "city => !fetch.request({url: \"https://api.example.com/v1/weather/\" ++ city})", "Asks the weather service.", object{"capabilities": []string{"fetch.get:https://api.example.com/v1/**"}})
		},
		func() error {
			return evolve("send", "(to, text) => !fs.write({path: to ++ \".eml\", content: text})", "Puts a letter into the outbox.", object{"capabilities": []string{"fs.write:./outbox"}})
		},
		func() error { return evolve("scratch", "x => x", "Tries something.", nil) },
		func() error { return s.call(false, "retire", object{"name": "scratch"}) },
		func() error { return s.call(false, "square", object{"input": 12}) },
		func() error {
			return s.call(false, "run", object{"code": "xs => xs |> filter(x => x > 0) |> sum", "input": []int{3, -1, 2}})
		},
		func() error {
			return s.call(false, "invoice_total", object{"order": object{"lines": []object{{"price": 250, "n": 2}, {"price": 100, "n": 1}}}, "rate": 19})
		},
		func() error { return s.call(false, "read_note", object{"input": "monday"}) },
		func() error { return s.call(true, "read_note", object{"input": "../archive/x"}) },
		func() error { return s.call(true, "read_note", object{"input": "sunday"}) },
		func() error {
			return s.call(false, "digest", object{"input": []string{"tuesday"}})
		},
		func() error { return s.call(true, "send", object{"to": "ann", "text": "It works."}) },
		func() error {
			return evolve("store_away", "days => map(d => !kv.put({key: \"attic/\" ++ d, value: @read_note(d)}), days)", "Keeps the notes of some days for good.", object{"capabilities": []string{"call:read_note", "kv.put:attic/**"}})
		},
		func() error { return s.call(false, "store_away", object{"input": []string{"monday", "tuesday"}}) },
		func() error { return s.call(true, "square", object{"input": "many"}) },
		func() error { return s.call(false, "run", object{"tool": "square", "input": 15}) },
		func() error { return s.call(true, "run", object{"code": "n => n / 0", "input": 1}) },
		func() error {
			return s.call(false, "digest", object{"input": []string{"monday", "tuesday", "wednesday"}})
		},
	} {
		if err := step(); err != nil {
			return errors.Join(err, s.end())
		}
	}
	return s.end()
}

// open starts the page and gives the link that opens it.
func (w *world) open(flags ...string) (link string, err error) {
	w.page = w.command(append([]string{"ui"}, flags...)...)
	w.page.Stderr = os.Stderr
	if w.stdin, err = w.page.StdinPipe(); err != nil {
		return "", err
	}
	out, err := w.page.StdoutPipe()
	if err == nil {
		err = w.page.Start()
	}
	if err != nil {
		return "", err
	}
	w.lines = bufio.NewReader(out)
	return w.link()
}

// link reads the next link that the page prints.
func (w *world) link() (string, error) {
	for {
		line, err := w.lines.ReadString('\n')
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(line, "http://") {
			return strings.TrimSpace(line), nil
		}
	}
}

// another asks for another link, as somebody who presses Enter does.
func (w *world) another() (string, error) {
	if _, err := fmt.Fprintln(w.stdin); err != nil {
		return "", err
	}
	return w.link()
}

// close ends the page.
func (w *world) close() {
	if w.page != nil && w.page.Process != nil {
		_ = w.page.Process.Signal(os.Interrupt)
		_ = w.page.Wait()
	}
}

// runs finds a run on the list of a tool's, by how it ended.
func (w *world) runOf(tool, outcome string) (string, error) {
	link, err := w.another()
	if err != nil {
		return "", err
	}
	base, _, _ := strings.Cut(link, "/enter")
	// The name is known to browsers; here the address is the loopback's.
	host := strings.TrimPrefix(base, "http://")
	_, port, _ := strings.Cut(host, ":")
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, Timeout: 20 * time.Second}
	get := func(path string) (string, error) {
		r, err := http.NewRequest(http.MethodGet, "http://127.0.0.1:"+port+path, nil)
		if err != nil {
			return "", err
		}
		r.Host = host
		answer, err := client.Do(r)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return string(text), err
	}
	if _, err := get(strings.TrimPrefix(link, base)); err != nil {
		return "", err
	}
	text, err := get("/p/claude-code/runs?tool=" + tool + "&outcome=" + outcome)
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(`data-run="([^"]+)"`).FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("no run of %s with outcome %s is listed: %s", tool, outcome, text)
	}
	return m[1], nil
}
