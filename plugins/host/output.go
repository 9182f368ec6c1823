package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
	"google.golang.org/protobuf/proto"
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

// errNoSecrets is of a request that names a secret, to a plugin that doesn't have
// the feature: none is sent to it.
var errNoSecrets = wire.NotSent{Reason: "it names a secret, and this plugin can't take any"}

// secretMessages is the secrets of a request as they are sent.
func secretMessages(secrets []*caps.Secret) (messages []*pluginv1.Secret, size int) {
	for _, s := range secrets {
		m := &pluginv1.Secret{Name: s.Name, Value: s.Value(), Verbs: s.For.Verbs, Within: s.For.Scope}
		messages, size = append(messages, m), size+proto.Size(m)+16
	}
	return messages, size
}

// scrub takes every secret out of a text that a plugin wrote, the beginning of one
// at its end included, which somebody may have cut.
func (h *Host) scrub(text string) string { return h.secrets.Scrubber().Cut(text) }

// scrubFault takes every secret out of a fault.
func (h *Host) scrubFault(f *fault.Fault) *fault.Fault {
	if f == nil || h.secrets.Scrubber() == nil {
		return f
	}
	f.Message, f.Hint = h.scrub(f.Message), h.scrub(f.Hint)
	if v, ok := f.Raised.(value.Value); ok {
		f.Raised = h.secrets.Scrubber().Value(v)
	}
	if f.Cause != nil {
		f.Cause = h.scrubError(f.Cause)
	}
	return f
}

// scrubError gives an error without secrets in its text: one that has some is
// another error then.
func (h *Host) scrubError(err error) error {
	if text := h.scrub(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// A hidingLog is a log without the secrets of a vault: neither in messages nor in
// what comes with them.
type hidingLog struct {
	slog.Handler
	secrets *caps.Vault
}

// hiding makes a logger whose lines have no secret.
func hiding(log *slog.Logger, secrets *caps.Vault) *slog.Logger {
	if secrets == nil {
		return log
	}
	return slog.New(hidingLog{log.Handler(), secrets})
}

// Handle passes a record on.
func (l hidingLog) Handle(ctx context.Context, r slog.Record) error {
	s := l.secrets.Scrubber()
	if s == nil {
		return l.Handler.Handle(ctx, r)
	}
	clean := slog.NewRecord(r.Time, r.Level, hideIn(s, r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(hideAttr(s, a))
		return true
	})
	return l.Handler.Handle(ctx, clean)
}

// WithAttrs keeps hiding.
func (l hidingLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = hideAttr(l.secrets.Scrubber(), a)
	}
	return hidingLog{l.Handler.WithAttrs(clean), l.secrets}
}

// WithGroup keeps hiding.
func (l hidingLog) WithGroup(name string) slog.Handler {
	return hidingLog{l.Handler.WithGroup(name), l.secrets}
}

// hideIn hides secrets in a text; one that was cut ends in an ellipsis, and may
// have the beginning of a secret there.
func hideIn(s *caps.Scrubber, text string) string {
	if strings.HasSuffix(text, "…") {
		return s.Cut(text)
	}
	return s.Text(text)
}

func hideAttr(s *caps.Scrubber, a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		v = slog.StringValue(hideIn(s, v.String()))
	case slog.KindGroup:
		var group []slog.Attr
		for _, inner := range v.Group() {
			group = append(group, hideAttr(s, inner))
		}
		v = slog.GroupValue(group...)
	case slog.KindAny:
		if text := v.String(); s.Text(text) != text {
			v = slog.StringValue(hideIn(s, text))
		}
	}
	return slog.Attr{Key: a.Key, Value: v}
}
