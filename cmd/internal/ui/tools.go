package ui

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// showProfiles is the first page where there are several profiles, or none.
func showProfiles(q *request) (view, error) {
	names, err := q.page.o.Profiles()
	return view{Template: "profiles.html", Title: "Profiles", Data: names}, err
}

// showOverview is a profile's first page.
func showOverview(q *request) (view, error) {
	l, err := q.store.glance()
	if err != nil {
		return view{}, err
	}
	d := struct {
		*lately
		States   map[string]int
		Tools    int
		Recent   []ran
		Busy     []toolRow
		Grants   []*caps.Grant
		Problems []error
		Events   uint64
	}{lately: l, States: map[string]int{}, Grants: q.store.Policy.Grants(), Problems: q.store.Tools.Problems()}
	all := q.store.all()
	d.Tools = len(all)
	for _, t := range all {
		state, _ := q.store.state(t)
		d.States[state]++
	}
	found, err := q.store.find(runFilter{}, 0, 8)
	if err != nil {
		return view{}, err
	}
	d.Recent = found.Runs
	if d.Events, err = q.store.Journal.Last(); err != nil {
		return view{}, err
	}
	busy := slices.SortedFunc(maps.Keys(l.Tools), func(a, b string) int { return cmp.Or(l.Tools[b].Runs-l.Tools[a].Runs, strings.Compare(a, b)) })
	for _, name := range busy {
		if t, ok := q.store.Tools.Snapshot().Get(name); ok && len(d.Busy) < 8 {
			d.Busy = append(d.Busy, q.store.row(t, l))
		}
	}
	for _, t := range all[:min(len(all), max(0, 8-len(d.Busy)))] {
		if l.Tools[t.Name] == nil {
			d.Busy = append(d.Busy, q.store.row(t, l))
		}
	}
	return view{Template: "overview.html", Title: q.profile, Data: &d}, nil
}

// A toolRow is a tool in the list.
type toolRow struct {
	*registry.Tool
	State, Why string
	Type, Cost string
	Did        *activity // nil: nothing lately
}

// state is how a tool stands, and why. Code that wasn't compiled yet isn't for this.
func (s *Store) state(t *registry.Tool) (state, why string) {
	if state, why = registry.StateOf(t, s.Policy); state == registry.StateReady && len(s.Policy.Asks(t.Held)) > 0 {
		switch s.Consents.Of(registry.SubjectOf(t)) {
		case caps.Approved:
		case caps.Rejected:
			return registry.StateBlocked, "the operator was asked, and said no"
		default:
			return registry.StateAsking, "it waits for the operator's approval of this version"
		}
	}
	return state, why
}

// maxType is how much of a type a list shows.
const maxType = 120

func (s *Store) row(t *registry.Tool, l *lately) toolRow {
	r := toolRow{Tool: t, Did: l.Tools[t.Name]}
	r.State, r.Why = s.state(t)
	if t.Unusable() != nil {
		return r
	}
	r.Type = cut(maxType, t.Report().Signature())
	if c, ok := t.Cost(); ok {
		r.Cost = string(c.Class)
	}
	return r
}

// A sorted is the tools by name, for the snapshot they are of.
type sorted struct {
	mu    sync.Mutex
	of    *registry.Snapshot
	tools []*registry.Tool
}

// all is the tools by name. The slice must not be changed.
func (s *Store) all() []*registry.Tool {
	now := s.Tools.Snapshot()
	s.sorted.mu.Lock()
	defer s.sorted.mu.Unlock()
	if s.sorted.of != now {
		s.sorted.of, s.sorted.tools = now, now.All()
	}
	return s.sorted.tools
}

// A pager is where a list goes on.
type pager struct {
	From, Shown, All int
	Next, Before     string // links; "": there is no more
}

// perPage is how many rows a list has.
const perPage = 100

// page cuts a page out of a list, and says where it goes on.
func page[T any](q *request, all []T) ([]T, pager) {
	from, _ := strconv.Atoi(q.FormValue("from"))
	from = max(0, min(from, len(all)))
	part := all[from:min(len(all), from+perPage)]
	p := pager{From: from, Shown: len(part), All: len(all)}
	to := func(n int) string {
		query := q.URL.Query()
		query.Set("from", strconv.Itoa(n))
		return q.URL.Path + "?" + query.Encode()
	}
	if from+len(part) < len(all) {
		p.Next = to(from + perPage)
	}
	if from > 0 {
		p.Before = to(max(0, from-perPage))
	}
	return part, p
}

