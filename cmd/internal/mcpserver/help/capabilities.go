package help

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// ofKind explains an operation of a capability (kv.put), or all of a kind (kv);
// false where there is none of that name. Of an MCP server's it explains no operation
// that isn't granted, and lists those that are.
func ofKind(policy *caps.Policy, name string) (string, bool) {
	kinds := policy.Kinds()
	m, operations := kinds[name], []caps.Operation(nil)
	if m != nil {
		operations = m.Operations
	} else if of, o, ok := kinds.Operation(name); ok {
		m, operations = of, []caps.Operation{*o}
	} else {
		return "", false
	}
	if m.Server != "" {
		return ofServer(policy, name, m, operations), true
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n%s\n", m.Kind, m.Doc, m.ScopeDoc())
	for i := range operations {
		Explain(&b, m, &operations[i])
	}
	var granted []string
	for _, g := range policy.Grants() {
		if g.Kind == m.Kind && !g.Revoked() {
			granted = append(granted, g.Shown().String())
		}
	}
	if granted == nil {
		b.WriteString("None of this is granted here: ask the operator to start the server with --cap.")
	} else {
		fmt.Fprintf(&b, "A tool declares what it uses of what is granted: %s.", strings.Join(granted, " "))
	}
	return b.String(), true
}

// ofServer explains what tools can hold of an MCP server: one operation, or a line for
// each.
func ofServer(policy *caps.Policy, name string, m *caps.Manifest, operations []caps.Operation) string {
	var offers []offer
	for i := range operations {
		if offered, asks := policy.Offers(m, &operations[i]); offered {
			offers = append(offers, offer{m, &operations[i], asks})
		}
	}
	if len(offers) == 0 {
		return fmt.Sprintf("%s: %s\n%s isn't granted here: ask the operator to start the server with --cap %[3]s.", m.Kind, m.Doc, name)
	}
	if name == m.Kind {
		return fmt.Sprintf("%s: %s\n%s", m.Kind, m.Doc, offerLines(offers))
	}
	var b strings.Builder
	o := offers[0].o
	Explain(&b, m, o)
	who := "granted"
	if offers[0].asks {
		who = "granted to tools that a person approves"
	}
	declared := policy.Suggest(caps.Needs{Ops: []caps.Need{{Name: o.Name}}})
	fmt.Fprintf(&b, "It is %s: a tool declares %s.\n", who, strings.Join(declared, ", "))
	if o.Cut != nil && o.Cut() {
		b.WriteString("Its types are too long to be shown whole: their deepest parts are json here, and held to as the server says.\n")
	}
	if slices.ContainsFunc(o.Takes(), func(p caps.Param) bool { return p.Type == "int" }) {
		b.WriteString("An integer is sent exactly; a server written in JavaScript rounds it beyond 2^53.\n")
	}
	var docs []string
	for _, p := range o.Takes() {
		if p.Doc != "" {
			docs = append(docs, p.Name+": "+p.Doc)
		}
	}
	if o.Words != "" || docs != nil {
		fmt.Fprintf(&b, "words of the server %s, not of this program:\n%s%s", m.Server, quoteWords(o.Words), quoteWords(strings.Join(docs, "\n")))
	}
	return b.String()
}

// The bounds of what help shows of a server's own words.
const (
	maxWords     = 600
	maxWordLines = 24
)

// quoteWords writes a stranger's words within a margin, with every character written out
// that could hide, act or turn others.
func quoteWords(words string) string {
	if words == "" {
		return ""
	}
	lines := strings.SplitAfterN(display.Truncate(words, maxWords), "\n", maxWordLines+1)
	if len(lines) > maxWordLines {
		lines[maxWordLines] = "…"
	}
	return strings.Join(caps.Margined(strings.Join(lines, ""), maxWords), "\n") + "\n"
}

// Said is what an MCP server says of the failure of one of its tools, as a stranger's
// words; none where nothing of it says so.
func Said(f *fault.Fault) []string {
	words, ok := f.Raised.(value.Str)
	op, _, _ := strings.Cut(f.Message, ": ")
	if !ok || words == "" || f.Kind != fault.EffectFailed && f.Kind != fault.OutcomeUnknown {
		return nil
	}
	return []string{fmt.Sprintf("the error's value, in words of %s, not of this program:\n%s", op, strings.TrimSuffix(quoteWords(string(words)), "\n"))}
}

// Explain writes an operation with its arguments and a right call. Of an MCP
// server's operation the words about arguments are the server's, and not written here.
func Explain(b *strings.Builder, m *caps.Manifest, o *caps.Operation) {
	b.WriteString(strings.TrimSpace(o.Name+"  "+o.Doc) + "\n")
	var spelled []string
	for _, p := range o.Takes() {
		mark := ""
		if p.Optional {
			mark = "?"
		}
		typ := p.Type
		if p.Of != nil {
			typ = caps.Visible(p.Of.String())
		}
		spelled = append(spelled, caps.QuoteName(p.Name)+mark+": "+typ)
	}
	gives := o.Result
	if m.Server != "" && o.Gives() != nil {
		gives = caps.Visible(o.Gives().String())
	}
	fmt.Fprintf(b, "  !%s({%s}) gives %s\n", text.Effect(o.Name), strings.Join(spelled, ", "), gives)
	if o.Gives() != nil && m.Server == "" && o.Gives().String() != o.Result {
		fmt.Fprintf(b, "  of the type %s\n", o.Gives())
	}
	for _, p := range o.Takes() {
		var words []string
		if len(p.Enum) > 0 {
			words = append(words, p.Choices())
		}
		if p.Doc != "" && m.Server == "" {
			words = append(words, p.Doc)
		}
		if p.Secrets && p.Type == "any" {
			words = append(words, `a secret of the operator's, by its name: {secret: "NAME"}`)
		}
		if p.Main {
			words = append(words, "may stand alone")
		}
		if words != nil {
			fmt.Fprintf(b, "  %s: %s\n", caps.QuoteName(p.Name), strings.Join(words, "; "))
		}
	}
	fmt.Fprintf(b, "  such as %s\n", strings.ReplaceAll(ExampleOf(o), "\n", "\n  "))
}

// ExampleOf is a right call of an operation, in the text form if nothing in that hides.
func ExampleOf(o *caps.Operation) string {
	if p, err := core.Compile([]byte(o.Example())); err == nil {
		if text := string(p.Text()); caps.Visible(text) == text {
			return text
		}
	}
	return o.Example()
}

// Operations is the kinds and their operations.
func Operations(policy *caps.Policy) []string {
	var all []string
	kinds := policy.Kinds()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, kind)
		for _, o := range kinds[kind].Operations {
			all = append(all, o.Name)
		}
	}
	return all
}

