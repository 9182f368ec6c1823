package proc

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/display"
)

// add takes what the session wrote, and which of its outputs have ended.
func (s *session) add(got [2][]byte, closed [2]bool) {
	s.mu.Lock()
	for i := range got {
		s.streams[i].add(got[i])
		s.streams[i].closed = s.streams[i].closed || closed[i]
		s.wrote += int64(len(got[i]))
	}
	much := s.wrote > s.most.Output
	s.change()
	s.mu.Unlock()
	if much {
		s.end("output")
	}
}

// A ring is the last bytes of an output, by their places from the first byte on.
// The zero value keeps nothing. It isn't safe for concurrent use.
type ring struct {
	most int    // bytes kept at least, where there are as many
	data []byte // a little more, so that not every byte moves all
	base int64  // the place of data[0]
}

// add appends, and lets go of what is over.
func (r *ring) add(b []byte) {
	r.data = append(r.data, b...)
	if over := len(r.data) - r.most; over > r.most/4 {
		r.data = r.data[:copy(r.data, r.data[over:])]
		r.base += int64(over)
	}
}

// begin and end are the places of what is kept.
func (r *ring) begin() int64 { return max(r.base, r.end()-int64(r.most)) }
func (r *ring) end() int64   { return r.base + int64(len(r.data)) }

// from is what is kept from a place on, and how much of that is lost. It is good
// until the next add.
func (r *ring) from(at int64) (b []byte, lost int64) {
	at = min(max(at, 0), r.end())
	if first := r.begin(); at < first {
		lost, at = first-at, first
	}
	return r.data[at-r.base:], lost
}

// refusals match what programs say of a file that the system didn't let them open or
// start, with its path: before the words, as C programs have it, or after them.
var refusals = []*regexp.Regexp{
	regexp.MustCompile(`(/[^\s'"` + "`" + `:,;()]+): [Pp]ermission denied`),
	regexp.MustCompile(`[Pp]ermission denied[^\n/]{0,40}(/[^\s'"` + "`" + `:,;()]+)`),
	regexp.MustCompile(`(/[^\s'"` + "`" + `:,;()]+)['"]?[:,;]? [^\n]{0,80}[Pp]ermission denied`),
}

// maxRefusal is how much of what a program wrote last is looked at.
const maxRefusal = 8 << 10

// DeniedFile is the first file that a program complained about, which the sandbox may have
// refused it; "": it complained about none.
func DeniedFile(output []byte) string {
	if !bytes.Contains(output, []byte("ermission denied")) {
		return ""
	}
	for _, line := range bytes.Split(output, []byte("\n")) {
		for _, r := range refusals {
			if m := r.FindSubmatch(line); m != nil {
				return string(m[1])
			}
		}
	}
	return ""
}

// refusal says why a session ended by itself with a failure, where the sandbox refused
// it a file. The caller holds mu.
func (s *session) refusal() string {
	if s.most.Sandbox == "off" || s.why != "" || s.last.Ended && s.last.Code == 0 && s.last.Signal == "" {
		return ""
	}
	for _, i := range []int{stderr, stdout} {
		st := &s.streams[i]
		text, _ := st.from(max(0, st.end()-maxRefusal))
		if path := DeniedFile(text); path != "" {
			path = strconv.Quote(display.Truncate(strings.ToValidUTF8(path, ""), 200))
			return fmt.Sprintf("the program says it was refused %s: the operator can add it to what the command may read or execute, in \"processes\" of the policy file", path)
		}
	}
	return ""
}