func showTools(q *request) (view, error) {
	l, err := q.store.glance()
	if err != nil {
		return view{}, err
	}
	d := struct {
		Query, State, Kind string
		States, Kinds      []string
		Rows               []toolRow
		Retired            []journal.Event
		pager
	}{Query: q.FormValue("q"), State: q.FormValue("state"), Kind: q.FormValue("kind"), States: []string{registry.StateReady, registry.StateAsking, registry.StateBlocked}}
	kinds := map[string]bool{}
	words := strings.ToLower(d.Query)
	leftOut := func(t *registry.Tool) bool {
		has := d.Kind == "" || d.Kind == "none" && len(t.Held) == 0
		for _, h := range t.Held {
			kinds[h.Kind] = true
			has = has || h.Kind == d.Kind
		}
		if !has || words != "" && !strings.Contains(strings.ToLower(t.Name), words) && !strings.Contains(strings.ToLower(t.Description), words) {
			return true
		}
		if d.State == "" {
			return false
		}
		state, _ := q.store.state(t)
		return state != d.State
	}
	var all []*registry.Tool
	for _, t := range q.store.all() {
		if !leftOut(t) {
			all = append(all, t)
		}
	}
	d.Kinds = slices.Sorted(maps.Keys(kinds))
	part, p := page(q, all)
	d.pager = p
	for _, t := range part {
		d.Rows = append(d.Rows, q.store.row(t, l))
	}
	if d.State == "" && d.Kind == "" && p.Next == "" {
		if d.Retired, err = q.store.retired(words); err != nil {
			return view{}, err
		}
	}
	return view{Template: "tools.html", Title: "Tools", Data: &d}, nil
}

// retired is the newest events by which tools went that aren't there now.
func (s *Store) retired(words string) (gone []journal.Event, err error) {
	events, _, err := s.Journal.Read(journal.Query{Kind: journal.ToolRetired, Limit: perPage, Last: true})
	for i := range slices.Backward(events) {
		name := events[i].Tool()
		if _, there := s.Tools.Snapshot().Get(name); there || !strings.Contains(strings.ToLower(name), words) ||
			slices.ContainsFunc(gone, func(e journal.Event) bool { return e.Tool() == name }) {
			continue
		}
		gone = append(gone, events[i])
	}
	return gone, err
}

// tool finds the tool, or the version, that a request names.
func (q *request) tool(name, version string) (t *registry.Tool, current bool, err error) {
	n, _ := strconv.Atoi(version)
	t, current = q.store.Tools.Snapshot().Get(name)
	if current && (n == 0 || n == t.Version) {
		return t, true, nil
	}
	if n == 0 {
		changes, _, err := q.store.Tools.History(name, 0, 1)
		if err != nil {
			return nil, false, err
		}
		if len(changes) == 0 {
			return nil, false, missing(fmt.Sprintf("There is no tool %q, and there never was.", name))
		}
		n = changes[0].Version
	}
	t, err = q.store.Tools.Version(registry.Ref{Name: name, Version: n})
	if f, ok := errors.AsType[*fault.Fault](err); ok && (f.Kind == fault.NoTool || f.Kind == fault.OutOfRange) {
		err = missing(f.Message)
	}
	return t, false, err
}

// A versionRow is a version in a tool's history.
type versionRow struct {
	Version, From int
	Kind          string
	Time          time.Time
	Hash          string
	Capabilities  []string
	Description   string
}

// maxVersions is how many versions of a tool are listed.
const maxVersions = 50

func (s *Store) versions(name string) (rows []versionRow, more bool, err error) {
	changes, more, err := s.Tools.History(name, 0, maxVersions)
	for _, c := range changes {
		rows = append(rows, versionRow{c.Version, c.From, strings.ReplaceAll(c.Kind.String(), "_", " "), c.Time, c.Hash, c.Capabilities, c.Description})
	}
	return rows, more, err
}

// A holding is a capability of a tool with what the operator should know of it.
type holding struct {
	*caps.Held
	Facts []string
	Via   []string // the tools by which it is reached; nil: the tool's own
	Flags string
}

