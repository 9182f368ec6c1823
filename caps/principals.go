package caps

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// An Allowance is what the operator allows everybody, or one principal besides.
type Allowance struct {
	Grants  []*Grant
	Denies  []Capability
	Secrets []*Secret
	// Confirms is the requests that are performed as part of an approved plan only.
	Confirms []Requests
}

// Principals is what the operator allows each of several principals: what holds
// for all of them, and what holds for one alone. Each has a [Policy] of its own, in
// which there is no trace of what others have: a grant that all have is one object
// for each, with the same root and the same rates, and can be taken back from one.
// It is safe for concurrent use.
type Principals struct {
	kinds Kinds
	now   func() time.Time
	// Dir is the folder that relative denials are of, "" for the working directory.
	Dir string

	mu   sync.Mutex
	all  Allowance
	own  map[string]Allowance
	open map[*Policy]struct{}
	// vaults remembers for each principal with an allowance, and for all others
	// under "", every secret that was bound since the start.
	vaults map[string]*Vault
}

// NewPrincipals makes one that allows nothing to anybody. now is the clock; nil is
// [time.Now].
func NewPrincipals(kinds Kinds, now func() time.Time) *Principals {
	return &Principals{kinds: kinds, now: now, open: map[*Policy]struct{}{}, vaults: map[string]*Vault{"": {}}}
}

// mostPrincipal is the bytes of a principal's name.
const mostPrincipal = 300

// CheckPrincipal refuses what can't be the name of a principal: nothing, too much, and
// what a person can't see in it. Names are compared byte by byte.
func CheckPrincipal(name string) error {
	switch {
	case name == "":
		return errors.New("a principal has a name")
	case len(name) > mostPrincipal:
		return fmt.Errorf("the name of a principal has at most %d bytes", mostPrincipal)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool {
		return r == utf8.RuneError || r != ' ' && !unicode.IsGraphic(r) || unicode.IsSpace(r) && r != ' '
	}):
		return fmt.Errorf("%s can't be the name of a principal: it has a character that nobody sees", quoted(name))
	}
	return nil
}

// Open gives a principal's policy, "" for whoever has no name. It follows what
// [Principals.Replace] changes until [Principals.Forget].
func (p *Principals) Open(name string) *Policy {
	p.mu.Lock()
	defer p.mu.Unlock()
	policy := NewPolicy(p.kinds, p.now)
	policy.principal = name
	vault := p.vaults[""]
	if v, ok := p.vaults[name]; ok {
		vault = v
	}
	policy.secrets.follow(vault)
	// What was checked when it was replaced is right, and nothing lent is closed.
	_ = p.fill(policy)
	p.open[policy] = struct{}{}
	return policy
}

// Forget ends a policy: what is under way under it ends.
func (p *Principals) Forget(policy *Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, policy)
	_ = policy.Close()
}

// fill gives a policy what its principal has now; p.mu is held.
func (p *Principals) fill(policy *Policy) error {
	a := p.of(policy.principal)
	lent := make([]*Grant, len(a.Grants))
	for i, g := range a.Grants {
		lent[i] = g.lend()
	}
	policy.secrets.Replace(a.Secrets)
	policy.Confirm(a.Confirms)
	return policy.ReplaceIn(p.Dir, lent, a.Denies)
}

// of is all that a principal has; p.mu is held.
func (p *Principals) of(name string) Allowance {
	own := p.own[name]
	return Allowance{
		Grants: slices.Concat(p.all.Grants, own.Grants), Denies: slices.Concat(p.all.Denies, own.Denies),
		Secrets: slices.Concat(p.all.Secrets, own.Secrets), Confirms: slices.Concat(p.all.Confirms, own.Confirms),
	}
}

// Replace puts other allowances in the place of all, in every policy that is open.
// A grant whose identity is there already, for the same principal, stays the object it
// is, and the new one is closed; one that is gone is revoked where it was lent, and
// closed. What everybody has and a principal's own allowance says again is left out
// there. On an error nothing has changed and the grants are still the caller's.
func (p *Principals) Replace(all Allowance, own map[string]Allowance) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.check("", all, Allowance{}); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if err := CheckPrincipal(name); err != nil {
			return err
		}
		if err := p.check(name, all, own[name]); err != nil {
			return err
		}
	}
	former := p.grants()
	var surplus []*Grant
	keep := func(old, now []*Grant, shared []*Grant) (list []*Grant) {
		for _, g := range now {
			is := func(other *Grant) bool { return other.ID == g.ID || other.ID == g.alike }
			if i := slices.IndexFunc(old, func(other *Grant) bool { return other.ID == g.ID }); slices.ContainsFunc(slices.Concat(shared, list), is) {
				surplus = append(surplus, g)
			} else if i >= 0 && old[i] != g {
				surplus, list = append(surplus, g), append(list, old[i])
			} else {
				list = append(list, g)
			}
		}
		return list
	}
	next := Allowance{Grants: keep(p.all.Grants, all.Grants, nil), Denies: all.Denies, Secrets: all.Secrets, Confirms: all.Confirms}
	owned := make(map[string]Allowance, len(own))
	for name, a := range own {
		owned[name] = Allowance{Grants: keep(p.own[name].Grants, a.Grants, next.Grants), Denies: a.Denies, Secrets: a.Secrets, Confirms: a.Confirms}
	}
	p.all, p.own = next, owned
	p.remember()
	var errs []error
	for policy := range p.open {
		errs = append(errs, p.fill(policy))
	}
	stay := p.grants()
	for _, g := range slices.Concat(former, surplus) {
		if !slices.Contains(stay, g) {
			errs = append(errs, g.Close())
		}
	}
	return errors.Join(errs...)
}

