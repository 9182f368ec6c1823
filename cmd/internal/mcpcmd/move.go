package mcpcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/clientconfig"
	"github.com/mcp-pif/mcp-pif/cmd/internal/pinned"
	"github.com/mcp-pif/mcp-pif/cmd/internal/programs"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcpprobe"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// A Move takes the servers of a client's file into the lock: those that can be pinned, and
// that answer in the sandbox. The others stay where they are. Nothing is written before commit
// but copies of programs, which rollback removes.
type Move struct {
	cmd     *cobra.Command
	lock    *mcplock.Lock
	sandbox string
	Moved   []*movedServer
	stay    []stayed
	told    int      // how many of those Print has told of
	checked bool     // Moved answered
	added   []string // to the lock, by commit
}

// A movedServer is one that goes: a new entry of the lock, or one that is there already.
type movedServer struct {
	name, word string // in the client's file, and as a kind
	entry      *mcplock.Server
	isThere    bool
	undo       func()
	called     string // the tool that was called to check it; "": none could be
	hide       []string
}

// A stayed server stays in the client's file, for a reason.
type stayed struct{ name, reason string }

// PlanMove pins all servers of a client's file but our own entries, and starts none.
func PlanMove(cmd *cobra.Command, at *ServerLock, file *clientconfig.File, own string, modes []string) (*Move, error) {
	l, err := at.Read()
	if err != nil {
		return nil, err
	}
	boxes, err := app.ReadSandbox(modes)
	if err != nil {
		return nil, err
	}
	m := &Move{cmd: cmd, lock: l, sandbox: string(boxes.Mode(""))}
	defer m.interruptible()()
	servers := file.Servers()
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		command := clientconfig.Command(servers[name])
		if name == own || len(command) > 0 && strings.TrimSuffix(filepath.Base(command[0]), ".exe") == "mcp-pif" {
			continue
		}
		if s, err := m.consider(name, servers[name]); err != nil {
			m.stay = append(m.stay, stayed{name, err.Error()})
		} else {
			m.Moved = append(m.Moved, s)
		}
		if cmd.Context().Err() != nil {
			m.Rollback()
			return nil, errInterrupted
		}
	}
	return m, nil
}

var errInterrupted = errors.New("interrupted; nothing was changed")

// interruptible has one interrupt end all of it, not the server that it meets, until end is called.
func (m *Move) interruptible() (end func()) {
	whole := m.cmd.Context()
	ctx, stop := cli.Interruptible(m.cmd)
	m.cmd.SetContext(ctx)
	return func() { stop(); m.cmd.SetContext(whole) }
}

// Check starts those that are pinned, each in its sandbox. Those that fail stay.
func (m *Move) Check() error {
	defer m.interruptible()()
	m.Moved = slices.DeleteFunc(m.Moved, func(s *movedServer) bool {
		if m.cmd.Context().Err() != nil {
			return false
		}
		if err := m.check(s); err != nil && m.cmd.Context().Err() == nil {
			s.undo()
			m.stay = append(m.stay, stayed{s.name, err.Error()})
			return true
		}
		return false
	})
	if m.cmd.Context().Err() != nil {
		return errInterrupted
	}
	m.checked = true
	return nil
}

// consider pins one server. An error is why it stays.
func (m *Move) consider(name string, raw json.RawMessage) (_ *movedServer, err error) {
	u, err := clientconfig.ReadUpstream(raw)
	if err != nil {
		return nil, err
	}
	if u.Off {
		return nil, errors.New("it is switched off")
	}
	s := &movedServer{name: name, undo: func() {}, word: wordOf(name)}
	defer func() {
		if err != nil {
			s.undo()
		}
	}()
	for _, text := range slices.Concat(u.Command, []string{u.URL}) {
		flag, value, isFlag := strings.Cut(text, "=")
		if !isFlag {
			flag, value = "", text
		}
		if app.LooksSecret(flag, value) && !isPackage(u.Command, text) {
			return nil, errors.New("its command or URL has what looks like a secret, which every program here can read: give it as a variable or a header, then move it")
		}
	}
	s.hide = secretsOf(u)
	if other := m.same(s.word, u); other != nil {
		s.entry, s.isThere = other, true
		return s, nil
	}
	if err := freeName(m.lock, s.word); err != nil {
		return nil, fmt.Errorf("%w: give it another name in the client's configuration, then move it", err)
	}
	if slices.ContainsFunc(m.Moved, func(o *movedServer) bool { return o.word == s.word }) {
		return nil, fmt.Errorf("another server of the file would be called %s, too", s.word)
	}
	if err := m.pin(s, u); err != nil {
		return nil, err
	}
	return s, cmp.Or(app.WithoutSecrets(s.entry).Check(), app.CheckSecrets(s.word, s.entry))
}

