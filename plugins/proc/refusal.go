package proc

import (
	"bytes"
	"fmt"
	"regexp"
)

// refusals match what programs say of a file that the system didn't let them open or
// start, with its path: before the words, as C programs have it, or after them.
var refusals = []*regexp.Regexp{
	regexp.MustCompile(`(/[^\s'"` + "`" + `:,;()]+): [Pp]ermission denied`),
	regexp.MustCompile(`[Pp]ermission denied[^\n/]{0,40}(/[^\s'"` + "`" + `:,;()]+)`),
	regexp.MustCompile(`(/[^\s'"` + "`" + `:,;()]+)['"]?[:,;]? [^\n]{0,80}[Pp]ermission denied`),
}

// maxRefusal is how much of what a program wrote last is looked at.
const maxRefusal = 8 << 10

// deniedFile is the first file that a program complained about, which the sandbox may have
// refused it; "": it complained about none.
func deniedFile(output []byte) string {
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
		if path := deniedFile(text); path != "" {
			return fmt.Sprintf("the sandbox refused %s: the operator can add it to what the command may read or execute, in \"processes\" of the policy file", path)
		}
	}
	return ""
}
