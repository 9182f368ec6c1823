package ui

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
)

// maxDrawn is how many tools a graph has; of more the widest are drawn.
const maxDrawn = 40

// A reacher is a tool with all that it can act with.
type reacher struct {
	*registry.Tool
	State string
	Holds []holding
	Width int // of its authority
}

// width weighs what a tool can act with: each grant, and more where it changes, destroys or
// leaves this machine.
func width(holds []holding) (n int) {
	seen := map[*caps.Grant]bool{}
	for _, h := range holds {
		if h.Grant == nil || seen[h.Grant] {
			continue
		}
		seen[h.Grant] = true
		n++
		f := h.Held.Flags()
		for _, more := range []bool{!f.ReadOnly, f.Destructive, f.OpenWorld} {
			if more {
				n++
			}
		}
	}
	return n
}

// reachers is the tools that can act, the widest first.
func (s *Store) reachers() (all []reacher) {
	for _, t := range s.all() {
		if len(t.Held) == 0 {
			continue
		}
		r := reacher{Tool: t, Holds: reachOf(t)}
		r.Width = width(r.Holds)
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b reacher) int { return b.Width - a.Width })
	return all
}

// A grantRow is a grant with who can use it.
type grantRow struct {
	*caps.Grant
	Place string
	Facts []string
	Tools int
	Used  int // effects lately
}

// used is how often a tool acted lately as it may with a capability. The grants of a server
// that ran in another folder have other identities, so that isn't asked.
func (l *lately) used(tool string, h *caps.Held) (n int) {
	for op, times := range l.Effects[tool] {
		if o, ok := h.Grant.Manifest.Operation(op); ok && (h.Verbs == nil || o.Verb == "" || slices.Contains(h.Verbs, o.Verb)) {
			n += times
		}
	}
	return n
}

// placeOf says where a grant leads.
func placeOf(g *caps.Grant) string {
	switch {
	case g.Manifest.Server != "":
		return "MCP server " + g.Manifest.Server
	case g.Real != "":
		return g.Real
	}
	return g.Kind + " " + g.Scope
}

// A user is a tool that can use a grant.
type user struct {
	Tool    string
	Held    *caps.Held
	Via     []string
	Changes bool
	Flags   string
}

// showAuthority is who can touch what: all of it, what one tool reaches, or who reaches one grant.
func showAuthority(q *request) (view, error) {
	l, err := q.store.glance()
	if err != nil {
		return view{}, err
	}
	d := struct {
		Graph   *graph
		Grants  []grantRow
		Denies  []caps.Capability
		Taken   []caps.Revocation
		Widest  string
		Drawn   int
		Acting  int
		Pure    int
		Tool    *registry.Tool
		Reach   []holding
		Grant   *grantRow
		Users   []user
		Writers int
	}{Denies: q.store.Policy.Denies()}
	if q.page.o.Revocations.Path != "" {
		if d.Taken, err = q.page.o.Revocations.Load(); err != nil {
			return view{}, err
		}
	}
	all := q.store.reachers()
	d.Acting, d.Pure = len(all), q.store.Tools.Snapshot().Len()-len(all)
	users, used := map[string]map[string]bool{}, map[*caps.Grant]int{}
	for _, r := range all {
		for _, h := range r.Holds {
			if h.Grant != nil {
				if users[h.Grant.ID] == nil {
					users[h.Grant.ID] = map[string]bool{}
				}
				users[h.Grant.ID][r.Name] = true
				if h.Via == nil {
					used[h.Grant] += l.used(r.Name, h.Held)
				}
			}
		}
	}
	if len(all) > 0 && all[0].Width > 1 {
		d.Widest = all[0].Name
	}
	for _, g := range q.store.Policy.Grants() {
		row := grantRow{Grant: g, Place: placeOf(g), Tools: len(users[g.ID]), Used: used[g]}
		if lines := strings.Split(g.Describe(q.store.Policy.Left(g)), "\n"); len(lines) > 1 {
			for _, fact := range lines[1:] {
				row.Facts = append(row.Facts, strings.TrimSpace(fact))
			}
		}
		if d.Grants = append(d.Grants, row); g.ID == q.FormValue("grant") {
			d.Grant = &row
		}
	}
	switch name := q.FormValue("tool"); {
	case name != "":
		t, _, err := q.tool(name, "")
		if err != nil {
			return view{}, err
		}
		d.Tool, d.Reach = t, reachOf(t)
		all = slices.DeleteFunc(all, func(r reacher) bool { return r.Name != name })
	case d.Grant != nil:
		all = slices.DeleteFunc(all, func(r reacher) bool { return !users[d.Grant.ID][r.Name] })
		d.Users, d.Writers = usersOf(all, d.Grant.Grant)
	case q.FormValue("grant") != "":
		return view{}, missing("There is no such grant now.")
	}
	drawn := all[:min(len(all), maxDrawn)]
	d.Drawn = len(drawn)
	b := builder{q: q, widest: d.Widest, only: d.Grant, nodes: map[string]*node{}}
	for _, r := range drawn {
		b.tool(r.Tool)
	}
	if d.Tool == nil {
		for i := range d.Grants {
			if d.Grant == nil || d.Grants[i].Grant == d.Grant.Grant {
				b.grant(d.Grants[i].Grant, d.Grants[i].Tools == 0)
			}
		}
	}
	for _, deny := range d.Denies {
		b.deny(deny)
	}
	d.Graph = b.layout()
	return view{Template: "authority.html", Title: "Authority", Data: &d}, nil
}

