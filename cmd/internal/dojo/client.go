package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// A person answers the questions that rules put to them.
type person func(op string, args record) bool

// A session is mcp-pif with one environment behind it, and a client before it.
type session struct {
	binary, dir, name string
	stub              *stub
	cmd               *exec.Cmd
	in                io.WriteCloser
	out               *bufio.Reader
	errors            bytes.Buffer
	id, run           int
	made              map[string]bool
	person            person
	// unfinished is how many runs may be without an end, at most.
	unfinished int
	// asked is the questions of the run under way.
	asked int
}

// open starts a server by a policy file, which may say nothing of flow.
func open(binary, dir, name string, policy []byte) (*session, error) {
	w, err := load(name)
	if err != nil {
		return nil, err
	}
	s := &session{binary: binary, dir: dir, name: name, stub: newStub(w), made: map[string]bool{}}
	acts := filepath.Join(dir, "acts")
	for _, d := range []string{acts, filepath.Join(dir, "state")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(s.path("policy.json"), policy, 0o600); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if out, err := s.command("mcp", "add", name, "--accept", "--yes", "--write", acts, "--", self, serverWord, name, acts).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mcp add: %w\n%s", err, out)
	}
	return s, s.start()
}

// start starts the server, and says hello to it.
func (s *session) start() (err error) {
	s.cmd = s.command("--log-level=error", "--store", s.store(), "--policy", s.path("policy.json"), "--model", "ext="+s.stub.URL+"/v1,model=stub", "--ask-via=elicitation")
	s.cmd.Stderr = &s.errors
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	s.out = bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		return err
	}
	if _, err := s.ask("initialize", record{"protocolVersion": "2025-06-18", "capabilities": record{"elicitation": record{}}, "clientInfo": record{"name": "dojo", "version": "1"}}); err != nil {
		return err
	}
	return s.send(record{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

// restart ends the server, or kills it, and starts it anew.
func (s *session) restart(kill bool) error {
	if kill {
		_ = s.cmd.Process.Kill()
	}
	_ = s.in.Close()
	_, _ = io.Copy(io.Discard, s.out)
	if err := s.cmd.Wait(); err != nil && !kill {
		return fmt.Errorf("the server of %s: %w\n%s", s.name, err, s.errors.Bytes())
	}
	return s.start()
}

func (s *session) path(name string) string { return filepath.Join(s.dir, name) }

func (s *session) store() string { return s.path("tools.db") }

func (s *session) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.binary, args...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "XDG_STATE_HOME="+s.path("state"))
	return cmd
}

// close ends the server, and replays all that it did; a run that ends otherwise then is an error.
func (s *session) close() (replayed int, err error) {
	s.stub.Close()
	_ = s.in.Close()
	_, _ = io.Copy(io.Discard, s.out)
	if err := s.cmd.Wait(); err != nil {
		return 0, fmt.Errorf("the server of %s: %w\n%s", s.name, err, s.errors.Bytes())
	}
	out, err := s.command("replay", "--all", "--store", s.store()).CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var all, incomplete int
	_, scanned := fmt.Sscanf(lines[len(lines)-1], "%d runs: %d identical, 0 different, %d incomplete", &all, &replayed, &incomplete)
	if err != nil || scanned != nil || replayed+incomplete != all || incomplete > s.unfinished {
		return 0, fmt.Errorf("replay: %w\n%s", errors.Join(err, scanned), out)
	}
	return replayed, nil
}

func (s *session) send(m record) error {
	text, err := json.Marshal(m)
	if err == nil {
		_, err = s.in.Write(append(text, '\n'))
	}
	return err
}

