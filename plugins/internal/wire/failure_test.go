package wire

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mcp-pif/mcp-pif/core/fault"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

func TestFaultKinds(t *testing.T) {
	plugin := func(code string) error {
		return PluginFailure{&pluginv1.Failure{Code: code, Message: "m"}}
	}
	// The words of gRPC name sockets.
	transport := func(c codes.Code) error {
		return status.Error(c, "dial unix /run/secret/plugin.sock: it went wrong")
	}
	for _, c := range []struct {
		name         string
		err          error
		once, repeat fault.Kind // not repeatable, repeatable
	}{
		{"not found", plugin("not_found"), fault.EffectFailed, fault.EffectFailed},
		{"denied", plugin("denied"), fault.Denied, fault.Denied},
		{"conflict", plugin("conflict"), fault.Conflict, fault.Conflict},
		{"timeout", plugin("timeout"), fault.OutcomeUnknown, fault.EffectFailed},
		{"a word of the plugin's own", plugin("internal"), fault.EffectFailed, fault.EffectFailed},
		{"unavailable", transport(codes.Unavailable), fault.OutcomeUnknown, fault.EffectFailed},
		{"exhausted", transport(codes.ResourceExhausted), fault.EffectFailed, fault.EffectFailed},
		{"unimplemented", transport(codes.Unimplemented), fault.EffectFailed, fault.EffectFailed},
		{"internal", transport(codes.Internal), fault.OutcomeUnknown, fault.EffectFailed},
		{"deadline", transport(codes.DeadlineExceeded), fault.OutcomeUnknown, fault.EffectFailed},
		{"cancelled", context.Canceled, fault.OutcomeUnknown, fault.EffectFailed},
		{"stopped", ErrStopped, fault.OutcomeUnknown, fault.EffectFailed},
		{"a broken answer", fmt.Errorf("x: %w", ErrMalformed), fault.OutcomeUnknown, fault.EffectFailed},
		{"too large", ErrTooLarge, fault.EffectFailed, fault.EffectFailed},
		{"not sent", NotSent{"no plugin"}, fault.EffectFailed, fault.EffectFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			for repeatable, want := range map[bool]fault.Kind{false: c.once, true: c.repeat} {
				f := Fault(c.err, Attempt{Operation: "fs.read", Repeatable: repeatable, Most: 10})
				if f.Kind != want {
					t.Errorf("repeatable %v: %s, want %s", repeatable, f.Kind, want)
				}
				if !strings.HasPrefix(f.Message, "fs.read: ") || strings.Contains(f.Error(), "/run") {
					t.Errorf("message %q", f.Error())
				}
			}
		})
	}
}

func TestFaultTextsOfPluginsAreBounded(t *testing.T) {
	f := Fault(PluginFailure{&pluginv1.Failure{
		Code: "not_found", Message: "no\n\x1b[31m \u202e/home/someone/x\xff" + strings.Repeat("y", 1<<20), Hint: "h\ni",
	}}, Attempt{Operation: "fs.read", Clean: func(s string) string { return strings.ReplaceAll(s, "/home/someone", "docs") }})
	if len(f.Message) > 1100 || strings.ContainsAny(f.Message, "\n\x1b\u202e") || !utf8.ValidString(f.Message) || !strings.Contains(f.Message, "docs/x") {
		t.Fatalf("message of %d bytes: %.100q", len(f.Message), f.Message)
	}
	if f.Hint != "h i" {
		t.Fatalf("hint %q", f.Hint)
	}
}
