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
	case op == "*" || op == "call:*":
		return op == "*" || kind == "call"
	case kind != opKind:
		return false
	case kind == "call":
		return !scoped || scope == tool
	case kind == "fetch":
		return true // its verbs are the methods of requests
	}
	return !some || slices.Contains(strings.Split(verbs, ","), verb)
}

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
			return !e.Inert && e.Via == "" && (e.Op != "*" || permits(e.With, "*")) && covers(text, e.Op)
		}) {
			unused = append(unused, text)
		}
	}
	return unused
}
