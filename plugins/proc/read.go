package proc

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// How many bytes of each stream are given at once.
const (
	defaultMost = 64 << 10
	mostMost    = 1 << 20
)

type readArgs struct {
	Session string  `pif:"session,main" doc:"what proc.start gave"`
	Pattern *string `pif:"pattern" doc:"over when this regular expression (RE2) matches what is new; what stands before its end is taken"`
	Prompt  *bool   `pif:"prompt" doc:"over when the last line is a prompt, written after what was sent last, and nothing follows"`
	Silence *int64  `pif:"silence" doc:"over when nothing came for so many milliseconds"`
	Wait    *int64  `pif:"wait" doc:"over after so many milliseconds in any case; 10000 if left out, 0 gives what is there"`
	Stream  string  `pif:"stream,optional,enum=both|stdout|stderr" doc:"what is read; both if left out"`
	From    *places `pif:"from" doc:"read on from here, as the cursor of an earlier read; else from where the last read ended"`
	Max     *int64  `pif:"max" doc:"bytes of each stream at once; 65536 if left out, at most 1048576"`
	As      string  `pif:"encoding,optional,enum=utf8|base64" doc:"how the bytes are given; what isn't UTF-8 is � in utf8"`
}

// Places are how many bytes of each stream were written before them.
type places struct {
	Stdout int64 `pif:"stdout" doc:"bytes of the output"`
	Stderr int64 `pif:"stderr" doc:"bytes of the errors"`
}

// A reading is what proc.read gives.
type reading struct {
	Stdout  string  `doc:"what is new of the output"`
	Stderr  string  `doc:"what is new of the errors"`
	Over    string  `doc:"why it was over: pattern, prompt, silence, end, full or time"`
	Match   *string `doc:"what the pattern matched"`
	Cursor  places  `doc:"where the next read goes on"`
	Lost    int64   `pif:"lost,optional" doc:"bytes that were overwritten before they were read"`
	More    bool    `doc:"whether more is there already"`
	Running bool    `doc:"whether the session runs"`
	Code    *int64  `doc:"the status that the program exited with"`
	Signal  *string `doc:"the signal that ended it"`
	Why     string  `pif:"why,optional" doc:"where it didn't end by itself: stopped, idle, total, output, memory, processes, capability or lost; or the file that it says it was refused"`
}

const readingWords = "record: stdout, stderr, over (pattern, prompt, silence, end, full or time), match?, cursor, lost?, more, running, code?, signal?, why?"

func read(ctx context.Context, c *capability, a readArgs) (r reading, err error) {
	s, err := c.session(a.Session)
	if err != nil {
		return r, err
	}
	defer s.use()()
	w, err := s.waiter(ctx, conditions{a.Session, a.Pattern, a.Prompt, a.Silence, a.Wait, a.Stream})
	if err != nil {
		return r, err
	}
	if w.most = defaultMost; a.Max != nil {
		if *a.Max < 1 || *a.Max > mostMost {
			return r, sdk.Fail("invalid", "max is %d: 1 to %d", *a.Max, mostMost)
		}
		w.most = int(*a.Max)
	}
	from := s.readUpTo()
	if a.From != nil {
		from = [2]int64{a.From.Stdout, a.From.Stderr}
		for i, at := range from {
			if at < 0 || at > s.lockedEnd(i) {
				return r, sdk.Fail("invalid", "there is no place %d in %s yet", at, streamNames[i])
			}
		}
	}
	why, in, at, match, err := w.await(ctx, s, from)
	for err == nil && a.From == nil && s.taken() != from {
		// Another reading took some of it meanwhile; what it took isn't new.
		from = s.taken()
		s.mu.Unlock()
		why, in, at, match, err = w.await(ctx, s, from)
	}
	if err != nil {
		return r, err
	}
	defer s.mu.Unlock()
	texts, to := [2]string{}, from
	for _, i := range w.streams {
		st := &s.streams[i]
		text, lost := st.from(from[i])
		begin := from[i] + lost
		if why == byPattern && i == in {
			text = text[:max(0, at-begin)]
		}
		switch {
		case len(text) > w.most && a.As == "base64":
			text = text[:w.most]
		case len(text) > w.most:
			text = head(text, w.most)
		case (why == byFull || why == byPattern && i != in) && !s.over:
			// More of the other stream is to come: whoever waits for the prompt then
			// would miss it.
			text = text[:w.beforePrompt(text)]
		}
		if a.As == "base64" {
			texts[i] = base64.StdEncoding.EncodeToString(text)
		} else {
			if !st.closed {
				text = text[:whole(text)]
			}
			texts[i] = strings.ToValidUTF8(string(text), "\ufffd")
		}
		to[i] = begin + int64(len(text))
		st.read = max(st.read, to[i])
		if a.From != nil {
			st.read = to[i]
		}
		r.Lost += lost
		r.More = r.More || st.end() > to[i]
	}
	if why == byPattern {
		m := strings.ToValidUTF8(match, "\ufffd")
		r.Match = &m
	}
	r.Stdout, r.Stderr, r.Over, r.Cursor = texts[stdout], texts[stderr], string(why), places{to[stdout], to[stderr]}
	r.Running = !s.over
	r.Code, r.Signal, r.Why = s.ending()
	return r, nil
}

// readUpTo is where the last reads ended.
func (s *session) readUpTo() [2]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken()
}

// taken is readUpTo for a caller that holds mu.
func (s *session) taken() [2]int64 {
	return [2]int64{s.streams[stdout].read, s.streams[stderr].read}
}

type found struct {
	Found   bool    `doc:"whether a condition came true before the time was over"`
	Over    string  `doc:"why it was over: pattern, prompt, silence, end or time"`
	Match   *string `doc:"what the pattern matched"`
	Running bool    `doc:"whether the session runs"`
}

// waitFor waits, and takes nothing.
func waitFor(ctx context.Context, c *capability, a conditions) (f found, err error) {
	s, err := c.session(a.Session)
	if err != nil {
		return f, err
	}
	defer s.use()()
	w, err := s.waiter(ctx, a)
	if err != nil {
		return f, err
	}
	why, _, _, match, err := w.await(ctx, s, s.readUpTo())
	if err != nil {
		return f, err
	}
	defer s.mu.Unlock()
	if why == byPattern {
		m := strings.ToValidUTF8(match, "\ufffd")
		f.Match = &m
	}
	f.Over, f.Running = string(why), !s.over
	f.Found = why != byTime && (why != byEnd || w.pattern == nil && !w.asks && w.silence == 0)
	return f, nil
}
