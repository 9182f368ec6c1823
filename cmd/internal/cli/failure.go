package cli

import "errors"

// Exit statuses.
const (
	StatusFailed = 1
	StatusUsage  = 2
)

// A Failure is the end of a command that was used rightly and could not do what
// was asked. Where err is nil the reason has been told already; status is the exit
// status where that isn't StatusFailed.
type Failure struct {
	Err    error
	Status int
}

func (f *Failure) Error() string {
	if f.Err == nil {
		return "failed"
	}
	return f.Err.Error()
}

func (f *Failure) Unwrap() error { return f.Err }

// Failed makes an error a failure, and leaves nil, and what is one, as it is.
func Failed(err error) error {
	var f *Failure
	if err == nil || errors.As(err, &f) {
		return err
	}
	return &Failure{Err: err}
}

// UsageError is the end of a command that was given something that can't be meant.
func UsageError(err error) error { return &Failure{Err: err, Status: StatusUsage} }