// usersOf is who can use a grant, those first that can change something.
func usersOf(all []reacher, g *caps.Grant) (users []user, writers int) {
	for _, r := range all {
		for _, h := range r.Holds {
			if h.Grant != g {
				continue
			}
			u := user{Tool: r.Name, Held: h.Held, Via: h.Via, Changes: !h.Held.Flags().ReadOnly, Flags: h.Flags}
			if u.Changes {
				writers++
			}
			users = append(users, u)
		}
	}
	slices.SortStableFunc(users, func(a, b user) int {
		if a.Changes != b.Changes {
			if a.Changes {
				return -1
			}
			return 1
		}
		return cmp.Compare(len(a.Via), len(b.Via))
	})
	return users[:min(len(users), perPage)], writers
}

// A node is a box of the graph, an edge what leads from one to another.
type node struct {
	Label, Sub, Href, Class string
	X, Y, Width             int
	column                  int
	order                   float64
	to                      []*node
	from                    []*node
}

type edge struct{ Path, Class string }

// A graph is what is drawn.
type graph struct {
	Width, Height int
	Nodes         []*node
	Edges         []edge
	Heads         []node
	// Words says the graph without a picture, a line for each edge.
	Words []string
}

// The columns of a graph after those of tools, and its measures in pixels.
const (
	boxWidth, boxHeight  = 190, 40
	columnGap, rowGap    = 48, 10
	columnWidth, headRow = boxWidth + columnGap, 30
)

// A builder makes a graph: tools, left of the tools that they call, then capabilities, grants
// and places. Calls go to earlier versions only, so it has no circles but those of groups.
type builder struct {
	q      *request
	widest string
	only   *grantRow
	nodes  map[string]*node
	all    []*node
	levels int // of tools
}

// The columns, counted from the last column of tools.
const (
	ofCapability = iota + 1
	ofGrant
	ofPlace
)

func (b *builder) add(key string, n node) (_ *node, isNew bool) {
	if old := b.nodes[key]; old != nil {
		return old, false
	}
	b.nodes[key] = &n
	b.all = append(b.all, &n)
	return &n, true
}

func (b *builder) link(from, to *node) {
	if !slices.Contains(from.to, to) {
		from.to = append(from.to, to)
		to.from = append(to.from, from)
	}
}

