package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mcp-pif/mcp-pif/core/fault"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// FailureCodes is the kinds of failures that plugins tell apart.
var FailureCodes = []string{
	"not_found", "exists", "not_a_file", "not_a_directory", "too_large", "denied", "conflict", "timeout",
	"unreachable", "unknown", "invalid", "failed",
}

// Lapsed is the code of a request that came when its lease was over; it wasn't begun.
const Lapsed = "lapsed"

// The bounds of a failure's texts.
const (
	maxMessage = 1000
	maxHint    = 500
)

// A PluginFailure is a failure that a plugin answered with, as an error.
type PluginFailure struct{ *pluginv1.Failure }

// Error gives the plugin's words.
func (f PluginFailure) Error() string { return f.GetCode() + ": " + f.GetMessage() }

// The ways in which a call goes wrong that no status says.
var (
	// ErrStopped is of a call that was given up, and whose process was killed
	// since it didn't end.
	ErrStopped = errors.New("stopped")
	// ErrEnded is of a call whose process ended before it answered.
	ErrEnded = errors.New("the process ended")
	// ErrAnswer is of an answer that is against the contract.
	ErrAnswer = errors.New("the answer is against the contract")
	// ErrLarger is an ErrAnswer of one with more bytes than its process said.
	ErrLarger = fmt.Errorf("%w: it is larger than said", ErrAnswer)
)

// NotSent is the error of a request that didn't reach a plugin, with the reason
// in words that may be shown.
type NotSent struct{ Reason string }

// Error gives the reason.
func (n NotSent) Error() string { return n.Reason }

// An Attempt is what a fault needs to know of the operation that went wrong.
type Attempt struct {
	Operation string
	// Repeatable is set where the plugin wasn't asked to do it, or doing it again changes
	// nothing more: then nothing is left unknown.
	Repeatable bool
	// Most is the bytes that were allowed.
	Most int64
	// Clean takes out of a plugin's text what isn't to be seen; may be nil.
	Clean func(string) string
}

// Fault is the fault of a call that went wrong, the one place where a plugin's
// failures and gRPC's statuses become faults. The words of gRPC's errors name
// sockets, so that none of them is used. An operation that isn't repeatable and
// may or may not have been done is outcome_unknown.
func Fault(err error, a Attempt) *fault.Fault {
	if f, ok := errors.AsType[PluginFailure](err); ok {
		return a.failure(f)
	}
	return a.broken(err)
}

// broken is the fault of a call that has no answer to go by.
func (a Attempt) broken(err error) *fault.Fault {
	say := func(kind fault.Kind, format string, args ...any) *fault.Fault {
		f := fault.New(kind, a.Operation+": "+fmt.Sprintf(format, args...))
		f.Cause = err
		return f
	}
	lost := func(what string) *fault.Fault {
		if a.Repeatable {
			return say(fault.EffectFailed, "%s", what)
		}
		f := say(fault.OutcomeUnknown, "%s; nobody knows whether it was done", what)
		f.Hint = "Find out with an operation that only reads before doing it again."
		return f
	}
	if n, ok := errors.AsType[NotSent](err); ok {
		return say(fault.EffectFailed, "it wasn't begun: %s", n.Reason)
	}
	code := status.Code(err)
	switch {
	case errors.Is(err, ErrTooLarge), code == codes.ResourceExhausted:
		f := lost(fmt.Sprintf("too_large: the outcome has more than the %d bytes that are allowed", a.Most))
		f.Hint = cmp.Or(f.Hint, "Ask for less at once, such as a part or a smaller limit.")
		return f
	case errors.Is(err, ErrAnswer), errors.Is(err, ErrMalformed), errors.Is(err, ErrTooDeep), errors.Is(err, ErrTooMany):
		return lost("the plugin's answer can't be used")
	case errors.Is(err, ErrStopped):
		return lost("it didn't end when it was told to, and the plugin was stopped")
	case errors.Is(err, ErrEnded), code == codes.Unavailable:
		return lost("the plugin's process ended during it")
	case errors.Is(err, context.DeadlineExceeded), code == codes.DeadlineExceeded:
		return lost("it didn't end in time")
	case errors.Is(err, context.Canceled), code == codes.Canceled:
		return lost("it was cancelled")
	case code == codes.Unimplemented, code == codes.InvalidArgument:
		return say(fault.EffectFailed, "the plugin doesn't take this request")
	}
	return lost("the connection to the plugin failed")
}

// failure is the fault of a plugin's own failure.
func (a Attempt) failure(p PluginFailure) *fault.Fault {
	code := p.GetCode()
	if !slices.Contains(FailureCodes, code) {
		code = "failed"
	}
	kind := fault.EffectFailed
	switch {
	case code == "denied":
		kind = fault.Denied
	case code == "conflict":
		kind = fault.Conflict
	case (code == "timeout" || code == "unknown") && !a.Repeatable:
		kind = fault.OutcomeUnknown
	}
	message := cmp.Or(a.text(p.GetMessage(), maxMessage), "the plugin doesn't say why")
	f := fault.New(kind, a.Operation+": "+code+": "+message)
	f.Hint = a.text(p.GetHint(), maxHint)
	if f.Hint == "" && p.GetRetryable() {
		f.Hint = "It may succeed later; try again after a while."
	}
	f.Cause = p
	if b := p.GetValue(); len(b) > 0 && (a.Most <= 0 || int64(len(b)) <= a.Most) {
		if v, err := DecodeValue(b); err == nil {
			f.Raised = v
		}
	}
	return f
}

// text is a plugin's text as it may be shown.
func (a Attempt) text(s string, most int) string {
	if a.Clean != nil {
		s = a.Clean(s)
	}
	return Line(s, most)
}

// Line is a text on one line of at most most bytes, without control characters
// and such as turn the order of reading.
func Line(s string, most int) string {
	if len(s) > 4*most {
		s = s[:4*most]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.Is(unicode.Cc, r):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
