package host

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
)

// What of a plugin's output is logged. More is read and dropped, so that a flood
// neither makes the plugin wait nor fills memory or the log.
const (
	lineBytes  = 2 << 10 // of one line
	lineBurst  = 200     // lines at once: a stack trace
	linesEvery = 50 * time.Millisecond
)

// An output is where a plugin's standard output and error go to be logged, line
// by line. It is safe for concurrent use.
type output struct {
	log   *slog.Logger
	clock func() time.Time

	mu      sync.Mutex
	tokens  float64
	last    time.Time
	dropped int // lines since the last one that was logged
}

func newOutput(log *slog.Logger) *output {
	return &output{log: log, clock: time.Now, tokens: lineBurst, last: time.Now()}
}

// read logs what comes from r until it ends.
func (o *output) read(r io.Reader) {
	w := o.writer()
	// io.Copy would find ways around the buffer; this one is all there is.
	buffer := make([]byte, 32<<10)
	for {
		n, err := r.Read(buffer)
		w.Write(buffer[:n])
		if err != nil {
			w.end()
			return
		}
	}
}

// A lines is a writer of one stream, which keeps the beginning of an unfinished
// line. It is not safe for concurrent use.
type lines struct {
	to   *output
	line []byte
	cut  bool
}

func (o *output) writer() *lines { return &lines{to: o} }

// Write logs the lines that p completes. It never fails.
func (l *lines) Write(p []byte) (int, error) {
	all := len(p)
	for len(p) > 0 {
		at := bytes.IndexByte(p, '\n')
		part := p
		if at >= 0 {
			part = p[:at]
		}
		if room := lineBytes - len(l.line); len(part) > room {
			part, l.cut = part[:room], true
		}
		l.line = append(l.line, part...)
		if at < 0 {
			break
		}
		l.end()
		p = p[at+1:]
	}
	return all, nil
}

// end logs the line as far as it came.
func (l *lines) end() {
	if len(bytes.TrimSpace(l.line)) > 0 {
		l.to.say(l.line, l.cut)
	}
	l.line, l.cut = l.line[:0], false
}

// say logs a line, or counts it where there were too many.
func (o *output) say(line []byte, cut bool) {
	o.mu.Lock()
	now := o.clock()
	o.tokens = min(lineBurst, o.tokens+float64(now.Sub(o.last))/float64(linesEvery))
	o.last = now
	if o.tokens < 1 {
		o.dropped++
		o.mu.Unlock()
		return
	}
	o.tokens--
	dropped := o.dropped
	o.dropped = 0
	o.mu.Unlock()
	if dropped > 0 {
		o.log.Warn("a plugin writes too much; lines were dropped", "lines", dropped)
	}
	level, text := levelOf(line)
	if cut {
		text += "…"
	}
	o.log.Log(context.Background(), level, text)
}

// levelOf reads a line of hclog's JSON, or takes the line as it is. What a plugin
// writes is somebody else's: every type is checked (go-plugin's own reader panics
// on a message that is no string).
func levelOf(line []byte) (slog.Level, string) {
	text := wire.Line(string(line), lineBytes)
	var entry struct {
		Level   any `json:"@level"`
		Message any `json:"@message"`
	}
	if len(line) > 0 && line[0] == '{' && json.Unmarshal(line, &entry) == nil {
		message, ok := entry.Message.(string)
		name, named := entry.Level.(string)
		if ok && named {
			switch strings.ToLower(name) {
			case "trace", "debug":
				return slog.LevelDebug, wire.Line(message, lineBytes)
			case "warn":
				return slog.LevelWarn, wire.Line(message, lineBytes)
			case "error":
				return slog.LevelError, wire.Line(message, lineBytes)
			}
			return slog.LevelInfo, wire.Line(message, lineBytes)
		}
	}
	if strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ") {
		return slog.LevelError, text
	}
	return slog.LevelInfo, text
}
