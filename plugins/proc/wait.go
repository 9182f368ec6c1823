package proc

import (
	"context"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// conditions is the arguments that say when a reading is over.
type conditions struct {
	Session string  `pif:"session,main" doc:"what proc.start gave"`
	Pattern *string `pif:"pattern" doc:"over when this regular expression (RE2) matches what is new; what stands before its end is taken"`
	Prompt  *bool   `pif:"prompt" doc:"over when the last line is a prompt, written after what was sent last, and nothing follows"`
	Silence *int64  `pif:"silence" doc:"over when nothing came for so many milliseconds"`
	Wait    *int64  `pif:"wait" doc:"over after so many milliseconds in any case; 10000 if left out, 0 gives what is there"`
	Stream  string  `pif:"stream,optional,enum=both|stdout|stderr" doc:"what is read; both if left out"`
}

const (
	defaultWait = 10 * time.Second
	// spare is what a reading leaves of the time that its request has, to answer.
	spare = 250 * time.Millisecond
	// settled is how long nothing follows a prompt: several lines that were sent
	// at once have one each.
	settled = 60 * time.Millisecond
	// mostPattern is the bytes of a pattern, and mostMatch of what one matches.
	mostPattern = 1000
	mostMatch   = 64 << 10
	// mostPrompt is how far back a prompt may begin.
	mostPrompt = 200
)

// anyPrompt is what prompts look like where the operator says nothing else.
var anyPrompt = regexp.MustCompile(`(?:^|\n)(?:[^\n]{0,80}[>$#%?:]|\.\.\.) ?$`)

// A waiter knows when a reading is over.
type waiter struct {
	streams []int
	pattern *regexp.Regexp
	prompt  *regexp.Regexp
	silence time.Duration // 0: not asked for
	until   time.Time
	seen    [2]int64 // up to where the pattern was looked for
	most    int      // bytes of a stream that are given at once; 0: any
}

// A reason says why a reading was over.
type reason string

// The reasons. end: the session has ended and all is given. full: there is more than
// is given at once. time: the wait is over.
const (
	byPattern reason = "pattern"
	byPrompt  reason = "prompt"
	bySilence reason = "silence"
	byEnd     reason = "end"
	byFull    reason = "full"
	byTime    reason = "time"
)

// waiter makes one of arguments.
func (s *session) waiter(ctx context.Context, c conditions) (*waiter, error) {
	w := &waiter{until: time.Now().Add(defaultWait)}
	switch c.Stream {
	case "", "both":
		w.streams = []int{stdout, stderr}
	case streamNames[stdout]:
		w.streams = []int{stdout}
	default:
		w.streams = []int{stderr}
	}
	if c.Pattern != nil {
		if len(*c.Pattern) > mostPattern {
			return nil, sdk.Fail("invalid", "the pattern has %d bytes, and at most %d", len(*c.Pattern), mostPattern)
		}
		var err error
		if w.pattern, err = regexp.Compile(*c.Pattern); err != nil {
			return nil, sdk.Fail("invalid", "the pattern can't be read: %s", err).WithHint(`It is RE2; escape \ . + * ? ( ) [ ] { } ^ $ | with \.`)
		}
	}
	for name, ms := range map[string]*int64{"silence": c.Silence, "wait": c.Wait} {
		if ms != nil && (*ms < 0 || *ms > 24*time.Hour.Milliseconds()) {
			return nil, sdk.Fail("invalid", "%s is %d ms, which can't be waited", name, *ms)
		}
	}
	if c.Silence != nil {
		w.silence = max(1, time.Duration(*c.Silence)) * time.Millisecond
	}
	asks := c.Prompt != nil && *c.Prompt
	if asks || c.Prompt == nil && c.Pattern == nil && c.Silence == nil {
		if w.prompt = anyPrompt; s.most.Prompt != "" {
			var err error
			if w.prompt, err = regexp.Compile(s.most.Prompt); err != nil {
				return nil, sdk.Fail("failed", "the operator's prompt isn't one")
			}
		}
	}
	if c.Wait != nil {
		w.until = time.Now().Add(time.Duration(*c.Wait) * time.Millisecond)
	}
	if end, ok := ctx.Deadline(); ok && w.until.After(end.Add(-spare)) {
		w.until = end.Add(-spare)
	}
	return w, nil
}

// await returns when the waiter's reading is over, with the session locked. at is
// up to where a pattern matched, in its stream.
func (w *waiter) await(ctx context.Context, s *session, from [2]int64) (why reason, in int, at int64, match string, err error) {
	begun := time.Now()
	heard := [2]int64{s.lockedEnd(stdout), s.lockedEnd(stderr)}
	quiet := begun // since when nothing came
	for {
		s.mu.Lock()
		now := time.Now()
		for i := range heard {
			if end := s.streams[i].end(); end != heard[i] {
				quiet = now
				if !s.over {
					s.progress(ctx, i, heard[i])
				}
				heard[i] = end
			}
		}
		why, in, at, match, wait := w.look(s, from, now, quiet)
		if why != "" {
			return why, in, at, match, nil
		}
		changed := s.changed
		s.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return "", 0, 0, "", ctx.Err()
		}
		timer.Stop()
	}
}

