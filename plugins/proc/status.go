package proc

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// A state is what there is to say of a session.
type state struct {
	Session string  `doc:"its name"`
	Running bool    `doc:"whether it runs"`
	Age     int64   `doc:"milliseconds since it was started"`
	Unread  places  `doc:"bytes of each stream that weren't read"`
	Written places  `doc:"bytes of each stream ever written"`
	Code    *int64  `doc:"the status that the program exited with"`
	Signal  *string `doc:"the signal that ended it"`
	Why     string  `pif:"why,optional" doc:"where it didn't end by itself: stopped, idle, total, output, memory, processes, capability or lost; or that the sandbox refused it a file"`
}

const stateWords = "record: session, running, age (ms), unread, written (bytes of stdout and stderr), code?, signal?, why?"

type statusArgs struct {
	Session string `pif:"session,main" doc:"what proc.start gave"`
}

func status(_ context.Context, c *capability, a statusArgs) (state, error) {
	s, err := c.session(a.Session)
	if err != nil {
		return state{}, err
	}
	return s.state(), nil
}

// list gives the sessions of the grant, the oldest first.
func list(_ context.Context, c *capability, _ struct{}) ([]state, error) {
	c.all.mu.Lock()
	var all []*session
	for _, s := range c.all.all {
		if s.grant == c.name {
			all = append(all, s)
		}
	}
	c.all.mu.Unlock()
	slices.SortFunc(all, func(a, b *session) int { return cmp.Compare(a.number, b.number) })
	states := make([]state, len(all))
	for i, s := range all {
		states[i] = s.state()
	}
	return states, nil
}

func (s *session) state() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := state{Session: s.id, Running: !s.over, Age: time.Since(s.begun).Milliseconds()}
	st.Code, st.Signal, st.Why = s.ending()
	st.Written = places{s.streams[stdout].end(), s.streams[stderr].end()}
	st.Unread = places{st.Written.Stdout - s.streams[stdout].read, st.Written.Stderr - s.streams[stderr].read}
	return st
}

// ending is how it ended. The caller holds mu.
func (s *session) ending() (code *int64, signal *string, why string) {
	if !s.over {
		return nil, nil, ""
	}
	switch {
	case !s.last.Ended:
	case s.last.Signal != "":
		name := s.last.Signal
		signal = &name
	default:
		number := int64(s.last.Code)
		code = &number
	}
	return code, signal, s.why
}
