package caps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Request is an effect that a program asks for, for [Policy.Permit].
type Request struct {
	Operation string
	// In is the literal "in", which names one of the holder's capabilities.
	In  string
	Arg value.Value // without the literal in
	// With is the lists of the evals around: every one must cover the request.
	With [][]string
	// Tool is the name of who asks; empty for inline code and inputs.
	Tool string
	// Declared is what the tool declares, for what a denial says; nothing is
	// decided by it.
	Declared []string
	// Home is the node of a cluster whose own folders the tool acts on, for the same; "": none.
	Home string
	// Input is set for code in an input, which never has authority.
	Input bool
	// Consent is what a person said to the version that asks: where a grant asks,
	// nothing but their yes permits.
	Consent Consent
	// Among is how many requests, this one included, share what is left of the
	// bytes: those of a round that are yet to be permitted. 0: nobody knows, and
	// while others are under way each gets a small part.
	Among int
	// Again is set where the same was permitted before, in a run that goes on after its
	// server ended: it counts for the run, and takes no token of a rate.
	Again bool
	// From is what the request comes from, as bits, which the grant keeps where it takes a token; see [Grant.Takers].
	From uint32
	// Size and Most are those of [value.Request], so that no argument is gone through again for its
	// size; 0: nobody measured it.
	Size, Most int64
}

// says returns the text that a field of the argument is; see [Need.Says].
func (r *Request) says(name string, isMain bool) (text string, known bool) {
	v := value.Force(r.Arg)
	if fields, ok := v.(*value.Record); ok {
		v, _ = field(fields, name)
	} else if !isMain {
		return "", true
	}
	s, _ := v.(value.Str)
	return string(s), true
}

// A Permit is the leave to act once. It is settled when the outcome is there.
type Permit struct {
	// Held is what the tool holds, within the evals around: what a plugin has
	// to open, and no more.
	Held      *Held
	Operation *Operation
	Verb      string
	Flags     Flags
	// Args is the arguments as the plugin gets them: paths are in their one
	// spelling and relative to Held.
	Args *value.Record
	// Designates is the arguments that say what is acted on, as they are decided: for Path
	// below the grant's root.
	Designates []string
	// Most is the bytes that the outcome may have: they are reserved.
	Most    int64
	Timeout time.Duration
	// Short is set where the outcome may have fewer for what was permitted before, or together with it.
	Short bool
	// Until is when its authority ends; zero: never.
	Until time.Time
	// Secrets is those that the arguments name, all bound to what is designated.
	Secrets []*Secret
	// Denies is what the plugin must refuse besides. The scope of a Path one
	// is the path below the grant's root.
	Denies []Capability
	// Context ends when the grant is revoked; an outcome after that is dropped.
	Context context.Context

	ledger   *Ledger
	accounts []account
	settled  bool
}

// Each is the permit for each thing that is designated, as if that were all; itself where there are no several.
func (p *Permit) Each() (list []*Permit) {
	if len(p.Designates) < 2 {
		return []*Permit{p}
	}
	for _, designated := range p.Designates {
		one := *p
		one.Designates = []string{designated}
		list = append(list, &one)
	}
	return list
}

// Places is a text of [Requests] for each thing that is designated, whatever the verb.
func (p *Permit) Places() (list []string) {
	g := p.Held.Grant
	for _, scope := range p.Designates {
		if g.Manifest.Algebra == Path {
			scope = filepath.ToSlash(g.realBelow(literalPath(scope)))
		}
		list = append(list, Capability{Kind: g.Kind, Scope: scope}.String())
	}
	return list
}

// begins reports whether something in a scope of segments begins with what is designated, where all that does is acted on.
func (p *Permit) begins(scope, designated string) bool {
	return slices.ContainsFunc(p.Operation.Takes(), func(q Param) bool {
		v, _ := field(p.Args, q.Name)
		s, _ := v.(value.Str)
		return q.Prefix && strings.TrimSuffix(string(s), "/") == designated && segmentsBegin(split(scope), split(string(s)))
	})
}