// A known is what is known of a version before it runs, as describe tells it.
type known struct {
	Type        string
	Sound       bool
	Problems    []place
	Unknown     []place
	More        int
	Effects     []place
	Cannot      []string
	Certificate string
	Void        string
	Equals      string
	Cost        struct {
		Class, Steps, Memory string
		Why                  []place
	}
}

type place struct {
	Op, Kind, Reason, Message, Hint, At, Via string
	Line, Col                                int
	Inert                                    bool
}

func (s *Store) known(t *registry.Tool, current bool) (k known) {
	_ = json.Unmarshal(s.Server.Known(t, current), &k)
	return k
}

func showTool(q *request) (view, error) {
	t, current, err := q.tool(q.FormValue("name"), q.FormValue("v"))
	if err != nil {
		return view{}, err
	}
	l, err := q.store.glance()
	if err != nil {
		return view{}, err
	}
	d := struct {
		toolRow
		Current  bool
		Newest   int
		Versions []versionRow
		Older    bool
		Code     string
		Known    known
		Holds    []holding
		Reaches  []holding
		Calls    []*registry.Tool
		Ruled    bool     // there are rules of flow
		Flows    []string // what they mean for it
		Callers  []string
		Callers2 int // more of them
		Runs     runList
		Before   int
	}{toolRow: q.store.row(t, l), Current: current, Code: shown(t), Known: q.store.known(t, current), Before: t.Version - 1}
	if d.Versions, d.Older, err = q.store.versions(t.Name); err != nil {
		return view{}, err
	}
	if len(d.Versions) > 0 {
		d.Newest = d.Versions[0].Version
	}
	switch now, there := q.store.Tools.Snapshot().Get(t.Name); {
	case !there:
		d.State, d.Why = "retired", ""
	case !current:
		d.State, d.Why = "superseded", fmt.Sprintf("version %d is the current one", now.Version)
	}
	for _, h := range reachOf(t) {
		if h.Via == nil {
			d.Holds = append(d.Holds, h)
		} else if h.Grant != nil {
			d.Reaches = append(d.Reaches, h)
		}
	}
	if d.Ruled = q.store.Flow != nil; d.Ruled {
		d.Flows = q.store.Flow.Explain(t.MadeUnder, t.Reach())
	}
	d.Calls = slices.SortedFunc(maps.Values(t.Uses()), func(a, b *registry.Tool) int { return strings.Compare(a.Name, b.Name) })
	for _, o := range q.store.all() {
		if o.Uses()[t.Name] == nil {
			continue
		}
		if len(d.Callers) == 50 {
			d.Callers2++
			continue
		}
		d.Callers = append(d.Callers, o.Name)
	}
	if d.Runs, err = q.store.find(runFilter{Tool: t.Name}, 0, 8); err != nil {
		return view{}, err
	}
	return view{Template: "tool.html", Title: t.Name, Data: &d}, nil
}

// shown is a version's code as a person reads it: as it was written, or in the text form.
func shown(t *registry.Tool) string {
	if t.Text || t.Problem() != nil {
		return string(t.Shown())
	}
	return string(registry.Printed(t.Program()))
}

// reachOf is what a tool holds, and what it reaches through others.
func reachOf(t *registry.Tool) (all []holding) {
	type step struct {
		tool *registry.Tool
		via  []string
	}
	seen := map[*registry.Tool]bool{t: true}
	for todo := []step{{t, nil}}; len(todo) > 0; todo = todo[1:] {
		at := todo[0]
		for _, h := range at.tool.Held {
			all = append(all, holding{Held: h, Via: at.via, Facts: h.Facts(), Flags: flagsOf(h)})
			if b := at.tool.Bound[h.Scope]; h.Kind == caps.CallKind && b != nil && !seen[b] {
				seen[b] = true
				todo = append(todo, step{b, append(slices.Clone(at.via), b.Name)})
			}
		}
	}
	return all
}

func flagsOf(h *caps.Held) string {
	if h.Grant == nil {
		return ""
	}
	return h.Flags().Words()
}

// A side is one of the two lines of a row of a comparison.
type side struct {
	N    int
	Text string
	Mark string // "", del, add, gone
}