// check refuses what can't stand side by side in one policy.
func (p *Principals) check(name string, all, own Allowance) error {
	prefix := ""
	if name != "" {
		prefix = "the principal " + quoted(name) + ": "
	}
	policy := NewPolicy(p.kinds, p.now)
	for _, c := range slices.Concat(all.Denies, own.Denies) {
		if _, err := policy.denial(p.Dir, c); err != nil {
			return fmt.Errorf("%s%w", prefix, err)
		}
	}
	var seen []*Grant
	for _, g := range slices.Concat(all.Grants, own.Grants) {
		if slices.ContainsFunc(seen, func(other *Grant) bool { return other.ID == g.ID || other.ID == g.alike }) {
			continue
		}
		if err := collision(seen, g); err != nil {
			return fmt.Errorf("%s%w", prefix, err)
		}
		for _, other := range seen {
			if g.Kind == other.Kind && g.Asked == other.Asked && g.Capability.String() == other.Capability.String() {
				return fmt.Errorf("%s%s is granted to everybody, and means something else here", prefix, g.Capability)
			}
		}
		seen = append(seen, g)
	}
	for _, s := range own.Secrets {
		if slices.ContainsFunc(all.Secrets, func(other *Secret) bool { return other.Name == s.Name }) {
			return fmt.Errorf("%ssecret %s: it is bound for everybody already", prefix, quoted(s.Name))
		}
	}
	return nil
}

// remember keeps the secrets that are bound now, to be hidden later; p.mu is held.
func (p *Principals) remember() {
	for name := range p.own {
		if p.vaults[name] == nil {
			p.vaults[name] = new(Vault)
			p.vaults[name].follow(p.vaults[""])
		}
	}
	for name, v := range p.vaults {
		v.Replace(p.of(name).Secrets)
	}
}

// Names is the principals that have something of their own said of them.
func (p *Principals) Names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.own))
}

// Own is what a principal has besides what everybody has, not to be changed.
func (p *Principals) Own(name string) Allowance {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.own[name]
}

// Grants is those of everybody, and then those of each principal.
func (p *Principals) Grants() []*Grant {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.grants()
}

func (p *Principals) grants() []*Grant {
	list := slices.Clone(p.all.Grants)
	for _, name := range slices.Sorted(maps.Keys(p.own)) {
		list = append(list, p.own[name].Grants...)
	}
	return list
}

// Close revokes every grant, wherever it was lent, and closes what it holds open.
func (p *Principals) Close() error { return p.Replace(Allowance{}, nil) }

// A Ledger counts what one run has used of each limit, by the identity of the
// grant, so that a limit is the same limit whichever tool it is reached
// through. It is safe for concurrent use.
type Ledger struct {
	mu   sync.Mutex
	used map[string]*usage
}

// usage is what was used. Bytes that are reserved count as used; open is the
// requests they are reserved for.
type usage struct{ calls, bytes, open int64 }

// crowd is among how many what is left is divided while others are under way
// and nobody said how many there will be.
const crowd = 64

// NewLedger makes the ledger of a run.
func NewLedger() *Ledger { return &Ledger{used: map[string]*usage{}} }

// An account is one limit that a request is debited to.
type account struct {
	key   string
	limit Limits
	// says names the limit in a denial.
	says string
	// of is the tool that has eval write entries, of which code may have any number, after the principal and a NUL; "": it is of no such entry.
	of string
}

// debit charges a call and reserves up to most bytes in every account, or in
// none. among is as in [Request.Among]. It gives
// what was reserved, or the account that is used up, with the limit's name.
func (l *Ledger) debit(accounts []account, most int64, among int) (reserved int64, short *account, limit string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range accounts {
		a := &accounts[i]
		u := l.of(a.key)
		if a.limit.Calls > 0 && u.calls >= a.limit.Calls {
			return 0, a, "calls"
		}
		if a.limit.Bytes > 0 {
			left := a.limit.Bytes - u.bytes
			if left <= 0 {
				return 0, a, "bytes"
			}
			share := int64(among)
			if share < 1 && u.open > 0 {
				share = crowd
			}
			most = min(most, max(1, left/max(1, share)))
		}
	}
	for _, a := range accounts {
		u := l.of(a.key)
		u.calls++
		u.bytes += most
		u.open++
	}
	return most, nil, ""
}

