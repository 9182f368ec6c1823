package caps

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// A Command is what the operator maps a name to, such as python3: what a plugin
// with the privilege "command" starts for a grant of that name, and what the
// system lets it reach. Models see the name, and never choose any of this.
type Command struct {
	// Args is the program's absolute path and its arguments. There is no shell.
	Args []string `json:"command"`
	// Path is the program itself, links followed; [Command.Resolve] sets it.
	Path string `json:"path,omitempty"`
	// Dir is where it runs; empty: the root of the file system, where it can
	// reach nothing. It may be read, and is absolute.
	Dir string `json:"dir,omitempty"`
	// Env is its environment, besides LANG, PATH, HOME and TERM.
	Env map[string]string `json:"env,omitempty"`
	// Read, Write and Execute are absolute paths of files and folders: to read,
	// to read and write, to read and execute. The program itself and the
	// system's libraries need none.
	Read    []string `json:"read,omitempty"`
	Write   []string `json:"write,omitempty"`
	Execute []string `json:"execute,omitempty"`
	// Network lets it make TCP and UDP connections, to anywhere.
	Network bool `json:"network,omitempty"`
	// Origins are those that it may reach where Network isn't set, through a proxy; Proxy is
	// the URL of that. They are the host's and the lock's words, as Sandbox is.
	Origins []string `json:"origins,omitempty"`
	Proxy   string   `json:"proxy,omitempty"`
	// PTY gives it a terminal in place of three pipes.
	PTY bool `json:"pty,omitempty"`
	// Prompt is what its last line looks like when it waits for input, RE2.
	Prompt string `json:"prompt,omitempty"`
	// Sessions is how many of them may run at once; 0: 32.
	Sessions int `json:"sessions,omitempty"`
	// Processes is how many processes one may be; 0: 64.
	Processes int `json:"processes,omitempty"`
	// Memory is the bytes of all processes of a session together; 0: 1 GiB.
	Memory int64 `json:"memory,omitempty"`
	// FileSize is the bytes of a file that one writes; 0: 1 GiB.
	FileSize int64 `json:"file_size,omitempty"`
	// Buffer is the bytes that are kept of each of its outputs; 0: 4 MiB.
	Buffer int64 `json:"buffer,omitempty"`
	// Output is the bytes that it may write before it is ended; 0: 1 GiB.
	Output int64 `json:"output,omitempty"`
	// Idle and Total are how long a session lasts that no request names, and at
	// all, as 30m; empty: 30m and 24h.
	Idle  string `json:"idle,omitempty"`
	Total string `json:"total,omitempty"`
	// Sandbox is how the system holds it: the host's word, which no operator
	// says here.
	Sandbox string `json:"sandbox,omitempty"`
}

// What a [Command] has where it says nothing, and the most that it may say.
const (
	defaultSessions, mostSessions   = 32, 256
	defaultProcesses, mostProcesses = 64, 4096
	defaultMemory                   = 1 << 30
	mostBytes                       = 1 << 40
	defaultBuffer                   = 4 << 20
	mostBuffers                     = 512 << 20 // of all sessions together
	defaultIdle, defaultTotal       = "30m", "24h"
	mostCommand                     = 64 << 10 // bytes of its JSON
)

// ParseCommand reads a command as the policy file has it: a record with the member
// command, a list of strings, and more. A member that there isn't is an error.
func ParseCommand(text []byte) (Command, error) {
	var c Command
	var known map[string]json.RawMessage
	if err := statefile.Decode(text, &known); err != nil || known == nil {
		return c, errors.New(`write {"command":["/usr/bin/python3","-i"]}`)
	}
	for name := range known {
		if slices.ContainsFunc([]string{"path", "sandbox", "origins", "proxy"}, func(ours string) bool { return strings.EqualFold(name, ours) }) {
			return c, fmt.Errorf("unknown member %s", quoted(name))
		}
	}
	if err := statefile.Decode(text, &c); err != nil {
		return c, err
	}
	return c, nil
}

