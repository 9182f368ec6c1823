package mcpcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
	"github.com/mcp-pif/mcp-pif/plugins/proc"
)

// A serverWords is a [slog.Handler] that keeps what a server writes while it is looked at, for
// a person to read if it fails. It is safe for concurrent use.
type serverWords struct {
	name string

	mu    sync.Mutex
	lines []string
	about string // what the plugin said of it last
}

// maxWords is how many lines of a server's are kept.
const maxWords = 200

func (w *serverWords) Enabled(context.Context, slog.Level) bool { return true }
func (w *serverWords) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *serverWords) WithGroup(string) slog.Handler            { return w }

// Handle implements [slog.Handler].
func (w *serverWords) Handle(_ context.Context, r slog.Record) error {
	said, ofServer := strings.CutPrefix(r.Message, "the MCP server "+w.name+": ")
	if !ofServer && r.Level < slog.LevelWarn {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	quoted, isTheirs := strings.CutPrefix(said, "it wrote: ")
	words, err := strconv.Unquote(quoted)
	switch {
	case !isTheirs || err != nil:
		w.about = said
	case strings.TrimSpace(words) == "" || strings.HasPrefix(strings.TrimSpace(words), "at "): // of a trace
	case len(w.lines) < maxWords:
		w.lines = append(w.lines, words)
	}
	return nil
}

// text is what the server wrote.
func (w *serverWords) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}

// print prints the beginning and the end of what the server wrote, or else why there is nothing.
func (w *serverWords) print(out io.Writer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) == 0 {
		if w.about != "" {
			fmt.Fprintln(out, lock.Shown(w.about, 300))
		}
		return
	}
	fmt.Fprintf(out, "words of the server %s, not of this program:\n", w.name)
	const head, tail = 4, 8
	for i, line := range w.lines {
		if i < head || i >= len(w.lines)-tail {
			fmt.Fprintf(out, "  | %s\n", lock.Shown(line, 400))
		} else if i == head {
			fmt.Fprintln(out, "  | …")
		}
	}
}

