package proc

import (
	"context"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
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
	// settled is how long nothing follows a prompt; where several lines were sent at
	// once, which have one each, it is longer. One that asks for the rest of a block
	// after an empty line, which ended it, is mostly none: what was typed runs.
	settled        = 60 * time.Millisecond
	settledLines   = 250 * time.Millisecond
	settledRunning = 2 * time.Second
	// rescan is how many times as long as a search took the next one waits.
	rescan = 20
	// mostPattern is the bytes of a pattern, and mostMatch of what one matches.
	mostPattern = 1000
	mostMatch   = 64 << 10
	// mostPrompt is how far back a prompt may begin.
	mostPrompt = 200
)

// anyPrompt is what prompts look like where the operator says nothing else, and
// restOfBlock those of them that ask for more of the same.
var (
	anyPrompt   = regexp.MustCompile(`(?:^|\n)(?:[^\n]{0,80}[>$#%?:]|\.\.\.) ?$`)
	restOfBlock = regexp.MustCompile(`\.\.\. ?$`)
)

// A waiter knows when a reading is over.
type waiter struct {
	streams []int
	pattern *pattern
	prompt  *regexp.Regexp
	asks    bool          // whether a prompt is asked for
	silence time.Duration // 0: not asked for
	until   time.Time
	seen    [2]int64  // the ends of the streams when the pattern was looked for
	search  time.Time // when it may be looked for again
	most    int       // bytes of a stream that are given at once; 0: any
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
		if w.pattern, err = newPattern(*c.Pattern); err != nil {
			return nil, sdk.Fail("invalid", "the pattern can't be read: %s", err).WithHint(`It is RE2; escape \ . + * ? ( ) [ ] { } ^ $ | with \.`)
		}
	}
	for name, ms := range map[string]*int64{"silence": c.Silence, "wait": c.Wait} {
		if ms != nil && (*ms < 0 || *ms > 24*time.Hour.Milliseconds()) {
			return nil, sdk.Fail("invalid", "%s must be 0 to %d ms, got %d", name, 24*time.Hour.Milliseconds(), *ms)
		}
	}
	if c.Silence != nil {
		w.silence = max(1, time.Duration(*c.Silence)) * time.Millisecond
	}
	w.asks = c.Prompt != nil && *c.Prompt || c.Prompt == nil && c.Pattern == nil && c.Silence == nil
	if w.prompt = anyPrompt; s.most.Prompt != "" {
		var err error
		// Whatever follows a prompt, it isn't the last line any more.
		if w.prompt, err = regexp.Compile("(?:" + s.most.Prompt + `)\z`); err != nil {
			return nil, sdk.Fail("failed", "the operator's prompt isn't one")
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
	why, wait = w.over(s, from, now, now.Sub(quiet))
	if w.pattern != nil {
		if in, at, match, ok := w.find(s, from, why != ""); ok {
			return byPattern, in, at, match, 0
		}
		if w.behind(s) {
			wait = min(wait, w.search.Sub(now))
		}
	}
	return why, 0, 0, "", max(wait, time.Millisecond)
}

// over is why the reading is over whether or not there is the pattern; "": it isn't,
// for as long as it says.
func (w *waiter) over(s *session, from [2]int64, now time.Time, rest time.Duration) (why reason, wait time.Duration) {
	for _, i := range w.streams {
		if w.most > 0 && s.streams[i].end()-from[i] > int64(w.most) {
			return byFull, 0
		}
	}
	if s.over {
		return byEnd, 0
	}
	wait = w.until.Sub(now)
	if settles := w.prompted(s, from); settles > 0 {
		if rest >= settles {
			return byPrompt, 0
		}
		wait = min(wait, settles-rest)
	}
	if w.silence > 0 {
		if rest >= w.silence {
			return bySilence, 0
		}
		wait = min(wait, w.silence-rest)
	}
	if !now.Before(w.until) {
		return byTime, 0
	}
	return "", wait
}

// find looks for the pattern in all that is new, however it came. It takes a
// twentieth of the time at most, but looks once more at the end.
func (w *waiter) find(s *session, from [2]int64, last bool) (in int, at int64, match string, ok bool) {
	begun := time.Now()
	if !last && begun.Before(w.search) {
		return 0, 0, "", false
	}
	until := begun.Add(mostSearch)
	if end := w.until.Add(spare / 2); end.Before(until) {
		until = end // there is an answer to give
	}
	for _, i := range w.streams {
		st := &s.streams[i]
		w.seen[i] = st.end()
		text, lost := st.from(from[i])
		if !st.closed {
			text = text[:whole(text)]
		}
		if place := w.pattern.find(text, until); place != nil {
			begin := min(max(from[i], 0), st.end()) + lost
			return i, begin + int64(place[1]), string(text[place[0]:min(place[1], place[0]+mostMatch)]), true
		}
	}
	end := time.Now()
	w.search = end.Add(rescan * end.Sub(begun))
	return 0, 0, "", false
}

// behind reports whether something came in which the pattern wasn't looked for.
func (w *waiter) behind(s *session) bool {
	return slices.ContainsFunc(w.streams, func(i int) bool { return s.streams[i].end() != w.seen[i] })
}

// prompted says for how long nothing may follow where one of the streams ends with
// a prompt that came after what was sent last; 0: none does, or none is asked for.
func (w *waiter) prompted(s *session, from [2]int64) (settles time.Duration) {
	for _, i := range w.streams {
		st := &s.streams[i]
		if !w.asks || st.end() <= max(from[i], st.sentAt) {
			continue
		}
		text, _ := st.from(max(from[i], st.end()-mostPrompt))
		if !w.prompt.Match(text) {
			continue
		}
		this := settled
		switch more := w.prompt == anyPrompt && restOfBlock.Match(text); {
		case more && s.typed.ended:
			continue
		case more && s.typed.empty:
			this = settledRunning
		case s.typed.lines > 1:
			this = settledLines
		}
		if settles == 0 || this < settles {
			settles = this
		}
	}
	return settles
}

// beforePrompt is how many bytes stand before the prompt that a text ends with; all,
// where there is none.
func (w *waiter) beforePrompt(text []byte) int {
	begin := max(0, len(text)-mostPrompt)
	place := w.prompt.FindIndex(text[begin:])
	if place == nil {
		return len(text)
	}
	if place[0] += begin; place[0] < place[1]+begin && text[place[0]] == '\n' {
		place[0]++
	}
	return place[0]
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

// head is the beginning of a text that is longer than most, in whole characters,
// and one at least.
func head(text []byte, most int) []byte {
	n := whole(text[:most])
	if n == 0 {
		if n = most; utf8.FullRune(text) {
			_, n = utf8.DecodeRune(text)
		}
	}
	return text[:n]
}

// A pattern is a regular expression that somebody waits for. It is linear in what
// it is looked for in, times its own size: one of a thousand bytes can take a minute
// for the megabytes that a session writes, which nothing could interrupt.
type pattern struct {
	*regexp.Regexp
	size int // instructions
}

// cheap is instructions times bytes that are looked through in about a second at
// worst, small the instructions of which any text is; mostSearch is how long anything
// else may take.
const (
	cheap      = 64 << 20
	small      = 16
	mostSearch = time.Second
)

func newPattern(text string) (*pattern, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	p := &pattern{size: len(program.Inst)}
	p.Regexp, err = regexp.Compile(text)
	return p, err
}

// find is [regexp.Regexp.FindIndex], which finds nothing if that would take too
// long: it holds up the session.
func (p *pattern) find(text []byte, until time.Time) (place []int) {
	if p.size <= small || p.size*len(text) <= cheap {
		return p.FindIndex(text)
	}
	r := &hurried{text: text, until: until}
	if place = p.FindReaderIndex(r); r.late {
		return nil
	}
	return place
}

// hurried reads a text until some time.
type hurried struct {
	text  []byte
	at    int
	until time.Time
	count int
	late  bool
}

// ReadRune implements [io.RuneReader].
func (r *hurried) ReadRune() (c rune, size int, err error) {
	if r.count++; r.count%512 == 0 && !time.Now().Before(r.until) {
		r.late = true
	}
	if r.late || r.at == len(r.text) {
		return 0, 0, io.EOF
	}
	c, size = utf8.DecodeRune(r.text[r.at:])
	r.at += size
	return c, size, nil
}
