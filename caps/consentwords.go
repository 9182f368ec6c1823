package caps

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// unapproved is the denial of what waits for a person's yes.
func unapproved(o *Operation, h *Held, r Request) *fault.Fault {
	if r.Consent == Rejected {
		return denied(fmt.Sprintf("%s: the operator was asked whether the tool %s may have %s, and said no", o.Name, quoted(r.Tool), h),
			"Don't retry, and don't ask for it under another name: tell the user. The operator can clear the no with `mcp-pif approve --clear NAME`.")
	}
	return denied(fmt.Sprintf("%s: %s waits for the operator's approval of this version of %s", o.Name, h, quoted(r.Tool)),
		"Tell the user: they answer with `mcp-pif approve`, in a terminal of their own. Until then don't retry.")
}

// Facts is what the operator should know of a capability before they say yes to
// it: where it really leads, what can be done there, and the limits. None of it is
// the tool's own words, but for the names in its scope.
func (h *Held) Facts() []string {
	if h.Grant == nil {
		return []string{h.String() + " (a call, with what the tool it calls may do)"}
	}
	g := h.Grant
	lines := []string{h.String()}
	add := func(format string, a ...any) { lines = append(lines, "  "+fmt.Sprintf(format, a...)) }
	switch {
	case g.Manifest.Algebra != Path:
		add("within %s", h.Scope)
	case g.File != "":
		add("the file %s", g.Real)
	default:
		add("everything below %s", g.realOf(h.Within))
	}
	add("may %s: %s", strings.Join(permitted(&h.Capability, g.Manifest), ", "), h.Flags().Words())
	l := h.Limit()
	limits := fmt.Sprintf("in one run %d calls and %s, in one call %s and %s", l.Calls, formatSize(l.Bytes), formatSize(l.Max), formatDuration(l.Timeout))
	if l.Rate.Per != 0 {
		limits += fmt.Sprintf(", in all %s", l.Rate)
	}
	if until := earlier(h.Until, g.Until); !until.IsZero() {
		limits += ", until " + until.UTC().Format(time.RFC3339)
	}
	add("%s", limits)
	for name, value := range g.Options {
		if name != optionRO {
			add("with %s", strings.TrimSuffix(name+"="+value, "="))
		}
	}
	slices.Sort(lines[4:])
	return lines
}

// Words says what acting can do at worst.
func (f Flags) Words() string {
	words := []string{"changes things"}
	if f.ReadOnly {
		words[0] = "reads only"
	} else if f.Destructive {
		words = append(words, "may destroy what was there")
	}
	if f.OpenWorld {
		words = append(words, "reaches beyond this machine")
	}
	return strings.Join(words, ", ")
}

// A Difference is how a version differs from the one that was approved before.
type Difference struct {
	Before  bool // one of this name was approved
	Code    bool // the code is other code
	Wider   []string
	Gone    []string
	Calls   []string // what it reaches by calls that it didn't
	Rebound []string // names that stand for another version
}

// Since tells how s differs from what was approved before; nil: nothing was.
func (s *Subject) Since(before *Subject, kinds Kinds) (d Difference) {
	if before == nil {
		return d
	}
	d.Before, d.Code = true, s.Code != before.Code
	texts := func(list []Holding) (texts []string) {
		for _, h := range list {
			texts = append(texts, h.Text)
		}
		return texts
	}
	d.Wider = texts(wider(before.Holds, s.Holds, kinds))
	d.Gone = texts(wider(s.Holds, before.Holds, kinds))
	d.Calls = texts(wider(before.Reach, s.Reach, kinds))
	for _, b := range s.Bound {
		if !slices.Contains(before.Bound, b) {
			d.Rebound = append(d.Rebound, b.Name)
		}
	}
	return d
}