// Operations of MCP servers may be a hundred. They are in no list: a model searches among
// those that its tools can hold, and each is one line.

// An offer is an operation that tools can hold.
type offer struct {
	m    *caps.Manifest
	o    *caps.Operation
	asks bool // a person approves each tool
}

// findOffers returns the operations that tools can hold now, by kind.
func findOffers(policy *caps.Policy) (all []offer) {
	kinds := policy.Kinds()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		m := kinds[kind]
		for i := range m.Operations {
			if offered, asks := policy.Offers(m, &m.Operations[i]); offered {
				all = append(all, offer{m, &m.Operations[i], asks})
			}
		}
	}
	return all
}

func (f *offer) state() string {
	if f.asks {
		return "asks"
	}
	return "granted"
}

// maxArguments is how many bytes of arguments a line shows.
const maxArguments = 160

// line is the operation in one line: a call, what it gives, and whether a person is asked.
func (f *offer) line() string {
	params := slices.Clone(f.o.Takes())
	slices.SortStableFunc(params, func(a, b caps.Param) int { return cmp.Compare(btoi(a.Optional), btoi(b.Optional)) })
	var args []string
	size := 0
	for _, p := range params {
		name := caps.QuoteName(p.Name)
		if p.Optional {
			name += "?"
		}
		if size += len(name) + 2; size > maxArguments {
			args = append(args, "…")
			break
		}
		args = append(args, name)
	}
	gives := f.o.Result
	if f.o.Gives() != nil {
		gives = abbreviate(f.o.Gives(), 2)
	}
	return fmt.Sprintf("%s({%s}) → %s  %s", f.o.Name, strings.Join(args, ", "), gives, f.state())
}

// The bounds of a type in a line.
const (
	maxTypeFields = 8
	maxTypeText   = 60
)