// wordOf makes the name of a kind of a client's name of a server.
func wordOf(name string) string {
	word := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name), "_")
	return word[:min(len(word), 32)]
}

// isPackage reports whether a text is the package that a runner's line names, which may look
// like a secret.
func isPackage(line []string, text string) bool {
	p, isRunner, err := pinned.Parse(line)
	return isRunner && err == nil && strings.HasPrefix(text, p.Name)
}

// pin makes the entry of a server that isn't in the lock.
func (m *Move) pin(s *movedServer, u *clientconfig.Upstream) (err error) {
	o := &serverOptions{dir: u.Dir, env: pairs(u.Env), headers: pairs(u.Headers), sandbox: m.sandbox}
	line, err := m.pinnedLine(u)
	if err != nil {
		return err
	}
	named := slices.DeleteFunc(slices.Clone(u.Command[min(1, len(u.Command)):]), func(text string) bool {
		return !slices.Contains(line, text) // the script: what runs is a copy, and nobody's to write
	})
	for _, text := range named {
		if filepath.IsAbs(text) && isThere(text) && filepath.Dir(text) != text {
			o.write = append(o.write, text)
		}
	}
	for _, text := range u.Env {
		if !filepath.IsAbs(text) || filepath.Dir(text) == text {
			continue
		}
		if info, err := os.Stat(text); (err != nil || info.Mode().IsRegular()) && !isShared(filepath.Dir(text)) {
			text = filepath.Dir(text) // a file is written by another beside it that replaces it
		}
		if isThere(text) {
			o.write = append(o.write, text)
		}
	}
	if s.entry, s.undo, err = newServer(m.cmd, m.lock, line, o); err != nil {
		return fmt.Errorf("it can't be pinned: %w", err)
	}
	slices.Sort(s.entry.Write)
	s.entry.Write = slices.Compact(s.entry.Write)
	return nil
}

// pairs writes values as NAME=VALUE, sorted.
func pairs(values map[string]string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, name+"="+values[name])
	}
	return all
}

// starters is programs whose bytes say nothing of what they start.
var starters = []string{"uv", "sh", "bash", "zsh", "cmd", "powershell", "pwsh", "env", "make", "go", "cargo", "dotnet", "docker", "podman", "ssh", "wsl", "mcp-remote"}

// pinnedLine is what 'mcp add' is to be given: the line with its version, a URL, or the folder
// of a script with what runs there.
func (m *Move) pinnedLine(u *clientconfig.Upstream) ([]string, error) {
	if u.URL != "" {
		return []string{u.URL}, nil
	}
	base := strings.TrimSuffix(filepath.Base(u.Command[0]), ".exe")
	scratch, err := newScratch()
	if err != nil {
		return nil, err
	}
	defer scratch.Remove()
	p, isRunner, err := pinned.Find(cli.Context(m.cmd), scratch.Path, u.Command)
	switch {
	case err != nil:
		return nil, fmt.Errorf("it can't be pinned: %w", err)
	case isRunner:
		return p.Line(), nil
	case slices.Contains(starters, base):
		return nil, fmt.Errorf("it can't be pinned: what %s starts isn't in its command", base)
	case base != "node" && !strings.HasPrefix(base, "python"):
		return u.Command, nil
	}
	at := scriptAt(append([]string{base}, u.Command[1:]...))
	if at == 0 {
		return nil, fmt.Errorf("it can't be pinned: %s is given no file", base)
	}
	if !filepath.IsAbs(u.Command[at]) && u.Dir == "" {
		return nil, fmt.Errorf("it can't be pinned: %s isn't an absolute path", u.Command[at])
	}
	program, err := programs.Of(u.Command[0])
	if err != nil {
		return nil, err
	}
	if line, err := scripted(slices.Concat(program.Command.Args, u.Command[1:]), len(program.Command.Args)-1+at, u.Dir); err == nil {
		return line, nil
	}
	return nil, fmt.Errorf("it can't be pinned: %w", err)
}