// settle gives back what was reserved and not used.
func (l *Ledger) settle(accounts []account, reserved, used int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range accounts {
		u := l.of(a.key)
		u.bytes += used - reserved
		u.open--
	}
}

// undo takes a debit back: the request wasn't permitted after all.
func (l *Ledger) undo(accounts []account, reserved int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range accounts {
		u := l.of(a.key)
		u.calls--
		u.bytes -= reserved
		u.open--
	}
}

func (l *Ledger) of(key string) *usage {
	u, ok := l.used[key]
	if !ok {
		u = &usage{}
		l.used[key] = u
	}
	return u
}

// A bucket holds tokens: it is full at first and fills at its rate.
type bucket struct {
	rate   Rate
	tokens float64
	last   time.Time
	of     string // as the account has it
}

// take takes a token, or says how long it is until there is one.
func (b *bucket) take(now time.Time) (wait time.Duration) {
	if passed := now.Sub(b.last); passed > 0 {
		b.tokens = min(float64(b.rate.Calls), b.tokens+float64(passed)*float64(b.rate.Calls)/float64(b.rate.Per))
		b.last = now
	}
	if b.tokens < 1 {
		return time.Duration((1 - b.tokens) * float64(b.rate.Per) / float64(b.rate.Calls))
	}
	b.tokens--
	return 0
}

// A rates is the buckets of one grant, which all that it was lent to take from.
type rates struct {
	mu      sync.Mutex
	buckets map[string]*bucket
	entries map[string]int // how many of them are of entries, by principals and their tools
	swept   time.Time      // when full ones were last looked for
	takers  uint32         // what came from any who may have changed them
}

// takeRate takes a token from the bucket of each account of a grant that has a
// rate, or from none; from is where the request comes from.
func (g *Grant) takeRate(accounts []account, now time.Time, from uint32) (wait time.Duration, short *account) {
	g.rates.mu.Lock()
	defer g.rates.mu.Unlock()
	taken := make([]*bucket, 0, len(accounts))
	for i := range accounts {
		a := &accounts[i]
		if a.limit.Rate.Per == 0 {
			continue
		}
		g.rates.takers |= from
		b, wait := g.rates.bucket(a, now), a.limit.Rate.Per
		if b != nil {
			wait = b.take(now)
		}
		if wait > 0 {
			for _, b := range taken {
				b.tokens++
			}
			return wait, a
		}
		taken = append(taken, b)
	}
	return 0, nil
}

// Takers is where the requests came from that took from the grant's rates, or wanted to, by whomever it is held: the bits that they
// gave.
func (g *Grant) Takers() uint32 {
	g.rates.mu.Lock()
	defer g.rates.mu.Unlock()
	return g.rates.takers
}

// mostBuckets bounds the buckets of one grant that are of a principal's entries, and mostOfTool those of one tool; full ones can
// be forgotten, which is looked for once a second.
const mostBuckets, mostOfTool = 10_000, 1000

// bucket is that of an account; nil: there is room for no more of those of which code may write any number.
func (r *rates) bucket(a *account, now time.Time) *bucket {
	key := a.key + "\x00" + a.limit.Rate.String()
	if b, ok := r.buckets[key]; ok {
		return b
	}
	if r.buckets == nil {
		r.buckets, r.entries = map[string]*bucket{}, map[string]int{}
	}
	principal, _, _ := strings.Cut(a.of, "\x00")
	full := func() bool {
		return a.of != "" && (r.entries[a.of] >= mostOfTool || r.entries[principal] >= mostBuckets)
	}
	if (full() || len(r.buckets) >= mostBuckets) && now.Sub(r.swept) >= time.Second {
		r.swept = now
		maps.DeleteFunc(r.buckets, func(_ string, b *bucket) bool {
			old := now.Sub(b.last) >= b.rate.Per
			if old {
				r.counts(b.of, -1)
			}
			return old
		})
	}
	if full() {
		return nil
	}
	r.counts(a.of, 1)
	b := &bucket{rate: a.limit.Rate, tokens: float64(a.limit.Rate.Calls), last: now, of: a.of}
	r.buckets[key] = b
	return b
}

// counts counts a bucket of an entry for its tool and principal.
func (r *rates) counts(of string, n int) {
	if of == "" {
		return
	}
	principal, _, _ := strings.Cut(of, "\x00")
	for _, whose := range []string{of, principal} {
		if r.entries[whose] += n; r.entries[whose] == 0 {
			delete(r.entries, whose)
		}
	}
}