// A pairOfLines is a row of a comparison; a jump is one that leaves lines out.
type pairOfLines struct {
	Left, Right side
	Jump        bool
}

// sides puts a unified difference side by side.
func sides(unified string) (rows []pairOfLines) {
	left, right, from := 0, 0, 0
	header := true
	for _, l := range strings.Split(strings.TrimSuffix(unified, "\n"), "\n") {
		if strings.HasPrefix(l, "@@") {
			if _, err := fmt.Sscanf(l, "@@ -%d", &left); err == nil {
				if at := strings.Index(l, "+"); at > 0 {
					_, _ = fmt.Sscanf(l[at:], "+%d", &right)
				}
			}
			if rows != nil {
				rows = append(rows, pairOfLines{Jump: true})
			}
			header, from = false, len(rows)
			continue
		}
		if header || l == "" {
			continue
		}
		switch text := clip(maxCodeLine, l[1:]); l[0] {
		case '-':
			rows = append(rows, pairOfLines{Left: side{left, text, "del"}, Right: side{Mark: "gone"}})
			left++
		case '+':
			// It stands beside the first line that went without another.
			for from < len(rows) && (rows[from].Right.Mark != "gone" || rows[from].Left.Mark != "del") {
				from++
			}
			if from < len(rows) {
				rows[from].Right = side{right, text, "add"}
			} else {
				rows = append(rows, pairOfLines{Left: side{Mark: "gone"}, Right: side{right, text, "add"}})
			}
			right++
		default:
			rows = append(rows, pairOfLines{Left: side{left, text, ""}, Right: side{right, text, ""}})
			left, right = left+1, right+1
			from = len(rows)
		}
	}
	return rows
}

// maxDiff is how many lines of a comparison are shown, and rowMarkup what one takes besides its text.
const maxDiff, rowMarkup = 1500, 170

// fitting is as many rows as a page has room for.
func fitting(rows []pairOfLines) []pairOfLines {
	left := maxMarkup
	for i := range first(maxDiff, rows) {
		if left -= rowMarkup + escaped(rows[i].Left.Text) + escaped(rows[i].Right.Text); left < 0 {
			return rows[:i]
		}
	}
	return first(maxDiff, rows)
}

func showDiff(q *request) (view, error) {
	name := q.FormValue("name")
	var both [2]*registry.Tool
	for i, key := range []string{"a", "b"} {
		var err error
		if both[i], _, err = q.tool(name, cmp.Or(q.FormValue(key), "")); err != nil {
			return view{}, err
		}
	}
	type version struct {
		*registry.Tool
		Known known
		Reach []holding
	}
	d := struct {
		Name     string
		A, B     version
		Rows     []pairOfLines
		More     int
		Versions []versionRow
		Wider    caps.Difference
	}{Name: name}
	for i, v := range []*version{&d.A, &d.B} {
		v.Tool = both[i]
		v.Known, v.Reach = q.store.known(v.Tool, false), reachOf(v.Tool)
	}
	before := registry.SubjectOf(both[0])
	d.Wider = registry.SubjectOf(both[1]).Since(before, q.store.Policy.Kinds())
	d.Rows = sides(string(registry.Diff(both[0], both[1])))
	all := len(d.Rows)
	d.Rows = fitting(d.Rows)
	d.More = all - len(d.Rows)
	var err error
	d.Versions, _, err = q.store.versions(name)
	return view{Template: "diff.html", Title: name, Data: &d}, err
}

// showExample runs an example of a tool: effects are answered from it, and nothing is
// recorded.
func showExample(q *request) (view, error) {
	t, _, err := q.tool(q.PostForm.Get("name"), q.PostForm.Get("v"))
	if err != nil {
		return view{}, err
	}
	n, err := strconv.Atoi(q.PostForm.Get("n"))
	if err != nil || n < 0 || n >= len(t.Examples) {
		return view{}, missing("The tool has no such example.")
	}
	d := struct {
		*registry.Tool
		N     int
		E     registry.Example
		Steps uint64
		Fault *fault.Fault
		Took  time.Duration
	}{Tool: t, N: n, E: t.Examples[n]}
	began := time.Now()
	d.Steps, d.Fault = q.store.Server.TryExample(q.Context(), t, n)
	d.Took = time.Since(began)
	return view{Template: "example.html", Title: t.Name, Data: &d}, nil
}