// interpreters is programs, besides those of python, whose bytes say nothing of what they start.
var interpreters = []string{"node", "sh", "bash", "dash", "ruby", "perl"}

// scriptAt is where a command line of an interpreter has the script that it starts; 0: it has none.
func scriptAt(line []string) int {
	base := strings.TrimSuffix(filepath.Base(line[0]), ".exe")
	at := slices.IndexFunc(line[1:], func(arg string) bool { return !strings.HasPrefix(arg, "-") }) + 1
	if !slices.Contains(interpreters, base) && !strings.HasPrefix(base, "python") || at > 1 && slices.Contains([]string{"-m", "-c", "-e"}, line[at-1]) {
		return 0
	}
	return at
}

// scripted is the folder of a script, and the command line that starts it there; a relative path is one of
// dir.
func scripted(line []string, at int, dir string) ([]string, error) {
	script := line[at]
	if !filepath.IsAbs(script) {
		script = filepath.Join(dir, script)
	}
	script, err := app.AbsolutePath(script)
	if err == nil {
		script, err = filepath.EvalSymlinks(script)
	}
	if err != nil {
		return nil, fmt.Errorf("there is no file %s", line[at])
	}
	folder := projectOf(filepath.Dir(script))
	if isShared(folder) {
		own := strings.TrimSuffix(filepath.Base(script), filepath.Ext(script)) + "-server"
		return nil, fmt.Errorf("all of %s would be copied with %s; give it a folder of its own first: mkdir ~/%[3]s && mv %[2]s ~/%[3]s", folder, script, own)
	}
	file, err := filepath.Rel(folder, script)
	return slices.Concat([]string{folder}, line[:at], []string{filepath.ToSlash(file)}, line[at+1:]), err
}

// isShared reports whether a folder has much that is no server's.
func isShared(folder string) bool {
	home, _ := os.UserHomeDir()
	return folder == home || folder == filepath.Clean(os.TempDir()) || filepath.Base(folder) == "bin" || filepath.Dir(folder) == folder
}

