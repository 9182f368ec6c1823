package caps

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

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
	for i := range c.o.Params {
		param := &c.o.Params[i]
		if !param.Designates || c.m.Server != "" { // such a kind has no scope
			continue
		}
		v, ok := field(args, param.Name)
		if !ok {
			continue
		}
		s, _ := v.(value.Str)
		argument := string(s)
		if c.m.Algebra == Path {
			rel, f := c.path(param, argument)
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
			return nil, denied(fmt.Sprintf("%s: %s %s is outside the tool's capability %s", c.o.Name, QuoteName(param.Name), quoted(argument), c.h),
				"Stay within that scope, or evolve a tool that declares another which the operator granted; don't retry.")
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
func (c *check) path(param *Param, argument string) (string, *fault.Fault) {
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

func baseOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// debit charges everything the request counts for, or nothing.
func (c *check) debit(l *Ledger, r Request, args *value.Record, accounts []account) (*Permit, *fault.Fault) {
	limit := c.h.Limit()
	for _, a := range accounts {
		limit.Max, limit.Timeout = narrower(limit.Max, a.limit.Max), narrower(limit.Timeout, a.limit.Timeout)
	}
	if f := c.content(args, limit.Max, r.MaxBytes); f != nil {
		return nil, f
	}
	g := c.h.Grant
	accounts = append(accounts,
		account{g.ID, g.Limit(), g.Shown().String()},
		account{g.ID + "\x00" + r.Tool + "\x00" + c.h.String(), c.h.Limits, c.h.String()})
	most, short, name := l.debit(accounts, narrower(limit.Max, c.o.Most), r.Among)
	if short != nil {
		return nil, denied(fmt.Sprintf("%s: the run has used up the %s of %s", c.o.Name, name, short.says),
			"Do less in one run, or ask the operator for a larger limit; don't retry.")
	}
	if !r.Again {
		if wait, short := g.takeRate(accounts, c.now); short != nil {
			l.undo(accounts, most)
			return nil, denied(fmt.Sprintf("%s: more than %s of %s", c.o.Name, short.limit.Rate, short.says),
				fmt.Sprintf("Do it in a later run, in %s at the earliest.", wait.Round(time.Millisecond)))
		}
	}
	return &Permit{
		Held: c.narrowed, Operation: c.o, Verb: c.verb.Name, Flags: c.verb.Flags, Args: args, Designates: c.designates, Most: most, Timeout: limit.Timeout,
		Denies: c.denies, Context: g.Context(), ledger: l, accounts: accounts,
	}, nil
}

// content holds what the arguments bring along against the limit of one content,
// as far as it goes through them: see [Request.MaxBytes].
func (c *check) content(args *value.Record, most, maxBytes int64) *fault.Fault {
	end := most
	if maxBytes > 0 {
		end = min(most, maxBytes)
	}
	var n int64
	for _, f := range args.Fields {
		if p, ok := c.o.param(f.Key); ok && !p.Designates && p.Enum == nil && n <= end {
			n += size(f.Value, end-n)
		}
		if n > most {
			return denied(fmt.Sprintf("%s: the content has more than the %s that %s allows at once", c.o.Name, formatSize(most), c.h),
				"Send it in parts.")
		}
	}
	return nil
}
