package sdk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
)

// A Failure is what a program is told when an operation can't be done. Make one
// with [Fail]; a handler may return any error, but only a Failure says what kind
// it is. Texts must not hold paths or addresses of the machine: they are shown
// to models.
type Failure struct {
	// Code is one of those that [Fail] lists.
	Code string
	// Message is a sentence that says what happened.
	Message string
	// Hint says in the imperative how to mend it; may be empty.
	Hint string
	// Retryable is set where the same request may succeed later.
	Retryable bool
	// Value is what a program that catches the failure finds beside the message,
	// such as the words of somebody else, which a message never has. nil: nothing.
	Value value.Value
}

// Error gives the code and the message.
func (f Failure) Error() string { return f.Code + ": " + f.Message }

// WithHint returns the failure with a sentence on how to mend it.
func (f Failure) WithHint(hint string) Failure {
	f.Hint = hint
	return f
}

// WithValue returns the failure with what a program that catches it finds beside
// the message.
func (f Failure) WithValue(v value.Value) Failure {
	f.Value = v
	return f
}

// WithRetry returns the failure marked as one that may pass.
func (f Failure) WithRetry() Failure {
	f.Retryable = true
	return f
}

// Fail makes the error of a handler. The code is one of
//
//	not_found exists not_a_file not_a_directory too_large  what there is, or isn't
//	denied                                                 the plugin refuses what the host let pass
//	conflict                                               it changed meanwhile
//	timeout unreachable                                    somebody else didn't answer, or can't be reached
//	unknown                                                it may have been done, or not
//	invalid                                                an argument that can't be meant
//	failed                                                 everything else
//
// and failed stands for any other word.
func Fail(code, format string, args ...any) Failure {
	if !slices.Contains(wire.FailureCodes, code) {
		code = "failed"
	}
	return Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// asFailure is the failure that an error wraps.
func asFailure(err error) (Failure, bool) {
	if f, ok := errors.AsType[*Failure](err); ok && f != nil {
		return *f, true
	}
	return errors.AsType[Failure](err)
}

// failureOf turns what a handler returned into a failure. The messages of the
// operating system name paths and addresses, so they are told in other words.
func failureOf(err error) Failure {
	if f, ok := asFailure(err); ok {
		if !slices.Contains(wire.FailureCodes, f.Code) {
			f.Code = "failed"
		}
		return f
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Fail("timeout", "the operation was stopped before it was done")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return Fail("timeout", "the operation didn't end in time").WithRetry()
	case errors.Is(err, fs.ErrNotExist):
		return Fail("not_found", "not found")
	case errors.Is(err, fs.ErrExist):
		return Fail("exists", "there is something of that name already")
	case errors.Is(err, fs.ErrPermission):
		return Fail("denied", "the operating system doesn't permit it")
	}
	_, operation := errors.AsType[*net.OpError](err)
	if _, lookup := errors.AsType[*net.DNSError](err); lookup || operation {
		return Fail("unreachable", "the network operation failed").WithRetry()
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return Fail("failed", "the operating system says: %s", number.Error())
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	message, _, _ := strings.Cut(err.Error(), "\n")
	if strings.TrimSpace(message) == "" {
		message = "the operation failed"
	}
	return Fail("failed", "%s", message)
}
