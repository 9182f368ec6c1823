package mcp

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/plugins/internal/keeper"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// envHops is the variable by which a chain of these programs knows how long it is.
const envHops = "MCP_PIF_HOPS"

// quitTimeout is how long a server may take to end by itself when its input has ended.
const quitTimeout = 250 * time.Millisecond

// start starts the server's command, in the sandbox that holds it, and connects to it.
func (u *upstream) start(ctx context.Context, c *sdk.Command, notice func(string, json.RawMessage)) (connection, error) {
	if c == nil {
		return nil, errors.New("the operator's settings have no command")
	}
	command := *c
	home, err := u.home()
	if err != nil {
		return nil, err
	}
	command.Env = map[string]string{envHops: strconv.Itoa(u.settings.Hops + 1)}
	if home != "" {
		command.Env["HOME"], command.Env["TMPDIR"] = home, filepath.Join(home, "tmp")
		command.Write = append(slices.Clone(c.Write), home)
		command.Dir = cmp.Or(command.Dir, home)
	}
	maps.Copy(command.Env, u.settings.Env)
	var theirs, ours [3]*os.File
	closeAll := func(files [3]*os.File) {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}
	for i := range theirs {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(theirs)
			closeAll(ours)
			return nil, err
		}
		if theirs[i], ours[i] = w, r; i == 0 {
			theirs[i], ours[i] = r, w
		}
	}
	k, err := keeper.Start(&command, theirs, nil)
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return nil, err
	}
	select {
	case first := <-k.First():
		if !first.Started {
			err = errors.New(first.Error)
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		k.End()
		closeAll(ours)
		return nil, err
	}
	over := make(chan struct{})
	u.mu.Lock()
	u.processes = append(slices.DeleteFunc(u.processes, isClosed), over)
	u.mu.Unlock()
	go func() {
		defer close(over)
		u.log.copy(ours[2])
		<-k.Gone()
	}()
	quit := func() {
		go func() {
			select {
			case <-k.Gone():
			case <-time.After(quitTimeout):
			}
			k.End()
		}()
	}
	return newStdio(ours[0], ours[1], quit, u.log, notice), nil
}

// home is the folder that the server has for itself, with one for temporary files in it;
// empty: there is no place for any.
func (u *upstream) home() (string, error) {
	dir := u.stateDir()
	if dir == "" {
		return "", nil
	}
	home := filepath.Join(dir, "home")
	return home, os.MkdirAll(filepath.Join(home, "tmp"), 0o700)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// stateDir is what lasts of the principal's server; empty: nothing does.
func (u *upstream) stateDir() string {
	if u.state == "" {
		return ""
	}
	of := sha256.Sum256([]byte(u.settings.Principal))
	return filepath.Join(u.state, hex.EncodeToString(of[:8]))
}

// LogName is the file, in the folder of a principal's server, that has the last of what the
// server wrote to its standard error.
const LogName = "stderr.log"

// LogPath is where a principal's server has that file, in the folder of its kind's state.
func LogPath(state, principal string) string {
	u := upstream{state: state, settings: Settings{Principal: principal}}
	return filepath.Join(u.stateDir(), LogName)
}

// A logger writes what a server says for its operator: each line in quotes, and no more
// than an operator reads.
type logger struct {
	name string
	to   io.Writer // the operator's log

	mu    sync.Mutex
	room  float64
	since time.Time
	file  string // keeps what the server wrote; empty: nothing does
	// hide and given have what is never logged: the values that the server was given, as they are and as they may be
	// encoded; longest is the bytes of the longest.
	hide    *strings.Replacer
	given   *caps.Scrubber
	longest int
	// scrub has the tokens of a login; nil: there can be none.
	scrub func() *caps.Scrubber
}

// keepOut has the values that a server was given, which may be secrets, not logged: each line of them, and credentials
// without their scheme, of Basic decoded, too.
func (l *logger) keepOut(given ...map[string]string) {
	names := map[string]string{}
	for _, values := range given {
		for name, value := range values {
			for line := range strings.Lines(value) {
				line = strings.TrimSpace(line)
				lines := []string{line}
				scheme, coded, _ := strings.Cut(line, " ")
				switch coded = strings.TrimSpace(coded); {
				case strings.EqualFold(scheme, "Bearer") && coded != "":
					lines[0] = coded
				case strings.EqualFold(scheme, "Basic") && coded != "": // the server sees user:password
					user, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(coded, "="))
					_, password, _ := strings.Cut(string(user), ":")
					if lines[0] = coded; err == nil {
						lines = append(lines, string(user), password)
					}
				}
				for _, line := range lines {
					if len(line) >= 6 {
						names[line], l.longest = name, max(l.longest, len(line))
					}
				}
			}
		}
	}
	var (
		pairs   []string
		secrets []*caps.Secret
	)
	// One that another begins with comes after that.
	for _, line := range slices.SortedFunc(maps.Keys(names), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }) {
		pairs = append(pairs, line, "["+names[line]+"]")
		if s, err := caps.NewSecret(caps.Binding{Name: names[line]}, line); err == nil {
			secrets = append(secrets, s)
		}
	}
	l.hide, l.given = strings.NewReplacer(pairs...), caps.NewScrubber(secrets)
}

// The bounds of what is logged: lines at once and then in a second, bytes of a line, of one
// that is kept, and of the file.
const (
	logBurst, logRate = 100, 10
	maxLine           = 500
	maxWritten        = 32 << 10
	maxKept           = 256 << 10
)

// say logs a sentence of ours, unless there were too many.
func (l *logger) say(text string) (logged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.room = min(logBurst, l.room+now.Sub(l.since).Seconds()*logRate)
	l.since = now
	if l.room < 1 {
		return false
	}
	l.room--
	fmt.Fprintf(l.to, "the MCP server %s: %s\n", l.name, text)
	return true
}

// quote logs the server's words, unless there were too many.
func (l *logger) quote(what, words string) (logged bool) {
	words = l.given.Text(l.hide.Replace(words))
	if l.scrub != nil {
		words = l.scrub().Text(words)
	}
	if len(words) > maxLine {
		words = words[:maxLine] + "…"
	}
	return l.say(what + ": " + strconv.QuoteToASCII(words))
}

// copy logs what the server writes to its standard error, line by line, and keeps the last
// of it.
func (l *logger) copy(from *os.File) {
	defer from.Close()
	r := bufio.NewReaderSize(from, maxWritten)
	for {
		line, err := r.ReadSlice('\n')
		words := l.given.Text(l.hide.Replace(strings.TrimSuffix(string(line), "\n")))
		if errors.Is(err, bufio.ErrBufferFull) { // its end may be the beginning of what is hidden
			words = l.given.Cut(words[:max(0, len(words)-l.longest)]) + "…"
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
		}
		if words != "" && l.quote("it wrote", words) {
			l.keep(words)
		}
		if err != nil {
			return
		}
	}
}

// keep adds a line to the file; a full one is begun anew, with the one before beside it.
func (l *logger) keep(words string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == "" {
		return
	}
	if info, err := os.Stat(l.file); err == nil && info.Size() > maxKept {
		_ = os.Rename(l.file, l.file+".1")
	}
	f, err := os.OpenFile(l.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return // the operator's log has it
	}
	defer f.Close()
	fmt.Fprintf(f, "%s %s\n", time.Now().UTC().Format(time.RFC3339), strconv.QuoteToASCII(words))
}