// tool adds a tool with all that it leads to. A tool's column is below 0: how far it is from
// those that call none.
func (b *builder) tool(t *registry.Tool) *node {
	key := "tool " + t.Name + "@" + shortHash(t.Hash)
	n, isNew := b.add(key, node{Label: t.Name, Sub: t.Hash[:min(8, len(t.Hash))], Href: at(b.q.profile, "authority", "tool", t.Name), Class: "is-tool"})
	if !isNew {
		return n
	}
	n.Sub = ""
	if t.Name == b.widest {
		n.Class, n.Sub = "is-tool widest", "the widest"
	}
	if state, _ := b.q.store.state(t); state != registry.StateReady {
		n.Class, n.Sub = n.Class+" "+state, state
	}
	for _, h := range t.Held {
		switch callee := t.Bound[h.Scope]; {
		case h.Kind == caps.CallKind && callee != nil:
			to := b.tool(callee)
			b.link(n, to)
			if to != n && !slices.Contains(to.to, n) {
				n.column = max(n.column, to.column+1)
			}
		case h.Kind == caps.CallKind:
			to, _ := b.add("cap "+h.String(), node{Label: h.String(), Sub: "whatever tool has the name", Class: "is-cap", column: -ofCapability})
			b.link(n, to)
		case h.Grant != nil && (b.only == nil || b.only.Grant == h.Grant):
			c, _ := b.add("cap "+h.String()+h.Grant.ID, node{Label: h.String(), Sub: changes(h.Flags()), Href: at(b.q.profile, "authority", "grant", h.Grant.ID), Class: "is-cap", column: -ofCapability})
			b.link(n, c)
			b.link(c, b.grant(h.Grant, false))
		}
	}
	b.levels = max(b.levels, n.column)
	return n
}

func shortHash(h string) string { return h[:min(12, len(h))] }

// changes says whether a capability changes things, in a word or two.
func changes(f caps.Flags) string {
	switch {
	case f.Destructive:
		return "may destroy"
	case !f.ReadOnly:
		return "changes things"
	}
	return "reads only"
}

func (b *builder) grant(g *caps.Grant, unused bool) *node {
	n, isNew := b.add("grant "+g.ID, node{Label: g.String(), Href: at(b.q.profile, "authority", "grant", g.ID), Class: "is-grant", column: -ofGrant})
	if isNew {
		var sub []string
		for _, s := range []struct {
			set  bool
			word string
		}{{g.Asked, "asks"}, {g.Revoked(), "revoked"}, {unused, "unused"}} {
			if s.set {
				n.Class += " " + s.word
				sub = append(sub, s.word)
			}
		}
		n.Sub = strings.Join(sub, ", ")
		class := "is-place"
		if g.Manifest.Server != "" {
			class += " server"
		}
		href := ""
		if g.Manifest.Server != "" {
			href = at(b.q.profile, "servers", "name", g.Manifest.Server)
		}
		where, _ := b.add("place "+placeOf(g), node{Label: placeOf(g), Class: class, Href: href, column: -ofPlace})
		b.link(n, where)
	}
	return n
}

// deny adds a denial to the grants that it takes something out of.
func (b *builder) deny(d caps.Capability) {
	var from []*node
	for _, g := range b.q.store.Policy.Grants() {
		n := b.nodes["grant "+g.ID]
		if n == nil || g.Kind != d.Kind {
			continue
		}
		overlaps := g.Manifest.Algebra.Overlaps(d.Scope, g.Scope)
		if g.Manifest.Algebra == caps.Path {
			overlaps = below(d.Scope, g.Real) || below(g.Real, d.Scope)
		}
		if overlaps {
			from = append(from, n)
		}
	}
	if len(from) == 0 {
		return
	}
	n, _ := b.add("deny "+d.String(), node{Label: d.String(), Sub: "denied", Class: "is-place denied", column: -ofPlace})
	for _, g := range from {
		b.link(g, n)
	}
}