// projectOf is the folder that a script needs: the nearest above it that says to be a package,
// or the script's own.
func projectOf(dir string) string {
	home, _ := os.UserHomeDir()
	above, _, isInstalled := strings.Cut(filepath.ToSlash(dir), "/node_modules/") // with what it depends on beside it
	if isInstalled && isThere(filepath.Join(above, "package.json")) {
		return filepath.FromSlash(above)
	}
	for at := dir; at != home && at != filepath.Dir(at); at = filepath.Dir(at) {
		for _, sign := range []string{"package.json", "pyproject.toml", "requirements.txt"} {
			if isThere(filepath.Join(at, sign)) {
				return at
			}
		}
	}
	return dir
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// same finds the server of the lock that an entry would make again, given the same.
func (m *Move) same(word string, u *clientconfig.Upstream) *mcplock.Server {
	s := m.lock.Servers[word]
	if s == nil || s.URL != u.URL || s.Dir != u.Dir {
		return nil
	}
	if line, err := m.pinnedLine(u); u.URL == "" && (err != nil || !app.IsCommand(s, line)) {
		return nil
	}
	kept, err := app.SecretsOf(m.lock)
	if err != nil {
		return nil
	}
	for _, list := range []struct {
		of     []string
		given  map[string]string
		prefix string
	}{{s.Env, u.Env, ""}, {s.Headers, u.Headers, app.HeaderFile}} {
		var all []string
		for _, text := range list.of {
			if name, _, hasValue := strings.Cut(text, "="); !hasValue {
				value, _ := kept.Read(word, list.prefix+name)
				text += "=" + value
			}
			all = append(all, text)
		}
		if slices.Sort(all); !slices.Equal(all, pairs(list.given)) {
			return nil
		}
	}
	return s
}

// maxTried is how many tools are called, at most, until one answers.
const maxTried = 3

// check starts a server in the sandbox that it will have, lists its tools, and calls one that
// it says only reads and needs no arguments. A program is first held from the network; if its
// tools fail so and don't with it, it has it.
func (m *Move) check(s *movedServer) error {
	if s.isThere {
		return m.probe(s)
	}
	if failed := m.probe(s); failed == nil || s.entry.URL != "" {
		return failed
	}
	s.entry.Network = []string{caps.AnyNetwork}
	return m.probe(s)
}

func (m *Move) probe(s *movedServer) error {
	s.called = ""
	quiet, why := quietly(cli.Context(m.cmd))
	err := probing(quiet, m.lock, s.word, s.entry, m.sandbox, func(ctx context.Context, p *mcpprobe.Probe) error {
		listed, err := p.List(ctx)
		if err != nil {
			return err
		}
		if s.isThere {
			if d := mcplock.Compare(s.entry, listed.Tools); !d.Same() || s.entry.IsOther(listed.Name) {
				return fmt.Errorf("its tools aren't as the lock has them: 'mcp-pif mcp diff %s' shows how", s.word)
			}
		} else if err := fill(s.entry, listed, nil); err != nil {
			return err
		}
		return s.call(ctx, p)
	})
	if err != nil {
		return fmt.Errorf("it fails in the sandbox: %w%s", err, why())
	}
	return nil
}

// call calls tools that need nothing and say that they only read, until one answers.
func (s *movedServer) call(ctx context.Context, p *mcpprobe.Probe) (failed error) {
	tried := 0
	for _, word := range slices.Sorted(maps.Keys(s.entry.Tools)) {
		t := s.entry.Tools[word]
		var input struct{ Required []string }
		if !isSet(t.Claims.ReadOnly) || json.Unmarshal(t.Input, &input) != nil || len(input.Required) > 0 || tried == maxTried {
			continue
		}
		tried++
		answer, err := p.Call(ctx, t.Tool, json.RawMessage("{}"))
		var result struct{ IsError bool }
		if err == nil {
			err = json.Unmarshal(answer, &result)
		}
		if err == nil && !result.IsError {
			s.called = word
			return nil
		}
		failed = cmp.Or(err, fmt.Errorf("its tool %s answers that it failed", word))
	}
	if failed == nil && len(s.hide) > 0 && s.entry.URL == "" && len(s.entry.Network) == 0 {
		return errors.New("no tool of it can be tried, and a secret is for somewhere") // the second try has the network
	}
	return failed
}

// reads returns the tools that say that they only read.
func (s *movedServer) reads() (words []string) {
	for _, word := range slices.Sorted(maps.Keys(s.entry.Tools)) {
		if t := s.entry.Tools[word]; isSet(t.Claims.ReadOnly) && (!s.isThere || t.Accepted != nil && isSet(t.Accepted.ReadOnly)) {
			words = append(words, word)
		}
	}
	return words
}

// Flags is those by which our entry grants the servers.
func (m *Move) Flags() (flags []string) {
	for _, s := range m.Moved {
		if len(s.reads()) > 0 {
			flags = append(flags, "--cap="+s.word+",ro")
		}
		flags = append(flags, "--ask="+s.word)
	}
	return flags
}

// Moves reports whether a server of the client's file goes.
func (m *Move) Moves(name string) bool {
	return slices.ContainsFunc(m.Moved, func(s *movedServer) bool { return s.name == name })
}

// Print shows what would be, on one screen: before a check, what the servers get.
func (m *Move) Print(out io.Writer) {
	for _, s := range m.Moved {
		name := s.name
		if s.word != s.name {
			name += ", here " + s.word
		}
		tools := cli.Count(len(s.entry.Tools), "tool", "tools") + ", "
		gets := given(s.entry)
		for i, text := range gets {
			gets[i] = lock.Shown(text, 200) // each: a long one hides none
		}
		if !m.checked && !s.isThere {
			if tools = ""; s.entry.URL == "" {
				gets = append(gets, "any network if it fails without")
			}
		}
		fmt.Fprintf(out, "%s: %spinned to %s\n", lock.Shown(name, 80), tools, lock.Shown(pinnedBy(s.entry), 120))
		if !m.checked && s.entry.URL == "" {
			fmt.Fprintf(out, "  %-12s %s\n", "starts", lock.Shown(strings.Join(s.entry.Command, " "), 500))
		}
		fmt.Fprintf(out, "  %-12s %s\n", "gets", cmp.Or(strings.Join(gets, ", "), "no file, no network"))
		if !m.checked {
			continue
		}
		fmt.Fprintf(out, "  %-12s %s\n", "runs", cli.OrNone(s.reads())+"  (by its own word these only read)")
		fmt.Fprintf(out, "  %-12s %s\n", "asks", "for everything else, with 'mcp-pif approve'")
		tried := "listed its tools in its sandbox; none could be called without arguments"
		if s.called != "" {
			tried = "answered a call of " + s.called + " in its sandbox"
		}
		fmt.Fprintf(out, "  %-12s %s\n", "checked", tried)
	}
	for _, s := range m.stay[m.told:] {
		fmt.Fprintf(out, "%s stays as it is: %s\n", lock.Shown(s.name, 80), lock.Shown(s.reason, 500))
	}
	m.told = len(m.stay)
	if len(m.Moved) == 0 {
		why := ""
		if len(m.stay) == 0 {
			why = ": the client's configuration has no other"
		}
		fmt.Fprintln(out, "no server is moved"+why)
	}
}

// Masked hides what looks like a secret in the entries of a client's servers, also in those that can't be moved, in a text
// for a terminal.
func Masked(text string, entries iter.Seq[json.RawMessage]) string {
	var all []string
	for entry := range entries {
		var v any
		if json.Unmarshal(entry, &v) == nil {
			all = secretsIn(all, "", v)
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // one may be in another
	var pairs []string
	for _, value := range all {
		pairs = append(pairs, value, "(a secret)")
	}
	hide := strings.NewReplacer(pairs...).Replace
	return hide(quoted.Compiled().ReplaceAllStringFunc(text, func(s string) string {
		var meant string
		if json.Unmarshal([]byte(s), &meant) != nil {
			meant, _ = strconv.Unquote(s) // TOML and YAML have other escapes
		}
		if hidden := hide(meant); hidden != meant {
			return strconv.Quote(hidden)
		}
		return s
	}))
}

// secretsIn adds the texts in a part of a client's entry that look like secrets, by the names that they stand under.
func secretsIn(all []string, name string, v any) []string {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			if called, ok := v["name"].(string); ok && key == "value" {
				key = called
			}
			all = secretsIn(all, key, item)
		}
	case []any:
		flag := ""
		for _, item := range v {
			all = secretsIn(all, flag, item)
			if flag, _ = item.(string); !strings.HasPrefix(flag, "-") {
				flag = ""
			}
		}
	case string:
		if placeholder.MatchString(v) {
			return all
		}
		pairs := [][]string{assigned.FindStringSubmatch(v), headerLine.FindStringSubmatch(v)}
		if m := pairs[0]; m != nil {
			pairs[1] = headerLine.FindStringSubmatch(m[2]) // --header=Name: value
		}
		for _, m := range pairs {
			if m != nil && namesPath(v, name, m[2]) {
				return all
			}
			if m != nil && app.LooksSecret(m[1], m[2]) {
				return append(all, m[2])
			}
		}
		if isOption := strings.HasPrefix(v, "-") && assigned.MatchString(v); !isOption && app.LooksSecret(name, v) {
			return append(all, v)
		}
		if words := strings.Fields(v); len(words) > 1 { // a command in one text
			items := make([]any, len(words))
			for i, word := range words {
				items[i] = word
			}
			all = secretsIn(all, "", items)
		}
	}
	return all
}

// namesPath reports whether a text is an own --secret or --proc flag, with a file or program by its full path; no key
// is in either.
func namesPath(flag, before, value string) bool {
	switch {
	case strings.HasPrefix(flag, "--secret=") || before == "--secret":
		return ownSecret.MatchString(value)
	case strings.HasPrefix(flag, "--proc=") || before == "--proc":
		return ownProgram.MatchString(value)
	}
	return false
}

var (
	// ownSecret is where a secret lies, with or without the NAME= before it, and ownProgram a program's place.
	ownSecret  = lazyregexp.New(`^([a-z0-9_-]+=)?https?://[^,@?#]*,file=/[^,=]*(,header=[A-Za-z-]+)?$`)
	ownProgram = lazyregexp.New(`^([a-z0-9_-]+=)?/[^= ]*( -[A-Za-z]{1,2})*$`)
	// placeholder is what the client fills in.
	placeholder = lazyregexp.New(`^(\$\{[^}]*\}|\{(env|file):[^}]*\})$`)
	// assigned is --flag=value and NAME=value, and headerLine is Name: value.
	assigned   = lazyregexp.New(`^([A-Za-z0-9_.-]+)=(.*[A-Za-z0-9].*)$`)
	headerLine = lazyregexp.New(`^([A-Za-z0-9_.-]+): *([^/ ].*)$`)
	// quoted is a text with an escape.
	quoted = lazyregexp.New(`"[^"\\\n]*(\\.[^"\\\n]*)+"`)
)

// secretsOf is the values of a server's variables and headers that look like secrets.
func secretsOf(u *clientconfig.Upstream) (all []string) {
	for _, values := range []map[string]string{u.Env, u.Headers} {
		for name, value := range values {
			if app.LooksSecret(name, value) {
				all = append(all, value)
			}
		}
	}
	return all
}

// Places is where the servers are, for undo: nowhere for those that no move put into the lock, which stay there.
func (m *Move) Places(past *clientconfig.History) map[string]clientconfig.Place {
	all := map[string]clientconfig.Place{}
	for _, s := range m.Moved {
		p := clientconfig.Place{Lock: m.lock.Path, Name: s.word}
		if s.isThere && !past.Refers(p) {
			p = clientconfig.Place{}
		}
		all[s.name] = p
	}
	return all
}

// Commit writes the lock and the secrets. The word of servers for what only reads is taken.
func (m *Move) Commit() error {
	var names []string
	for _, s := range m.Moved {
		if s.isThere {
			continue
		}
		for _, word := range s.reads() {
			t := s.entry.Tools[word]
			claims := t.Claims
			t.Accepted, t.AcceptedOn = &claims, today()
		}
		m.lock.Servers[s.word] = s.entry
		names = append(names, s.word)
	}
	m.added = names
	return keepServers(m.lock, names...)
}

// Rollback takes back what commit did, and the copies of programs.
func (m *Move) Rollback() {
	if len(m.added) > 0 {
		_ = removeServers(m.lock, m.added...) // the reason for it is told
	}
	for _, s := range m.Moved {
		s.undo()
	}
}

// removeServers takes servers out of a lock file, with the copies of their programs and their
// secrets.
func removeServers(l *mcplock.Lock, names ...string) error {
	removed := map[string]*mcplock.Server{}
	for _, name := range names {
		if s, ok := l.Servers[name]; ok {
			removed[name] = s
			delete(l.Servers, name)
		}
	}
	if err := l.Write(nil); err != nil {
		return err
	}
	kept, err := app.SecretsOf(l)
	for name, s := range removed {
		l.Discard(s)
		if err == nil {
			err = kept.Forget(l.Path, name)
		}
	}
	return err
}

// Unmove takes out of the lock files what an entry that is undone had moved there, unless
// another entry refers to it.
func Unmove(places map[string]clientconfig.Place, past *clientconfig.History) error {
	byLock := map[string][]string{}
	for _, p := range places {
		if p.Lock != "" && !past.Refers(p) {
			byLock[p.Lock] = append(byLock[p.Lock], p.Name)
		}
	}
	for path, names := range byLock {
		l, err := mcplock.ReadOrNew(path)
		if err == nil {
			err = removeServers(l, names...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