// SplitCommand reads a command line as a person writes it: words between white
// space, with '…', "…" and \ to quote. It is no shell's: every other character is
// itself, and nothing is looked up or expanded.
func SplitCommand(line string) (Command, error) {
	var args []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	runes := []rune(line)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case r == '\\' && quote != '\'':
			if i++; i == len(runes) {
				return Command{}, errors.New(`it ends with a backslash`)
			}
			word.WriteRune(runes[i])
			inWord = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, inWord = r, true
		case quote == 0 && strings.ContainsRune(" \t\r\n", r):
			if inWord {
				args = append(args, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return Command{}, fmt.Errorf("the quote %c isn't closed", quote)
	}
	if inWord {
		args = append(args, word.String())
	}
	return Command{Args: args}, nil
}

// Resolve checks a command, finds its program, and says what it leaves out. What
// it may write lies apart from the protected paths, and what it may read from the
// hidden ones.
func (c Command) Resolve(protected, hidden []string) (Command, error) {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return c, errors.New("it has no program")
	}
	c.Args = slices.Clone(c.Args)
	if !strings.ContainsAny(c.Args[0], `/\`) {
		found, err := exec.LookPath(c.Args[0])
		if err != nil {
			return c, fmt.Errorf("there is no program %s in PATH", quoted(c.Args[0]))
		}
		c.Args[0] = found
	}
	if !filepath.IsAbs(c.Args[0]) {
		return c, fmt.Errorf("its program %s is not an absolute path", quoted(c.Args[0]))
	}
	var err error
	if c.Path, err = filepath.EvalSymlinks(c.Args[0]); err != nil {
		return c, fmt.Errorf("its program %s: %w", c.Args[0], unwrapPath(err))
	}
	if err := c.checkPaths(protected, hidden); err != nil {
		return c, err
	}
	if err := c.complete(); err != nil {
		return c, err
	}
	if len(c.Text()) > mostCommand {
		return c, fmt.Errorf("it has more than %d bytes", mostCommand)
	}
	for _, text := range append(slices.Clone(c.Args), c.Dir) {
		if strings.ContainsRune(text, 0) {
			return c, errors.New("it holds a zero byte")
		}
	}
	for name, text := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(text, 0) {
			return c, fmt.Errorf("its environment has the variable %s", quoted(name))
		}
	}
	return c, nil
}

// checkPaths looks at what it may reach.
func (c *Command) checkPaths(protected, hidden []string) error {
	for _, list := range []struct {
		paths []string
		apart []string
	}{{c.Write, protected}, {c.Read, hidden}, {c.Execute, hidden}, {dirOf(c.Dir), hidden}} {
		for _, p := range list.paths {
			if !filepath.IsAbs(p) || filepath.Clean(p) != p {
				return fmt.Errorf("%s is not an absolute path", quoted(p))
			}
			real, err := filepath.EvalSymlinks(p)
			if err != nil {
				return fmt.Errorf("%s: %w", p, unwrapPath(err))
			}
			if err := apart([]string{p, real}, list.apart); err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
		}
	}
	return nil
}

func dirOf(dir string) []string {
	if dir == "" {
		return nil
	}
	return []string{dir}
}

// complete fills in what isn't said.
func (c *Command) complete() error {
	for _, n := range []struct {
		name        string
		value       *int64
		none, least int64
	}{
		{"memory", &c.Memory, defaultMemory, 32 << 20}, {"file_size", &c.FileSize, defaultMemory, 1},
		{"buffer", &c.Buffer, defaultBuffer, 4 << 10}, {"output", &c.Output, defaultMemory, 4 << 10},
	} {
		*n.value = cmp.Or(*n.value, n.none)
		if *n.value < n.least || *n.value > mostBytes {
			return fmt.Errorf("%s is %d bytes: at least %d", n.name, *n.value, n.least)
		}
	}
	for _, n := range []struct {
		name       string
		value      *int
		none, most int
	}{{"sessions", &c.Sessions, defaultSessions, mostSessions}, {"processes", &c.Processes, defaultProcesses, mostProcesses}} {
		*n.value = cmp.Or(*n.value, n.none)
		if *n.value < 1 || *n.value > n.most {
			return fmt.Errorf("%s is %d: 1 to %d", n.name, *n.value, n.most)
		}
	}
	if c.Buffer > mostBuffers/2/int64(c.Sessions) {
		return fmt.Errorf("%d sessions with two buffers of %d bytes: all together have at most %d", c.Sessions, c.Buffer, mostBuffers)
	}
	for _, d := range []struct {
		name  string
		value *string
		none  string
	}{{"idle", &c.Idle, defaultIdle}, {"total", &c.Total, defaultTotal}} {
		*d.value = cmp.Or(*d.value, d.none)
		if n, err := time.ParseDuration(*d.value); err != nil || n <= 0 {
			return fmt.Errorf("%s is %s: a time such as 30m", d.name, quoted(*d.value))
		}
	}
	if len(c.Prompt) > 1000 {
		return errors.New("prompt has more than 1000 bytes")
	}
	if _, err := regexp.Compile(c.Prompt); err != nil {
		return fmt.Errorf("prompt: %w", err)
	}
	return nil
}

// Text is all of it, in one form: what a grant's identity and a process's
// environment have. Of none it is empty.
func (c *Command) Text() string {
	if c == nil {
		return ""
	}
	text, err := json.Marshal(c)
	if err != nil {
		return "" // strings, numbers and maps of strings don't fail
	}
	return string(text)
}

// ReadCommand reads what [Command.Text] wrote.
func ReadCommand(text string) (*Command, error) {
	c := &Command{}
	if err := statefile.Decode([]byte(text), c); err != nil {
		return nil, fmt.Errorf("a command: %w", err)
	}
	return c, nil
}