func (s *session) lockedEnd(i int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[i].end()
}

// look says whether the reading is over, or how long it may be until it is.
func (w *waiter) look(s *session, from [2]int64, now, quiet time.Time) (why reason, in int, at int64, match string, wait time.Duration) {
	if w.pattern != nil {
		for _, i := range w.streams {
			if at, match, ok := w.find(&s.streams[i], i, from[i]); ok {
				return byPattern, i, at, match, 0
			}
		}
	}
	ended, full := s.over, false
	for _, i := range w.streams {
		full = full || w.most > 0 && s.streams[i].end()-from[i] > int64(w.most)
	}
	wait = w.until.Sub(now)
	rest := now.Sub(quiet)
	switch {
	case full:
		return byFull, 0, 0, "", 0
	case ended:
		return byEnd, 0, 0, "", 0
	case w.prompt != nil && w.prompted(s, from):
		if rest >= settled {
			return byPrompt, 0, 0, "", 0
		}
		wait = min(wait, settled-rest)
	}
	if w.silence > 0 {
		if rest >= w.silence {
			return bySilence, 0, 0, "", 0
		}
		wait = min(wait, w.silence-rest)
	}
	if !now.Before(w.until) {
		return byTime, 0, 0, "", 0
	}
	return "", 0, 0, "", max(wait, time.Millisecond)
}

// find looks for the pattern in what it wasn't looked for in yet, and a little more.
func (w *waiter) find(st *stream, i int, from int64) (at int64, match string, ok bool) {
	begin := max(from, w.seen[i]-mostMatch)
	text, lost := st.from(begin)
	begin = min(max(begin, 0), st.end()) + lost
	w.seen[i] = st.end()
	place := w.pattern.FindIndex(text)
	if place == nil {
		return 0, "", false
	}
	return begin + int64(place[1]), string(text[place[0]:min(place[1], place[0]+mostMatch)]), true
}

// prompted reports whether one of the streams ends with a prompt that came after
// what was sent last.
func (w *waiter) prompted(s *session, from [2]int64) bool {
	for _, i := range w.streams {
		st := &s.streams[i]
		if st.end() <= max(from[i], st.sentAt) {
			continue
		}
		text, _ := st.from(max(from[i], st.end()-mostPrompt))
		if w.prompt.Match(text) {
			return true
		}
	}
	return false
}

// progress tells whoever waits what came: its last line.
func (s *session) progress(ctx context.Context, i int, since int64) {
	text, _ := s.streams[i].from(max(since, s.streams[i].end()-400))
	line := strings.TrimSpace(strings.ToValidUTF8(string(text), "\ufffd"))
	if at := strings.LastIndexByte(line, '\n'); at >= 0 {
		line = line[at+1:]
	}
	if line != "" {
		sdk.Progress(ctx, "%s: %s", streamNames[i], line)
	}
}

// whole is how many of the bytes are whole characters, where more may come: none of
// the last one is given before it is there.
func whole(b []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		if c := b[len(b)-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-back:]) {
				return len(b) - back
			}
			break
		}
	}
	return len(b)
}