// Settle says how many bytes the outcome had; what was reserved beyond is given
// back. Only the first call counts.
func (p *Permit) Settle(bytes int64) {
	if !p.settled {
		p.settled = true
		p.ledger.settle(p.accounts, p.Most, max(0, bytes))
	}
}

// Permit decides a request of a tool that holds these capabilities, and debits
// it to the run's ledger. What fails for want of authority is denied, and says
// what is missing and who can give it; an argument that no authority would make
// right is effect_failed, with a right call.
func (p *Policy) Permit(l *Ledger, holder []*Held, r Request) (*Permit, *fault.Fault) {
	m, o, known := p.kinds.Operation(r.Operation)
	if !known {
		return nil, p.unknownOperation(r.Operation)
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	if r.Input || r.Tool == "" {
		return nil, p.inline(m, o, r)
	}
	h, f := p.choose(m, o, holder, r)
	if f != nil {
		return nil, f
	}
	most := h.Limit().Max
	if r.Most > 0 {
		most = min(most, r.Most)
	}
	args, f := arguments(o, r.Arg, most, r.fits(most))
	if f == nil {
		f = o.meets(args, h.Grant.Narrow[o.Name], cmp.Or(r.Most, most))
	}
	if f != nil {
		return nil, f
	}
	verb, f := verbOf(m, o, args)
	if f != nil {
		return nil, f
	}
	if !h.permits(verb) {
		if p.lackingList(r.With, m, verb.Name) {
			return nil, p.outsideEval(o, Capability{Kind: m.Kind, Verbs: []string{verb.Name}, Scope: h.Scope})
		}
		return nil, denied(fmt.Sprintf("%s: the tool's capability %s doesn't have the verb %s", o.Name, h, verb.Name),
			fmt.Sprintf("Declare %s when evolving it, if the operator granted that; don't retry.", quoted(m.Kind+"."+verb.Name+":"+h.Scope)))
	}
	g, ok := p.find(h.Grant.ID)
	if !ok {
		return nil, denied(fmt.Sprintf("%s: %s was revoked by the operator", o.Name, h.Grant.Shown()),
			"Tell the user: only the operator can grant it again; don't retry.")
	}
	if g.Revoked() {
		shown := g.Shown().String()
		return nil, denied(fmt.Sprintf("%s: %s was revoked by the operator", o.Name, shown), p.restoreHint(shown, p.revokedBy(g)))
	}
	if g != h.Grant {
		live := *h
		live.Grant, h = g, &live
	}
	if r.Consent != Approved && p.asks(h, m) {
		return nil, unapproved(o, h, r)
	}
	now := p.now()
	if until := earlier(h.Until, g.Until); !until.IsZero() && !now.Before(until) {
		return nil, denied(fmt.Sprintf("%s: %s ended at %s", o.Name, h, until.UTC().Format(time.RFC3339)),
			"Tell the user: only the operator can grant it for longer; don't retry.")
	}
	c := &check{p: p, m: m, o: o, h: h, verb: verb, now: now, denies: p.deniesOf(g)}
	if args, f = c.designated(args); f != nil {
		return nil, f
	}
	accounts, f := c.with(r)
	if f != nil {
		return nil, f
	}
	secrets, f := c.secrets(args)
	if f != nil {
		return nil, f
	}
	permit, f := c.debit(l, r, c.rebase(args), accounts)
	if f == nil {
		permit.Secrets = secrets
	}
	return permit, f
}

// choose finds the one capability of the holder that a request is made under.
func (p *Policy) choose(m *Manifest, o *Operation, holder []*Held, r Request) (*Held, *fault.Fault) {
	kind := slices.DeleteFunc(slices.Clone(holder), func(h *Held) bool { return h.Kind != m.Kind || h.Grant == nil })
	if len(kind) == 0 {
		return nil, p.unheld(m, o, r)
	}
	h, err := Named(m, o, kind, r.In)
	if err != nil {
		return nil, denied(o.Name+": "+err.Error(), "")
	}
	return h, nil
}

// Named finds the capability that "in" names: by its scope, or by its grant's
// label where only one has it. Without a name there must be only one. Those that have
// the operation's verb come before those that don't; of an MCP server's, which have no
// scope, the first is taken.
func Named(m *Manifest, o *Operation, held []*Held, in string) (*Held, error) {
	able := func(all []*Held) []*Held {
		v, ok := m.Verb(o.Verb)
		if !ok || o.VerbParam != "" {
			return all
		}
		if some := slices.DeleteFunc(slices.Clone(all), func(h *Held) bool { return !h.permits(v) }); len(some) > 0 {
			return some
		}
		return all
	}
	if in == "" {
		held = able(held)
		if len(held) == 1 || m.Server != "" {
			return held[0], nil
		}
		return nil, fmt.Errorf(`the tool holds several capabilities of the kind %s: say which with "in": %s`, m.Kind, scopes(held))
	}
	spelled := func(scope string) bool {
		if m.Algebra == Path {
			return bare(scope) == strings.TrimSuffix(bare(in), "/")
		}
		if scope == in {
			return true
		}
		canonical, err := m.Algebra.Canonical(in)
		return err == nil && scope == canonical
	}
	for _, by := range []func(*Held) bool{
		func(h *Held) bool { return spelled(h.Scope) },
		func(h *Held) bool { return spelled(h.Declared) },
		func(h *Held) bool { return spelled(h.Grant.Label) },
	} {
		found := slices.DeleteFunc(slices.Clone(held), func(h *Held) bool { return !by(h) })
		switch found = able(found); {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return nil, fmt.Errorf(`"in" names several capabilities, %s: name one of them alone`, scopes(found))
		}
	}
	return nil, fmt.Errorf(`"in" is %s, which names no capability of the tool: it holds %s`, quoted(in), scopes(held))
}

func scopes(held []*Held) string {
	var list []string
	for _, h := range held {
		if s := quoted(h.Scope); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return strings.Join(list, ", ")
}

// verbOf gives the verb that an operation with these arguments needs.
func verbOf(m *Manifest, o *Operation, args *value.Record) (Verb, *fault.Fault) {
	name := o.Verb
	if o.VerbParam != "" {
		if v, ok := field(args, o.VerbParam); ok {
			s, _ := v.(value.Str)
			name = strings.ToLower(string(s))
		}
	}
	v, ok := m.Verb(name)
	if !ok {
		return v, fault.Newf(fault.Denied, "%s: %s can't be %s", o.Name, o.VerbParam, quoted(name)).Hinted(m.verbList())
	}
	return v, nil
}

// FlagsOf returns what an operation with these arguments, nil: none, can do at worst.
func (m *Manifest) FlagsOf(o *Operation, args *value.Record) Flags {
	if args == nil {
		args = &value.Record{}
	}
	v, _ := verbOf(m, o, args) // none: changes things, and not twice the same
	for _, once := range o.Once {
		if given, ok := field(args, once[0]); ok && (once[1] == "" || given == value.Value(value.Str(once[1]))) {
			v.Idempotent = false
		}
	}
	return v.Flags
}

// The causes of denials that tell what a run, or other runs, did before: a limit of the run, or a rate.
var (
	ErrUsedUp   = errors.New("used up")
	ErrTooOften = errors.New("too often")
)

// A TooOften is the cause of a denial by a rate of a grant: [ErrTooOften].
type TooOften struct{ Grant *Grant }

func (TooOften) Error() string { return ErrTooOften.Error() }

// Is reports whether it is that error.
func (TooOften) Is(err error) bool { return err == ErrTooOften }

// Rationed reports whether how much the outcome may have depends on what came before.
func (p *Permit) Rationed() bool {
	return slices.ContainsFunc(p.accounts, func(a account) bool { return a.limit.Bytes > 0 })
}

// Rated reports whether it counts for a rate, which other runs count for, too.
func (p *Permit) Rated() bool {
	return slices.ContainsFunc(p.accounts, func(a account) bool { return a.limit.Rate.Calls > 0 })
}

func denied(message, hint string) *fault.Fault {
	return fault.New(fault.Denied, message).Hinted(cmp.Or(hint, "Don't retry: the same request is denied again."))
}

// PermitCall decides whether a tool that holds these capabilities may call
// another. caller is its name, empty for inline code that may not; with is the lists of the evals around.
func (p *Policy) PermitCall(holder []*Held, callee, caller string, with [][]string) *fault.Fault {
	text := quoted(Capability{Kind: CallKind, Scope: callee}.String())
	p.mu.RLock()
	defer p.mu.RUnlock()
	for i := range p.denies {
		if d := &p.denies[i]; d.Kind == CallKind && callNames.Contains(d.Scope, callee) {
			return denied("call: the operator denies calls of "+quoted(callee), "Work without it; no call can change that.")
		}
	}
	now := p.now()
	covers := func(c *Capability) bool {
		return c.Kind == CallKind && callNames.Contains(c.Scope, callee) && (c.Until.IsZero() || now.Before(c.Until))
	}
	if caller == "" {
		return denied("call: inline code may call tools that can't act, and "+quoted(callee)+" can", fmt.Sprintf("Run the tool %s itself, or evolve a tool that declares %s.", quoted(callee), text))
	}
	if !slices.ContainsFunc(holder, func(h *Held) bool { return covers(&h.Capability) }) {
		return denied(fmt.Sprintf("call: the tool %s didn't declare calls of %s", quoted(caller), quoted(callee)), fmt.Sprintf("Evolve it anew with %s among its capabilities.", text))
	}
	for _, list := range with {
		if !slices.ContainsFunc(list[:min(len(list), MaxDeclared)], func(text string) bool {
			c, ok := p.entry(text)
			return ok && covers(&c)
		}) {
			return denied("call: the eval around it doesn't have this call", fmt.Sprintf(`Write {"eval":…,"with":[%s]} in the tool's code.`, text))
		}
	}
	return nil
}

// A Schema is what arguments have to meet besides the types of the parameters: the schema of a
// server's, or one by which the operator permits less.
type Schema interface {
	// Check returns nil, or a fault whose At is the place in the arguments and whose message
	// says why the value there doesn't fit. Text that isn't the program's is quoted in both.
	Check(args *value.Record) *fault.Fault
}

// meets holds arguments of at most so many bytes to the operation's own schema and to the operator's, which write them.
func (o *Operation) meets(args *value.Record, narrow Schema, most int64) *fault.Fault {
	if o.Input == nil && narrow == nil {
		return nil
	}
	switch err := text.CheckRecorded(args, most); err {
	case text.ErrSize:
		return denied(fmt.Sprintf("%s: the arguments have more than %s", o.Name, formatSize(most)), "Send less at once.")
	case text.ErrNesting:
		return &fault.Fault{Kind: fault.EffectFailed, Message: fmt.Sprintf("the arguments of %s can't leave the program: %v", o.Name, err), Hint: example(o)}
	}
	if o.Input != nil {
		if f := o.Input.Check(args); f != nil {
			return &fault.Fault{Kind: fault.EffectFailed, Message: o.Name + ": the server's schema refuses the arguments" + misfit(f), Hint: example(o)}
		}
	}
	if narrow != nil {
		if f := narrow.Check(args); f != nil {
			return denied(o.Name+": the operator permits other arguments only"+misfit(f), "Stay within that; don't retry with the same.")
		}
	}
	return nil
}

// misfit says where and why arguments don't fit.
func misfit(f *fault.Fault) string {
	if f.At == "" {
		return ": " + f.Message
	}
	return " at " + quoted(string(f.At)) + ": " + f.Message
}

// defined is the hashes of the operations that a capability has, of a server's kind; else "".
func (m *Manifest) defined(c *Capability) string {
	var hashes []string
	for i := range m.Operations {
		o := &m.Operations[i]
		if v, _ := m.Verb(o.Verb); m.Server != "" && c.permits(v) {
			hashes = append(hashes, o.Name+"="+o.Hash)
		}
	}
	slices.Sort(hashes)
	return strings.Join(hashes, " ")
}

// subset tells whether every word of a text is one of another.
func subset(part, whole string) bool {
	words := strings.Fields(whole)
	return !slices.ContainsFunc(strings.Fields(part), func(w string) bool { return !slices.Contains(words, w) })
}

// A check is one request on its way through the rules.
type check struct {
	p      *Policy
	m      *Manifest
	o      *Operation
	h      *Held
	verb   Verb
	now    time.Time
	denies []Capability
	// designates is the arguments that say what is acted on: for Path below
	// the grant's root.
	designates []string
	// narrowed is h within the evals around.
	narrowed *Held
}

// designated decides the arguments that say what is acted on.
func (c *check) designated(args *value.Record) (*value.Record, *fault.Fault) {
	for _, param := range c.o.Takes() {
		if !param.Designates || c.m.Server != "" { // such a kind has no scope
			continue
		}
		v, ok := field(args, param.Name)
		if !ok {
			continue
		}
		s, _ := v.(value.Str)
		argument := string(s)
		if param.Prefix {
			if argument == "" && param.Optional { // whatever there is
				args = &value.Record{Fields: slices.DeleteFunc(slices.Clone(args.Fields), func(f value.Field) bool { return f.Key == param.Name })}
				continue
			}
			// All that begins with notes/ begins with notes, too, so that what permits the one permits the other.
			argument = folder(argument)
		}
		if c.m.Algebra == Path {
			rel, f := c.path(&param, argument, args)
			if f != nil {
				return nil, f
			}
			if rel != argument {
				args = withField(args, param.Name, value.Str(rel))
			}
			argument = join(c.h.Within, rel)
			if c.h.Grant.File != "" {
				argument = "."
			}
		} else if err := c.m.Algebra.Covers(c.h.Scope, argument); errors.Is(err, ErrOutside) {
			hint := "Stay within that scope, or evolve a tool that declares another which the operator granted; don't retry."
			if c.m.Algebra == Segments && !strings.Contains(c.h.Scope, "*") {
				hint = fmt.Sprintf("That scope is this one key: evolve a tool that declares %s/** for all keys below it, if the operator granted those; don't retry.", c.h)
			}
			return nil, denied(fmt.Sprintf("%s: %s %s is outside the tool's capability %s", c.o.Name, QuoteName(param.Name), quoted(argument), c.h), hint)
		} else if err != nil {
			return nil, denied(fmt.Sprintf("%s: %s is not a %s: %v", c.o.Name, quoted(argument), QuoteName(param.Name), err), example(c.o))
		}
		c.designates = append(c.designates, argument)
	}
	if len(c.designates) == 0 && c.m.Algebra == Path {
		c.designates = []string{c.h.Within}
	}
	for _, argument := range c.designates {
		if by := c.p.takenAway(c.h.Grant, c.verb, argument); by != nil {
			return nil, denied(fmt.Sprintf("%s: revoked by the operator for the verb %s", c.o.Name, c.verb.Name),
				c.p.restoreHint(c.h.Grant.Shown().String(), by))
		}
		if deniedArgument(c.m.Algebra, c.denies, c.verb, argument) {
			return nil, denied(fmt.Sprintf("%s: denied by the operator for the verb %s", c.o.Name, c.verb.Name),
				"Work without it; no call can change that.")
		}
	}
	if len(c.designates) == 0 && slices.ContainsFunc(c.denies, func(d Capability) bool {
		return d.has(c.verb.Name) && c.m.Algebra.Overlaps(d.Scope, c.h.Scope)
	}) {
		return nil, denied(fmt.Sprintf("%s: the operator denies a part of %s, and this acts on all of it", c.o.Name, c.h), "Work without it; no call can change that.")
	}
	return args, nil
}

// path decides a path: every well-formed one is within the capability, but for
// that of a single file.
func (c *check) path(param *Param, argument string, args *value.Record) (string, *fault.Fault) {
	// A slash at a folder's end is left out where nothing but flags, or a limit of what is read, is beside it. Beside anything
	// else it is refused: what is moved or written to docs/ is meant to go into that folder. So is it for the verb read, which
	// is of files, and for remove without the flag that removes a folder with what is in it: nobody looks whether it is a
	// folder, and a.txt/ would be the file. The pattern */ is of folders alone.
	isFile := c.verb.Name == "read" || c.verb.Name == "remove" && !slices.ContainsFunc(args.Fields, func(f value.Field) bool {
		return value.Force(f.Value) == value.Value(value.Bool(true))
	})
	isMore := slices.ContainsFunc(args.Fields, func(f value.Field) bool {
		is := value.Force(f.Value).Type()
		return f.Key != param.Name && is != value.TypeBool && !(is == value.TypeInt && c.verb.ReadOnly)
	})
	if param.Main && param.Name != "pattern" && !isFile && !isMore {
		argument = folder(argument)
	}
	rel, err := relative(argument)
	if err != nil {
		return "", denied(fmt.Sprintf("%s: %s is not a %s within %s: %v", c.o.Name, quoted(argument), QuoteName(param.Name), c.h, err), example(c.o))
	}
	if file := c.h.Grant.File; file != "" {
		if rel != "." && rel != file && rel != baseOf(c.h.Scope) {
			return "", denied(fmt.Sprintf("%s: %s is outside %s, which is one file", c.o.Name, quoted(argument), c.h),
				fmt.Sprintf("Write %s for it.", quoted(baseOf(c.h.Scope))))
		}
		return file, nil
	}
	return rel, nil
}

// folder is a path without the slash at its end.
func folder(path string) string {
	if path == "/" {
		return path
	}
	return strings.TrimSuffix(path, "/")
}

func baseOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// debit charges everything the request counts for, or nothing.
func (c *check) debit(l *Ledger, r Request, args *value.Record, accounts []account) (*Permit, *fault.Fault) {
	limit := c.h.Limit()
	for _, a := range accounts {
		limit.Max, limit.Timeout = narrower(limit.Max, a.limit.Max), narrower(limit.Timeout, a.limit.Timeout)
	}
	if f := c.content(args, limit.Max, r); f != nil {
		return nil, f
	}
	g := c.h.Grant
	accounts = append(accounts,
		account{g.ID, g.Limit(), g.Shown().String(), ""},
		account{g.ID + "\x00" + c.p.principal + "\x00" + r.Tool + "\x00" + c.h.String(), c.h.Limits, c.h.String(), ""})
	most, short, name := l.debit(accounts, narrower(limit.Max, c.o.Most), r.Among)
	if short != nil {
		f := denied(fmt.Sprintf("%s: the run has used up the %s of %s", c.o.Name, name, short.says),
			"Do less in one run, or ask the operator for a larger limit; don't retry.")
		f.Cause = ErrUsedUp
		return nil, f
	}
	if !r.Again {
		if wait, short := g.takeRate(accounts, c.now, r.From); short != nil {
			l.undo(accounts, most)
			f := denied(fmt.Sprintf("%s: more than %s of %s", c.o.Name, short.limit.Rate, short.says),
				fmt.Sprintf("Do it in a later run, in %s at the earliest.", wait.Round(time.Millisecond)))
			f.Cause = TooOften{g}
			return nil, f
		}
	}
	return &Permit{
		Held: c.narrowed, Operation: c.o, Verb: c.verb.Name, Flags: c.m.FlagsOf(c.o, args), Args: args, Designates: c.designates, Most: most, Short: most < narrower(limit.Max, c.o.Most), Timeout: limit.Timeout, Until: earlier(c.narrowed.Until, g.Until),
		Denies: c.denies, Context: g.Context(), ledger: l, accounts: accounts,
	}, nil
}

// fits reports whether the argument is known to have no more than so many bytes.
func (r *Request) fits(most int64) bool { return r.Size > 0 && r.Size <= most }

// content holds what the arguments bring along against the limit of one content, as far as they are no
// larger than the run's memory: what is, is not performed, whatever is decided.
func (c *check) content(args *value.Record, most int64, r Request) *fault.Fault {
	if r.fits(most) {
		return nil
	}
	end := most
	if r.Most > 0 {
		end = min(most, r.Most)
	}
	var n int64
	for _, f := range args.Fields {
		if p := c.o.param(f.Key); p != nil && !p.Designates && p.Enum == nil && n <= end {
			n += size(value.Force(f.Value), end-n)
		}
	}
	if n > most {
		return denied(fmt.Sprintf("%s: the content has more than the %s that %s allows at once", c.o.Name, formatSize(most), c.h),
			"Send it in parts.")
	}
	return nil
}
