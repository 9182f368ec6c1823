package mcp

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
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
	// hide has what is never kept: the values that the server was given.
	hide *strings.Replacer
	// scrub has the tokens of a login; nil: there can be none.
	scrub func() *caps.Scrubber
}

// hiding makes a replacer of the values that a server was given, which may be secrets.
func hiding(given ...map[string]string) *strings.Replacer {
	var pairs []string
	for _, values := range given {
		for name, value := range values {
			if len(value) >= 6 {
				pairs = append(pairs, value, "["+name+"]")
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

// The bounds of what is logged: lines at once and then in a second, bytes of a line, and
// of the file.
const (
	logBurst, logRate = 100, 10
	maxLine           = 500
	maxKept           = 256 << 10
)

// say logs a sentence of ours.
func (l *logger) say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.room = min(logBurst, l.room+now.Sub(l.since).Seconds()*logRate)
	l.since = now
	if l.room < 1 {
		return
	}
	l.room--
	fmt.Fprintf(l.to, "the MCP server %s: %s\n", l.name, text)
}

// quote logs the server's words.
func (l *logger) quote(what, words string) {
	if l.scrub != nil {
		words = l.scrub().Text(words)
	}
	if len(words) > maxLine {
		words = words[:maxLine] + "…"
	}
	l.say(what + ": " + strconv.QuoteToASCII(words))
}

// copy logs what the server writes to its standard error, line by line, and keeps the last
// of it.
func (l *logger) copy(from *os.File) {
	defer from.Close()
	r := bufio.NewReaderSize(from, 4<<10)
	for {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 && !(len(line) == 1 && line[0] == '\n') {
			words := string(line)
			if words[len(words)-1] == '\n' {
				words = words[:len(words)-1]
			}
			words = l.hide.Replace(words)
			l.quote("it wrote", words)
			l.keep(words)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
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
