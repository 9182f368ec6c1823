package parse

import (
	"fmt"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// maxFaults is how many failures one parse reports.
const maxFaults = 5

// A failure is a fault whose place is still a node.
type failure struct {
	node  uint32
	fault *fault.Fault
}

// enough reports whether a failure at node i would not be reported any more.
func (b *builder) enough(i uint32) bool {
	return len(b.faults) == maxFaults && b.faults[maxFaults-1].node < i
}

// refuse records a failure at node i and gives a term to go on with.
func (b *builder) refuse(i uint32, f *fault.Fault) term.Term {
	if b.enough(i) {
		return &term.Unit{}
	}
	f.Kind, f.In = fault.ParseError, b.in
	f.Fragment = b.fragment(i)
	b.faults = append(b.faults, failure{i, f})
	sort.SliceStable(b.faults, func(x, y int) bool { return b.faults[x].node < b.faults[y].node })
	if len(b.faults) > maxFaults {
		b.faults = b.faults[:maxFaults]
	}
	return &term.Unit{}
}

// fault returns the first failure with the others in More.
func (b *builder) fault() *fault.Fault {
	for _, f := range b.faults {
		f.fault.At = b.pointer(0, f.node)
	}
	first := b.faults[0].fault
	for _, f := range b.faults[1:] {
		first.More = append(first.More, f.fault)
	}
	return first
}

// fragment returns the source of node i, on one line, shortened.
func (b *builder) fragment(i uint32) string {
	n := &b.nodes[i]
	end := min(n.end, n.off+400)
	s := strings.ToValidUTF8(b.src[n.off:end], "")
	return shorten(oneLine(s))
}

// oneLine takes line breaks and the blanks around them out.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\n\r\t") {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

// describe describes a node: "an array of 3", "the string "a"".
func (b *builder) describe(i uint32) string {
	n := &b.nodes[i]
	switch n.kind() {
	case object:
		if n.count() == 0 {
			return "an empty object"
		}
		return "the object " + display.Truncate(b.fragment(i), 40)
	case array:
		return fmt.Sprintf("an array of %d", n.count())
	case text:
		return "the string " + display.Truncate(b.fragment(i), 40)
	case number:
		return "the number " + display.Truncate(b.fragment(i), 40)
	}
	return b.src[n.off:n.end]
}

// duplicate refuses the key k, which its object already has.
func (b *builder) duplicate(k uint32) {
	if b.enough(k) {
		return
	}
	name := excerpt(strconv.Quote(b.string(k)))
	b.refuse(k, &fault.Fault{
		Message:  "the key " + name + " stands twice in one object",
		Expected: "each key once",
		Got:      name + " a second time",
		Hint:     "Take one of the two away, or give it another name.",
	})
}

// failShape refuses the object i, whose operation r has the value v.
func (b *builder) failShape(i uint32, r *prim.Row, v uint32, d dialect) term.Term {
	if b.enough(i) {
		return &term.Unit{}
	}
	f := &fault.Fault{Expected: r.Spelling(), Hint: "Write it as in " + r.Correct() + "."}
	value := &b.nodes[v]
	got := b.describe(v)
	f.Got = got
	n := len(r.Params)
	switch {
	case r.Shape == prim.Named:
		f.Message = fmt.Sprintf("%s takes a name in quotes, not %s", r.Name, got)
		if value.kind() == number {
			f.Hint = fmt.Sprintf("Write the name in quotes: {%q:%q}.", r.Name, display.Truncate(b.fragment(v), 40))
			if b.in == "input" {
				f.Hint = `Take another name: a string of digits is a number in an input that is read as auto.`
			}
		}
	case r.Shape == prim.Lambda:
		b.failLambda(f, i, v)
	case r.Shape == prim.NamedOrTerm:
		f.Message = fmt.Sprintf("%s takes a tool's name in quotes or an operation that gives one, not %s", r.Name, got)
		f.Hint = fmt.Sprintf("Write {%q:\"square\"} or {%q:{\"var\":\"x\"}}.", r.Name, r.Name)
	case r.With != "" && b.member(i, r.With) == 0:
		f.Message = fmt.Sprintf("%s lacks %q beside it", r.Name, r.With)
	case r.With != "" || r.Shape == prim.UnaryOrArray:
		f.Message = fmt.Sprintf("%s is written %s, not with %s", r.Name, r.Spelling(), got)
	case r.Shape == prim.Members:
		f.Message = fmt.Sprintf("%s takes an object, not %s", r.Name, got)
	case value.kind() == object && (r.Shape == prim.Keyed || r.Shape == prim.KeyedOrArray):
		b.failMembers(f, r, v)
	case value.kind() == array && (r.Shape == prim.Array || r.Shape == prim.KeyedOrArray):
		f.Message = fmt.Sprintf("%s takes %s operands, got %d", r.Name, r.Operands(), value.count())
		f.Got = strconv.Itoa(value.count())
		if value.count() > n && r.Shape == prim.Array && associative[r.Name] {
			f.Hint = fmt.Sprintf("Nest for more than two: {%q:[A,{%q:[B,C]}]}.", r.Name, r.Name)
		}
	case r.Shape == prim.Array:
		f.Message = fmt.Sprintf("%s takes an array of %s operands, not %s", r.Name, r.Operands(), got)
	default:
		keys := make([]string, n)
		for k, p := range r.Params {
			keys[k] = strconv.Quote(p.Name)
		}
		f.Message = fmt.Sprintf("%s takes an object with %s, not %s", r.Name, listWords(keys), got)
	}
	if b.in == "input" {
		f.Hint += inputHint
	}
	b.refuse(i, f)
	b.inside(r, v, d)
	return &term.Unit{}
}

// inside builds the operands of a refused operation, for what is wrong in them.
func (b *builder) inside(r *prim.Row, v uint32, d dialect) {
	value := &b.nodes[v]
	switch {
	case r.Shape == prim.Array && value.kind() == array, r.Shape == prim.KeyedOrArray && value.kind() == array:
		for j := v + 1; j < value.next; j = b.nodes[j].next {
			b.term(j, d)
		}
	case value.kind() == object && (r.Shape == prim.Keyed || r.Shape == prim.KeyedOrArray):
		for _, p := range r.Params {
			if j := b.member(v, p.Name); j != 0 {
				b.term(j, d)
			}
		}
	}
}

// inputHint goes with what may have been meant as data.
const inputHint = ` If this input is data and no program, leave "input_as" out.`

// associative are the operations that can be nested to take more operands.
var associative = map[string]bool{"add": true, "mul": true, "and": true, "or": true, "concat": true}

func (b *builder) failLambda(f *fault.Fault, i, v uint32) {
	switch value := &b.nodes[v]; {
	case value.kind() == array:
		f.Message = "lam takes its parameter's name in quotes, or an array of names with a body beside it"
		f.Hint = `Write {"lam":["x","y"],"body":T}.`
	case value.kind() != text:
		f.Message = "lam takes its parameter's name in quotes, not " + b.describe(v)
		if value.kind() == number {
			f.Hint = `Write the name in quotes: {"lam":"x","body":T}.`
			if b.in == "input" {
				f.Hint = `Take another name: a string of digits is a number in an input that is read as auto.`
			}
		}
	default:
		f.Message = `lam lacks "body"`
		f.Got = "no body"
		if value.next < b.nodes[i].next || b.nodes[i].count() > 1 {
			if near := prim.Closest("body", b.keysOf(i)); near != "" {
				f.Near = "body"
				f.Got = strconv.Quote(near)
				f.Message += ", but has " + f.Got
			}
		}
		f.Hint = fmt.Sprintf(`Put "body" beside "lam" in the same object: {"lam":%s,"body":T}.`, display.Truncate(b.fragment(v), 40))
	}
}

// failMembers reports which operands an object lacks.
func (b *builder) failMembers(f *fault.Fault, r *prim.Row, v uint32) {
	var missing []string
	has := b.keysOf(v)
	last, list := r.Params[len(r.Params)-1].Name, uint32(0)
	if r.List != "" {
		list = b.member(v, r.List)
	}
	switch {
	case list != 0 && b.member(v, last) != 0:
		f.Message = fmt.Sprintf("%s takes %q or %q, not both", r.Name, last, r.List)
		return
	case list != 0 && (b.nodes[list].kind() != array || b.nodes[list].count() == 0):
		f.Got = b.describe(list)
		f.Message = fmt.Sprintf("%s takes a list of at least one term as %q, not %s", r.Name, r.List, f.Got)
		return
	}
	for _, p := range r.Params {
		if b.member(v, p.Name) == 0 && (p.Name != last || list == 0) {
			missing = append(missing, strconv.Quote(p.Name))
			if f.Near == "" {
				if wrote := prim.Closest(p.Name, has); wrote != "" && b.unusedBy(r, wrote) {
					f.Near = p.Name
				}
			}
		}
	}
	f.Message = fmt.Sprintf("%s lacks %s", r.Name, listWords(missing))
	for k := range has {
		has[k] = strconv.Quote(has[k])
	}
	f.Got = "an empty object"
	if len(has) > 0 {
		f.Got = "an object with " + display.Truncate(listWords(has), 40)
	}
}

func (b *builder) unusedBy(r *prim.Row, key string) bool {
	for _, p := range r.Params {
		if p.Name == key {
			return false
		}
	}
	return key != r.List
}

func listWords(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// keysOf returns the first keys of an object, enough for a message.
func (b *builder) keysOf(i uint32) []string {
	var names []string
	n := &b.nodes[i]
	for k := i + 1; k < n.next && len(names) < 20; k = b.nodes[k+1].next {
		names = append(names, b.string(k))
	}
	return names
}

// failUnknown refuses an object without an operation.
func (b *builder) failUnknown(i uint32) term.Term {
	if b.enough(i) {
		return &term.Unit{}
	}
	names := b.keysOf(i)
	f := &fault.Fault{Expected: "an operation: an object with one of the keys of help"}
	if len(names) == 0 {
		f.Message = "an empty object is no operation"
		f.Got = "{}"
		f.Hint = `Write {"record":{}} for an empty record, [] for an empty list, null for nothing.`
		return b.refuse(i, f)
	}
	sort.Strings(names)
	shown := make([]string, len(names))
	for k, name := range names {
		shown[k] = display.Truncate(strconv.Quote(name), 40)
		if f.Near == "" {
			f.Near = prim.Nearest(name)
		}
		if f.Hint == "" {
			if f.Hint = prim.Instead(name); f.Hint == prim.Unequal {
				f.Near, f.Hint = "", b.unequal(b.member(i, name))
			}
		}
	}
	if len(shown) > 5 {
		shown = append(shown[:5], "…")
	}
	f.Got = strings.Join(shown, ", ")
	f.Message = "unknown operation " + f.Got
	if len(names) > 1 {
		f.Message = "no operation among the keys " + f.Got
	}
	switch _, r, ok := prim.Lookup(f.Near); {
	case f.Hint != "":
	case ok:
		f.Hint = fmt.Sprintf("Did you mean %s? Write it as in %s.", r.Name, r.Correct())
	default:
		example := b.fragment(i)
		if len(example) > 60 {
			example = `{"key":T}`
		}
		f.Hint = fmt.Sprintf(`If it is a record, write {"record":%s}; for an operation take one of the names that help lists.`, example)
	}
	return b.refuse(i, f)
}

// unequal returns how to write that two operands differ, those of the array v if it is
// one.
func (b *builder) unequal(v uint32) string {
	op, operands := "eq", "[A,B]"
	if first, second, ok := b.two(v); ok {
		operands = b.fragment(v)
		for _, j := range [...]uint32{first, second} {
			if k := b.nodes[j].kind(); k != number && k != object {
				op = "equal" // eq compares numbers only
			}
		}
	}
	return fmt.Sprintf(`Write it as {"not":{%q:%s}}.`, op, operands)
}

// failAlone refuses a key beside one that must stand alone.
func (b *builder) failAlone(i, key uint32) term.Term {
	if b.enough(i) {
		return &term.Unit{}
	}
	name := b.string(key)
	other := ""
	n := &b.nodes[i]
	for k := i + 1; k < n.next && other == ""; k = b.nodes[k+1].next {
		if k != key {
			other = excerpt(strconv.Quote(b.string(k)))
		}
	}
	return b.refuse(i, &fault.Fault{
		Message:  fmt.Sprintf("%s stands alone in its object, here %s is beside it", display.Truncate(strconv.Quote(name), 40), other),
		Expected: fmt.Sprintf("an object whose only key is %s", display.Truncate(strconv.Quote(name), 40)),
		Got:      fmt.Sprintf("%d keys", n.count()),
		Hint:     fmt.Sprintf("Take %s away, or put it inside: {%s:…}.", other, display.Truncate(strconv.Quote(name), 40)),
	})
}

// failEffect refuses an effect in an input.
func (b *builder) failEffect(i, k uint32) term.Term {
	name := excerpt(strconv.Quote(b.string(k)))
	return b.refuse(i, &fault.Fault{
		Message:  "an input can't ask for the effect " + name,
		Expected: "a term without effects, or quoted code",
		Got:      "the key " + name,
		Hint:     fmt.Sprintf(`Write data as {"record":{%s:T}}, or leave "input_as" out.`, name),
	})
}

// failIn refuses the key in of an effect's argument, the fields of the object i.
func (b *builder) failIn(i uint32) term.Term {
	in := b.member(i, "in")
	return b.refuse(in, &fault.Fault{
		Message:  "the key \"in\" of an effect's arguments names a capability, in quotes, not " + b.describe(in),
		Expected: "a string that isn't empty",
		Got:      b.describe(in),
		Hint:     `Write it as in {"fs.read":{"in":"./out","path":"a.txt"}}, or leave it out where the tool holds one capability of the kind.`,
	})
}

// failWith refuses what stands beside an eval.
func (b *builder) failWith(i uint32) term.Term {
	if b.enough(i) {
		return &term.Unit{}
	}
	return b.refuse(i, &fault.Fault{
		Message:  "the \"with\" beside eval is a list of capabilities in quotes, not " + b.describe(i),
		Expected: "an array of strings",
		Got:      b.describe(i),
		Hint:     `Write them out: {"eval":{"var":"code"},"with":["fs.read:./in"]}; leave "with" away where the code needs none.`,
	})
}

// failMember refuses a member that an operation which stands alone doesn't have.
func (b *builder) failMember(key uint32, r *prim.Row) term.Term {
	if b.enough(key) {
		return &term.Unit{}
	}
	name := excerpt(strconv.Quote(b.string(key)))
	return b.refuse(key, &fault.Fault{
		Message:  fmt.Sprintf("%s has no member %s", r.Name, name),
		Expected: r.Spelling(), Got: name,
		Hint: "Write it as in " + r.Correct() + ".",
	})
}

// failEffectName refuses a key with a dot that names no operation.
func (b *builder) failEffectName(i, k uint32) term.Term {
	return b.refuse(i, &fault.Fault{
		Message:  fmt.Sprintf("the effect %s has no kind or no verb", excerpt(strconv.Quote(b.string(k)))),
		Expected: "kind.verb",
		Got:      display.Truncate(b.string(k), 40),
		Hint:     `Write an effect as in {"fs.read":{"path":"a.txt"}}, a record as {"record":{"a.b":T}}.`,
	})
}

// maxNotes is how many notes one parse gives; the rest are counted.
const maxNotes = 20

// A note is about a node, whose place is worked out at the end.
type note struct {
	node uint32
	text string
}

func (b *builder) note(i uint32, text string) {
	if len(b.notes) == maxNotes {
		b.quiet++
		return
	}
	b.notes = append(b.notes, note{i, text})
}

// finishNotes gives the notes their places, in the order of the source.
func (b *builder) finishNotes() []string {
	if len(b.notes) == 0 {
		return nil
	}
	sort.SliceStable(b.notes, func(x, y int) bool { return b.notes[x].node < b.notes[y].node })
	notes := make([]string, len(b.notes))
	for k, n := range b.notes {
		notes[k] = place(b.pointer(0, n.node)) + ": " + n.text
	}
	if b.quiet > 0 {
		notes = append(notes, fmt.Sprintf("and %d more like these", b.quiet))
	}
	return notes
}

// place returns a pointer as a note begins with it.
func place(p fault.Pointer) string {
	if p == "" {
		return "/"
	}
	return string(p)
}

func (b *builder) noteRounded(i uint32, s string, small int64, large *big.Int) {
	if len(b.notes) == maxNotes {
		b.quiet++
		return
	}
	to := strconv.FormatInt(small, 10)
	if large != nil {
		to = large.String()
	}
	b.note(i, display.Truncate(s, 40)+" was rounded to "+display.Truncate(to, 40))
}

// notePair reports a function of two parameters, the node i, that is passed one pair.
func (b *builder) notePair(i uint32, r *prim.Row, f term.Term) {
	if l, ok := f.(*term.Lam); ok {
		if inner, ok := l.Body.(*term.Lam); ok {
			b.note(i, fmt.Sprintf(`%s passes its function one pair; take its parts with {"lam":{"pair":[{"var":%q},{"var":%q}]},"body":T}`, r.Name, l.Param, inner.Param))
		}
	}
}

// noteExtra reports the keys of the object i beside the operation r, whose value is
// v.
func (b *builder) noteExtra(i, v uint32, r *prim.Row) {
	n := &b.nodes[i]
	for k := i + 1; k < n.next; k = b.nodes[k+1].next {
		if k+1 == v {
			continue
		}
		name := b.string(k)
		if r.Shape == prim.Lambda && name == "body" || r.Shape == prim.Within && name == "with" {
			continue
		}
		b.noteKey(k, name, r.Name)
	}
}

// noteMembers reports the members of v that the operation r doesn't use.
func (b *builder) noteMembers(v uint32, r *prim.Row) {
	n := &b.nodes[v]
	for k := v + 1; k < n.next; k = b.nodes[k+1].next {
		if name := b.string(k); b.unusedBy(r, name) {
			b.noteKey(k, name, r.Name)
		}
	}
}

func (b *builder) noteKey(k uint32, name, winner string) {
	if len(b.notes) == maxNotes {
		b.quiet++
		return
	}
	text := fmt.Sprintf("the key %s was ignored beside %q", display.Truncate(strconv.Quote(name), 40), winner)
	if _, r, ok := prim.Lookup(name); ok {
		if r.Falls && !b.fits(r, k+1) {
			text += fmt.Sprintf("; it has not the shape %s needs: %s", r.Name, r.Spelling())
		} else {
			text += "; an object is one operation, and this one comes first"
		}
	} else if near := prim.Nearest(name); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	b.note(k, text)
}

// pointer returns the place of node i relative to node root, which is around it; for
// a key, the place of its value. It is put together in one buffer, since sources may
// be thousands of parts deep.
func (b *builder) pointer(root, i uint32) fault.Pointer {
	const start = fault.Pointer("")
	var p []byte
	at := root
	for at != i {
		n := &b.nodes[at]
		found := false
		j := at + 1
		switch n.kind() {
		case array:
			for k := 0; j < n.next; k++ {
				if end := b.nodes[j].next; i < end {
					p, at, found = append(p, start.Index(k)...), j, true
					break
				}
				j = b.nodes[j].next
			}
		case object:
			for j < n.next {
				if end := b.nodes[j+1].next; i < end {
					p, at, found = append(p, start.Key(b.string(j))...), j+1, true
					if i == j {
						return fault.Pointer(p)
					}
					break
				}
				j = b.nodes[j+1].next
			}
		}
		if !found {
			return fault.Pointer(p)
		}
	}
	return fault.Pointer(p)
}

// find returns the node that begins at an offset; keys don't count.
func (b *builder) find(pos int) (uint32, bool) {
	i, ok := slices.BinarySearchFunc(b.nodes, pos, func(n node, pos int) int { return int(n.off) - pos })
	return uint32(i), ok
}

// rescan reads a source that was parsed before.
func (b *builder) rescan(src *term.Source) bool {
	if src == nil {
		return false
	}
	b.reset(string(src.Text))
	b.reserve()
	return b.scan(0, MaxValues) == nil
}

// At sets the fault's At, In and Fragment to the term at offset pos of a
// source, relative to the term at offset root. In is left as it is where it is
// set already or the source has no name.
func At(f *fault.Fault, src *term.Source, root, pos int) {
	f.At, f.Fragment = locate(src, root, pos)
	if src != nil {
		prim.NamePattern(f, src.Text, pos)
	}
	if src != nil && f.In == "" {
		f.In = src.In
	}
}

// locate returns the pointer of the term at offset pos of a JSON source relative to
// the term at offset root, which is around it (0: the whole source), and the source
// there. It reads the source again, so it is for failures only. If pos is no place of a
// term inside root the pointer is empty.
func locate(src *term.Source, root, pos int) (p fault.Pointer, fragment string) {
	b := builders.Get().(*builder)
	defer b.release()
	if !b.rescan(src) {
		return "", ""
	}
	i, ok := b.find(pos)
	if !ok {
		return "", ""
	}
	r := uint32(0)
	if root > 0 {
		r, ok = b.find(root)
		if !ok {
			r = 0
		}
	}
	if i < r || i >= b.nodes[r].next {
		r = 0
	}
	return b.pointer(r, i), b.fragment(i)
}

// LocateAll returns the pointers of the terms at many offsets, relative to the term at
// offset root, with one reading of the source. In the text form, which has no pointers,
// they are empty.
func LocateAll(src *term.Source, root int, at []int) []fault.Pointer {
	pointers := make([]fault.Pointer, len(at))
	if src.Form == term.PIF {
		return pointers
	}
	b := builders.Get().(*builder)
	defer b.release()
	if !b.rescan(src) {
		return pointers
	}
	r, ok := b.find(root)
	if !ok {
		r = 0
	}
	for k, pos := range at {
		if i, ok := b.find(pos); ok && i >= r && i < b.nodes[r].next {
			pointers[k] = b.pointer(r, i)
		}
	}
	return pointers
}
