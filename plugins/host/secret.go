package host

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

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