// ask sends a request and gives its answer; the person answers what comes meanwhile.
func (s *session) ask(method string, params record) (json.RawMessage, error) {
	s.id++
	if err := s.send(record{"jsonrpc": "2.0", "id": s.id, "method": method, "params": params}); err != nil {
		return nil, err
	}
	for {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", method, err, s.errors.Bytes())
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Message string }
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, err
		}
		switch {
		case m.Method == "elicitation/create":
			s.asked++
			op, args, err := readQuestion(m.Params.Message)
			if err != nil {
				return nil, err
			}
			answer := record{"action": "accept", "content": record{"allow": s.person(op, args)}}
			if err := s.send(record{"jsonrpc": "2.0", "id": m.ID, "result": answer}); err != nil {
				return nil, err
			}
		case m.Method != "":
		case m.Error != nil:
			return nil, errors.New(m.Error.Message)
		default:
			return m.Result, nil
		}
	}
}

var unseenCharacter = regexp.MustCompile(`\\u\{([0-9A-F]{4})\}`)

// readQuestion reads what a person is shown: the operation, and each argument in the margin below its name.
func readQuestion(message string) (op string, args record, err error) {
	args = record{}
	name, value := "", ""
	keep := func() {
		if name != "" {
			var v any
			d := json.NewDecoder(strings.NewReader(value))
			d.UseNumber()
			if err = errors.Join(err, d.Decode(&v)); err == nil {
				args[name] = v
				if dec, ok := v.(record); ok && dec["dec"] != nil {
					args[name] = json.Number(dec["dec"].(string))
				}
			}
		}
		name, value = "", ""
	}
	for line := range strings.Lines(message) {
		line = strings.TrimRight(line, "\n")
		switch {
		case op != "" && strings.HasPrefix(line, "  | "):
			// Each backslash of the JSON is written out, and so are characters that nobody sees.
			value += unseenCharacter.ReplaceAllString(strings.ReplaceAll(strings.TrimSpace(line[4:]), `\\`, `\`), `\u$1`)
		case op != "" && strings.HasPrefix(line, "    "): // where it came from
		case op != "" && strings.HasPrefix(line, "  "):
			keep()
			name, _, _ = strings.Cut(strings.TrimSpace(line), " ")
		case strings.HasSuffix(line, ":") && !strings.Contains(line, " "):
			op = strings.TrimSuffix(line, ":")
		}
	}
	keep()
	if op == "" || err != nil {
		return "", nil, fmt.Errorf("a question that can't be read: %w\n%s", err, message)
	}
	return op, args, nil
}

// An answer is what a tool's call comes to.
type answer struct {
	text, kind string
	result     json.RawMessage
}

// call calls a tool of the server's.
func (s *session) call(name string, args record) (answer, error) {
	raw, err := s.ask("tools/call", record{"name": name, "arguments": args})
	if err != nil {
		return answer{}, err
	}
	var r struct {
		Content    []struct{ Text string }
		Structured struct {
			Result json.RawMessage
			Error  struct{ Kind string }
		} `json:"structuredContent"`
	}
	if err := json.Unmarshal(raw, &r); err != nil || len(r.Content) == 0 {
		return answer{}, fmt.Errorf("%s: %w in %s", name, err, raw)
	}
	return answer{r.Content[0].Text, r.Structured.Error.Kind, r.Structured.Result}, nil
}

// begin begins a run: a world of its own, in a session that was shown nothing.
func (s *session) begin(c control, owned map[string]string, p person) error {
	s.run++
	s.asked, s.person = 0, p
	c.Run = s.run
	s.stub.is(c.Attack, owned)
	return errors.Join(s.forget(), c.write(s.path("acts")))
}

// forget is a person who begins a new conversation. It takes a terminal; here the file goes, as it would by that person's hand.
func (s *session) forget() error {
	return filepath.WalkDir(s.path("state"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "flow.json" {
			return os.Remove(path)
		}
		return err
	})
}

// acts is what the run under way asked the environment for.
func (s *session) acts() ([]act, error) { return acts(s.path("acts"), s.run) }

// make makes a tool, once.
func (s *session) make(name, code string) error {
	if s.made[name] {
		return nil
	}
	a, err := s.call("evolve", record{"name": name, "code": code, "capabilities": needs(s.name, code)})
	if err == nil && a.kind != "" {
		err = fmt.Errorf("%s: %s", name, a.text)
	}
	s.made[name] = err == nil
	return err
}
