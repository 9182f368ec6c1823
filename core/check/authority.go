package check

import (
	"slices"
	"strings"
)

// permits reports whether each list of capabilities could permit an operation:
// whether one of it is of the operation's kind and verb, whatever its scope.
func permits(with [][]string, op string) bool {
	for _, list := range with {
		if !slices.ContainsFunc(list, func(text string) bool { return covers(text, op) }) {
			return false
		}
	}
	return true
}

// covers reports whether a capability, "fs.read,list:./in", could permit an
// operation, "fs.read", "call:NAME" or "*".
func covers(text, op string) bool {
	name, scope, scoped := strings.Cut(text, ":")
	kind, verbs, some := strings.Cut(name, ".")
	opName, tool, _ := strings.Cut(op, ":")
	opKind, verb, _ := strings.Cut(opName, ".")
	switch {
	case op == "*":
		return true
	case kind != opKind:
		return false
	case kind == "call":
		return tool == "*" || !scoped || scope == tool || !literal(scope)
	case kind == "fetch" || verb == "*":
		return true // fetch's verbs are the methods of requests
	}
	return !some || slices.Contains(strings.Split(verbs, ","), verb)
}

// literal reports whether a scope of calls is one tool's name as it is written.
func literal(scope string) bool { return !strings.ContainsAny(scope, "*,%") }

// allowed is the operations that lists of capabilities permit together: "fs.read",
// "fs.*" for all of a kind, "call:NAME", or "call:*".
func allowed(with [][]string) []string {
	var ops []string
	for _, list := range with {
		for _, text := range list {
			name, scope, scoped := strings.Cut(text, ":")
			kind, verbs, some := strings.Cut(name, ".")
			switch {
			case kind == "call" && scoped && literal(scope):
				ops = append(ops, "call:"+scope)
			case kind == "call":
				ops = append(ops, "call:*")
			case kind == "fetch" || !some:
				ops = append(ops, kind+".*")
			default:
				for verb := range strings.SplitSeq(verbs, ",") {
					ops = append(ops, kind+"."+verb)
				}
			}
		}
	}
	slices.Sort(ops)
	ops = slices.DeleteFunc(slices.Compact(ops), func(op string) bool {
		if kind, all := strings.CutSuffix(op, ".*"); all {
			return slices.ContainsFunc(with, func(list []string) bool { return !whole(list, kind) })
		}
		return !permits(with, op)
	})
	return narrowest(ops)
}

// whole reports whether a list permits all of a kind.
func whole(list []string, kind string) bool {
	return slices.ContainsFunc(list, func(text string) bool {
		name, _, _ := strings.Cut(text, ":")
		return name == kind || kind == "fetch" && strings.HasPrefix(name, "fetch.")
	})
}

// narrowest leaves out of sorted operations, in place, those that others stand for.
func narrowest(ops []string) []string {
	kept := ops[:0]
	wide := map[string]bool{}
	for _, op := range ops {
		if kind, all := strings.CutSuffix(op, "*"); all {
			wide[kind] = true // "fs." or "call:"
		}
	}
	for _, op := range ops {
		if kind := op[:strings.IndexAny(op, ".:")+1]; !wide[kind] || op == kind+"*" {
			kept = append(kept, op)
		}
	}
	return kept
}

// May reports whether it is an operation ("fs.read", "call:NAME") that it can have
// performed.
func (e Effect) May(op string) bool {
	switch {
	case e.Inert:
		return false
	case e.Op == "*":
		return permits(e.With, op)
	}
	return e.Op == op || e.Op == "call:*" && strings.HasPrefix(op, "call:")
}

// Ops is the operations that it stands for, sorted: one, or of code that isn't known
// those that the evals around permit, "fs.*" for all of a kind; nil where it may be
// any.
func (e Effect) Ops() []string {
	switch {
	case e.Op != "*":
		return []string{e.Op}
	case len(e.With) == 0:
		return nil
	}
	return allowed(e.With)
}

// Any reports whether it may be any operation.
func (e Effect) Any() bool { return e.Op == "*" && len(e.With) == 0 && !e.Inert }

// Least is the capabilities that would do, as far as the code says: the
// operations that it can have performed itself, "fs.read:./in" where the code
// names a capability, "call:NAME" for calls, and for code that isn't known what
// the evals around it permit. Where Open is set it may take more.
func (r *Report) Least() []string {
	var least []string
	for _, e := range r.Effects {
		switch {
		case e.Inert || e.Via != "" || e.Op == "call:*":
		case e.Op == "*":
			for _, list := range e.With {
				least = append(least, list...)
			}
		case e.In != "":
			least = append(least, e.Op+":"+e.In)
		default:
			least = append(least, e.Op)
		}
	}
	slices.Sort(least)
	return slices.Compact(least)
}

// Unused is those of the declared capabilities by which nothing can be
// performed: no operation of their kind and verbs is reachable.
func (r *Report) Unused(declared []string) []string {
	var unused []string
	for _, text := range declared {
		if !slices.ContainsFunc(r.Effects, func(e Effect) bool {
			if e.Inert || e.Via != "" {
				return false
			}
			return e.Any() || slices.ContainsFunc(e.Ops(), func(op string) bool { return covers(text, op) })
		}) {
			unused = append(unused, text)
		}
	}
	return unused
}