// What programs say of a network that they don't have, with the host that they wanted where
// they name it, and of a variable.
var (
	noNetwork  = lazyregexp.New(`ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ENETDOWN|EHOSTUNREACH|fetch failed|[Nn]ame resolution|[Nn]etwork is unreachable|[Cc]ould not resolve|[Nn]o such host`)
	wantedHost = lazyregexp.New(`(?:https?://|getaddrinfo [A-Z_]+ |resolve(?: host:)? |lookup )([a-z0-9-]+(?:\.[a-z0-9-]+)+)`)
	wantedName = lazyregexp.New(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b`)
	lacking    = lazyregexp.New(`(?i)environment|env var|required|must be set|not set|missing|unset|undefined|provide`)
	plainWord  = lazyregexp.New(`^[A-Za-z0-9/._@:+=~-]+$`) // means the same to every shell
)

// proposals are flags that would give a server what it failed for, by what it said: they are a
// person's to weigh.
func proposals(s *mcplock.Server, said string) (flags, why []string) {
	add := func(reason, flag string) { flags, why = append(flags, flag), append(why, reason) }
	switch path := proc.DeniedFile([]byte(said)); {
	case path == "" || !plainWord.MatchString(path):
	case covers(s, path):
	case isThere(path):
		add("the sandbox doesn't let it reach "+path, "--read "+path)
	default:
		add("the sandbox doesn't let it make "+path, "--write "+filepath.Dir(path))
	}
	if noNetwork.MatchString(said) && len(s.Network) == 0 && s.URL == "" {
		origin := "any"
		if m := wantedHost.FindStringSubmatch(said); m != nil {
			origin = "https://" + m[1]
		}
		add("it has no network", "--network "+origin)
	}
	for line := range strings.Lines(said) {
		name := wantedName.Compiled().FindString(line)
		if name == "" || isGiven(s, name) || strings.HasPrefix(name, "ERR_") || !lacking.MatchString(line) {
			continue
		}
		add("it wants the variable "+name, "--env "+name+"=VALUE")
		break
	}
	return flags, why
}

// isGiven reports whether a server has a variable.
func isGiven(s *mcplock.Server, name string) bool {
	return slices.ContainsFunc(s.Env, func(text string) bool { return text == name || strings.HasPrefix(text, name+"=") })
}

// readName matches a variable that a program reads, of one which says where something is.
var readName = lazyregexp.New(`(?:process\.env\.|process\.env\[["']|environ\[["']|getenv\(["']|environ\.get\(["'])([A-Z][A-Z0-9_]*(?:PATH|FILE|DIR|FOLDER|DB))\b`)

// dataVariable is the variable by which the programs beside a file are told where to keep data; "": none is found.
func dataVariable(path string) string {
	for _, kind := range []string{"*.*js", "*.js", "*.py"} {
		found, _ := filepath.Glob(filepath.Join(filepath.Dir(path), kind))
		for _, file := range found {
			if info, err := os.Stat(file); err != nil || info.Size() > 1<<20 {
				continue
			}
			text, _ := os.ReadFile(file)
			if m := readName.Compiled().FindSubmatch(text); m != nil {
				return string(m[1])
			}
		}
	}
	return ""
}

// advised adds to a failure what a person can do about it.
func advised(err error, l *mcplock.Lock, name string, s *mcplock.Server, said string) error {
	if path := proc.DeniedFile([]byte(said)); s.Folder != "" && strings.Contains(path, filepath.ToSlash(s.Folder)) {
		variable, data := dataVariable(path), name+"-data"
		flags := "--write " + data + " --env " + variable + "=$PWD/" + data + "/" + name
		if variable == "" {
			flags = "--write FOLDER, and the variable or argument that names it"
		} else if l.Servers[name] != nil {
			flags = upgradeLine(name, s, "mkdir -p "+data+" && ", flags)
		}
		return fmt.Errorf("%w; its own folder stays as it was added, so that it can't write there; to keep its data elsewhere, %s", err, flags)
	}
	flags, why := proposals(s, said)
	if len(flags) == 0 {
		return err
	}
	with := strings.Join(flags, " ")
	if l.Servers[name] != nil {
		with = upgradeLine(name, s, "", with)
	}
	return fmt.Errorf("%w; %s: if it may, %s", err, strings.Join(why, ", and "), with)
}

// upgradeLine is the command that gives a server of the lock flags and what it has besides, which they would replace.
func upgradeLine(name string, s *mcplock.Server, before, flags string) string {
	with := flags
	for _, list := range []struct {
		flag string
		of   []string
	}{{"--read ", s.Read}, {"--write ", s.Write}, {"--env ", s.Env}} {
		for _, value := range list.of {
			variable, _, _ := strings.Cut(value, "=")
			switch {
			case !strings.Contains(flags, list.flag), list.flag == "--env " && strings.Contains(flags, list.flag+variable+"="):
			case !plainWord.MatchString(value):
				return flags + " with 'mcp-pif mcp upgrade " + name + "', and there each " + list.flag + "that it has again"
			default:
				with = list.flag + value + " " + with
			}
		}
	}
	return "'" + before + "mcp-pif mcp upgrade " + name + " --accept " + with + "'"
}

// covers reports whether a server may read a path.
func covers(s *mcplock.Server, path string) bool {
	return slices.ContainsFunc(slices.Concat(s.Read, s.Write, []string{s.Dir}), func(dir string) bool {
		return dir != "" && (path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/"))
	})
}

// unreached are the files and folders that a server's command line names and it can't reach.
func unreached(s *mcplock.Server) (paths []string) {
	for _, text := range s.Command[min(1, len(s.Command)):] {
		if _, err := os.Stat(text); err == nil && filepath.IsAbs(text) && !covers(s, text) && !s.Unconfined {
			paths = append(paths, text)
		}
	}
	return paths
}

// failedAnswer is the failure that a tool's answer tells of; nil: it succeeded.
func failedAnswer(l *mcplock.Lock, name string, s *mcplock.Server, answer json.RawMessage) error {
	var result struct {
		IsError bool
		Content []struct{ Text string }
	}
	if json.Unmarshal(answer, &result) != nil || !result.IsError {
		return nil
	}
	var said strings.Builder
	for _, block := range result.Content {
		said.WriteString(block.Text + "\n")
	}
	return advised(errors.New("the tool answers that it failed"), l, name, s, said.String())
}