// abbreviate writes a type down to a depth: the fields that there always are before the
// others, and of a string the name alone.
func abbreviate(t *check.Type, depth int) string {
	record, list := t.Kinds == prim.KindRecord, t.Kinds == prim.KindList && t.Item != nil
	whole := caps.Visible(t.String())
	switch {
	case record && len(t.Fields) > 0 && depth > 0:
		fields := slices.DeleteFunc(slices.Clone(t.Fields), func(f check.Field) bool { return f.Key == "ifc" && f.Optional }) // what servers say of answers
		slices.SortStableFunc(fields, func(a, b check.Field) int { return cmp.Compare(btoi(a.Optional), btoi(b.Optional)) })
		var parts []string
		for _, f := range fields[:min(len(fields), maxTypeFields)] {
			name := caps.QuoteName(display.Truncate(f.Key, maxTypeText))
			if f.Optional {
				name += "?"
			}
			if f.Key != "parts" && f.Type.String() != "string" { // the parts of a server's answer are the same everywhere
				name += ": " + abbreviate(f.Type, depth-1)
			}
			parts = append(parts, name)
		}
		if t.Rest != nil || len(fields) > maxTypeFields {
			parts = append(parts, "…")
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case record && len(t.Fields) > 0:
		return "{…}"
	case list && depth > 0:
		return "list[" + abbreviate(t.Item, depth-1) + "]"
	case list && t.Item.Kinds == prim.KindRecord:
		return "list[…]"
	case len(whole) > maxTypeText:
		return "…"
	}
	return whole
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// MaxFound is how many lines a search has.
const MaxFound = 20

// offerLines is a line for each, as many as a search has.
func offerLines(offers []offer) string {
	var lines []string
	for i := range offers {
		if i == MaxFound-1 && len(offers) > MaxFound {
			lines = append(lines, fmt.Sprintf(`and %d more: help {"search":…} finds those of a word`, len(offers)-i))
			break
		}
		lines = append(lines, offers[i].line())
	}
	return strings.Join(lines, "\n")
}

// The bounds of a query: each of its words is compared with all that is said of each operation.
const (
	maxQuery      = 200 // bytes
	maxQueryWords = 16
)

// Search finds operations among those that tools can hold, the nearest first.
func Search(policy *caps.Policy, query string) wire.Answer {
	if len(query) > maxQuery || len(wordsOf(query)) > maxQueryWords {
		return wire.Failed(fault.Newf(fault.InvalidRequest, "a search has at most %d words and %d bytes", maxQueryWords, maxQuery).
			Hinted(`Name what the operation is about: {"search":"create issue"}.`))
	}
	said, offers := "", findOffers(policy)
	found := find(offers, query)
	switch {
	case len(found) > 0:
		said = offerLines(found)
	case len(ofLanguage(query)) > 0:
		said = "Nothing granted is about that. The language has:\n" + strings.Join(ofLanguage(query), "\n")
	case prim.Instead(strings.Join(wordsOf(query), "_")) != "":
		said = fmt.Sprintf("There is no operation for that: %s.", prim.Instead(strings.Join(wordsOf(query), "_")))
	case len(offers) == 0:
		said = "No operation is granted here: ask the operator to start the server with --cap."
	default:
		said = fmt.Sprintf("Nothing granted matches %s. %s", caps.Quote(wire.Short([]byte(query))), closest(offers, query))
	}
	return wire.Answer{Text: said, Structured: []byte(wire.Begin().Text("text", said).End())}
}

// ofLanguage is a line for each operation of the language that has all words of a query, at most [MaxFound].
func ofLanguage(query string) (lines []string) {
	for i := range prim.Table {
		r, words := &prim.Table[i], wordsOf(query)
		about := strings.ToLower(r.Name + " " + r.Doc)
		if len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(about, word) }) {
			lines = append(lines, text.Shape(r)+"  "+r.Doc)
		}
	}
	return lines[:min(len(lines), MaxFound)]
}

// Where a query was found, the best first.
const (
	isName = iota
	beginsName
	inName
	inDoc
	inKind
	inWords
	nowhere
)

// find returns the offers that a query finds, those with its words at a better place
// first. If some have all of its words, the others are left out.
func find(offers []offer, query string) (found []offer) {
	type rank struct{ missing, place int }
	ranks := map[*caps.Operation]rank{}
	words := wordsOf(query)
	query = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(query)), "!")
	for _, f := range offers {
		_, verb, _ := strings.Cut(f.o.Name, ".")
		r := rank{place: isName}
		switch {
		case query == f.o.Name || query == verb:
		case strings.HasPrefix(f.o.Name, query) || strings.HasPrefix(verb, query):
			r.place = beginsName
		default:
			for _, word := range words {
				switch place := f.find(word); place {
				case nowhere:
					r.missing++
				default:
					r.place = max(r.place, place)
				}
			}
		}
		if r.missing < len(words) {
			found = append(found, f)
			ranks[f.o] = r
		}
	}
	slices.SortFunc(found, func(a, b offer) int {
		x, y := ranks[a.o], ranks[b.o]
		return cmp.Or(cmp.Compare(x.missing, y.missing), cmp.Compare(x.place, y.place), strings.Compare(a.o.Name, b.o.Name))
	})
	if i := slices.IndexFunc(found, func(f offer) bool { return ranks[f.o].missing > 0 }); i > 0 {
		found = found[:i]
	}
	return found
}