// below reports whether a path lies in a folder.
func below(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// layout gives every node its place: columns by what it is, the order in a column by the
// mean of its neighbours.
func (b *builder) layout() *graph {
	if len(b.all) == 0 {
		return nil
	}
	columns := make([][]*node, b.levels+1+ofPlace)
	for _, n := range b.all {
		// The tools that call most are first; the places last.
		n.column = b.levels - n.column
		columns[n.column] = append(columns[n.column], n)
	}
	b.waypoints(columns)
	g := &graph{Width: len(columns)*columnWidth - columnGap, Height: headRow}
	for round := range 6 {
		for _, nodes := range columns {
			for i, n := range nodes {
				n.order = float64(i)
				beside := n.from
				if round%2 == 1 {
					beside = n.to
				}
				if len(beside) > 0 {
					n.order = 0
					for _, o := range beside {
						n.order += float64(o.Y)
					}
					n.order /= float64(len(beside))
				} else if round > 0 {
					n.order = float64(n.Y)
				}
			}
			slices.SortStableFunc(nodes, func(a, b *node) int { return cmp.Compare(a.order, b.order) })
			for i, n := range nodes {
				n.Y = headRow + i*(boxHeight+rowGap)
			}
		}
	}
	tallest := 0
	for _, nodes := range columns {
		tallest = max(tallest, len(nodes))
	}
	g.Height += tallest * (boxHeight + rowGap)
	heads := map[int]string{b.levels + ofCapability: "capabilities", b.levels + ofGrant: "grants", b.levels + ofPlace: "where they lead"}
	heads[b.levels] = "tools"
	for i, nodes := range columns {
		x, shift := i*columnWidth, (tallest-len(nodes))*(boxHeight+rowGap)/2
		if head, ok := heads[i]; ok {
			g.Heads = append(g.Heads, node{Label: head, X: x})
		}
		for _, n := range nodes {
			n.X, n.Width = x, boxWidth
			n.Y += shift
			if n.Class != waypoint {
				g.Nodes = append(g.Nodes, n)
			}
		}
	}
	for _, n := range b.all {
		for _, to := range n.to {
			e := edge{curve(n, to), strings.TrimPrefix(to.Class, "is-")}
			if n.Class == waypoint {
				e.Path += fmt.Sprintf("M%d %dh%d", n.X, n.Y+boxHeight/2, boxWidth)
			}
			g.Edges = append(g.Edges, e)
			if to.Class != waypoint {
				for from := n; ; from = from.from[0] {
					if from.Class != waypoint {
						g.Words = append(g.Words, from.Label+" → "+to.Label)
						break
					}
				}
			}
		}
	}
	return g
}

// waypoint is the class of a node that only keeps an edge from running behind boxes.
const waypoint = "waypoint"

// waypoints puts a node into each column that an edge passes.
func (b *builder) waypoints(columns [][]*node) {
	for _, n := range slices.Clone(b.all) {
		for i, to := range n.to {
			from := n
			for column := n.column + 1; column < to.column; column++ {
				w := &node{Class: waypoint, column: column, from: []*node{from}, Y: from.Y}
				columns[column] = append(columns[column], w)
				b.all = append(b.all, w)
				if from == n {
					n.to[i] = w
				} else {
					from.to = []*node{w}
				}
				from = w
			}
			if from != n {
				from.to = []*node{to}
				to.from[slices.Index(to.from, n)] = from
			}
		}
	}
}

// curve is the way from a node to another.
func curve(from, to *node) string {
	x1, y1, x2, y2 := from.X+boxWidth, from.Y+boxHeight/2, to.X, to.Y+boxHeight/2
	if x2 <= x1 { // in a group
		x1, x2 = from.X+boxWidth/2, to.X+boxWidth/2
	}
	half := (x1 + x2) / 2
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, half, y1, half, y2, x2, y2)
}