// find says where a word of a query is.
func (f *offer) find(word string) int {
	for place, text := range []string{inName: f.o.Name, inDoc: f.o.Doc, inKind: f.m.Doc, inWords: f.o.Words} {
		if slices.ContainsFunc(wordsOf(text), func(w string) bool {
			// One may be the other's plural.
			return strings.HasPrefix(w, word) || len(w) > 2 && len(word)-len(w) <= 2 && strings.HasPrefix(word, w)
		}) {
			return place
		}
	}
	return nowhere
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// closest names the operations whose names are near to a query that found none.
func closest(offers []offer, query string) string {
	const most = 5
	var known, near, kinds []string
	for i := range offers {
		known = append(known, wordsOf(offers[i].o.Name)...)
		if kind := offers[i].m.Kind; !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	for _, word := range wordsOf(query) {
		if word = prim.Closest(word, known); word == "" {
			continue
		}
		for i := range offers {
			if f := &offers[i]; f.find(word) == inName && !slices.Contains(near, f.o.Name) && len(near) < most {
				near = append(near, f.o.Name)
			}
		}
	}
	if near == nil {
		return "Granted are operations of " + strings.Join(kinds, ", ") + "."
	}
	return "The closest are " + strings.Join(near, ", ") + "."
}

// Servers is a line for each MCP server of which tools can hold something.
func Servers(policy *caps.Policy) (lines []string) {
	offers := findOffers(policy)
	for len(offers) > 0 {
		m := offers[0].m
		granted, asks := 0, 0
		for ; len(offers) > 0 && offers[0].m == m; offers = offers[1:] {
			asks += btoi(offers[0].asks)
			granted += btoi(!offers[0].asks)
		}
		if m.Server == "" {
			continue
		}
		line := fmt.Sprintf("%s: %s granted", m.Kind, cmp.Or(wire.Plural(granted, "operation", "operations"), "0 operations"))
		if asks > 0 {
			line += fmt.Sprintf(", %d ask", asks)
		}
		lines = append(lines, line+`; help {"search":…}`)
	}
	return lines
}

// Asked is those of the grants that the user approves for each tool.
func Asked(policy *caps.Policy) (texts []string) {
	for _, g := range policy.Grants() {
		if g.Asked && !g.Revoked() && g.Manifest.Server == "" {
			texts = append(texts, g.Shown().String())
		}
	}
	return texts
}

// Grants is what tools may declare, as they say it. That of MCP servers is apart: a grant
// may have a hundred verbs, and help has them.
func Grants(policy *caps.Policy) (texts, ofServers []string) {
	texts = []string{}
	for _, g := range policy.Grants() {
		switch text := g.Shown().String(); {
		case g.Revoked():
		case g.Manifest.Server != "":
			ofServers = append(ofServers, text)
		default:
			texts = append(texts, text)
		}
	}
	return texts, ofServers
}

// asked is how operations are written of kinds that are granted and whose verbs or names are taken for them.
func asked(grants []string) (how string) {
	for _, of := range [...]struct{ kind, call string }{
		{"fetch", ` Write !fetch.request({method: "get", url: u}).json, several at once as par(f(1), f(2)).`},
		{"random", ` Write !random.seed({}) % 6; help random draws many of one seed.`},
	} {
		if slices.ContainsFunc(grants, func(g string) bool {
			return strings.HasPrefix(g, of.kind+".") || strings.HasPrefix(g, of.kind+":")
		}) {
			how += of.call
		}
	}
	return how
}

// Instructions is what a model is told at the start: the card, and in a line each what tools may declare, and how.
// With MCP servers alone it has no examples of kinds that aren't granted.
func Instructions(policy *caps.Policy) string {
	const most = 12
	few := func(all []string) string {
		if len(all) > most {
			all = append(all[:most:most], "…")
		}
		return strings.Join(all, ", ")
	}
	grants, _ := Grants(policy)
	servers, told := Servers(policy), ""
	for i := range servers {
		servers[i], _, _ = strings.Cut(servers[i], ":")
	}
	if len(servers) > 0 {
		told = fmt.Sprintf("MCP servers: %s. help {\"search\": \"WORDS\"} finds their operations; !%s.NAME({…}) gives {text, data?, parts?}; declare %[2]s.NAME, or %[2]s.\n", few(servers), servers[0])
	}
	if len(grants) == 0 && told != "" {
		lines := slices.DeleteFunc(strings.SplitAfter(prim.Card(), "\n"), func(line string) bool { return strings.Contains(line, "!fs.") || strings.Contains(line, "!kv.") })
		return strings.Join(lines, "") + told
	} else if len(grants) == 0 {
		return prim.Card() + "Nothing is granted: tools compute only.\n"
	}
	less := " or part of it"
	for _, g := range grants {
		if kind, folder, ok := strings.Cut(g, ":./"); ok && (kind == "fs" || strings.HasPrefix(kind, "fs.")) {
			less += " (fs.read:./" + strings.TrimSuffix(folder, "/") + "/DIR); paths are relative to what is declared"
			break
		}
	}
	return prim.Card() + "Granted: " + few(grants) + ". Declare what a tool uses of that," + less + "." + asked(grants) + "\n" + told
}
