package term

import "slices"

// Free gives the variables that nothing in the term binds, each once, in the
// order of their first use. Quoted code doesn't count: it is data until it is
// evaluated.
func Free(t Term) []string {
	var w freeWalk
	w.walk(t)
	return w.free
}

type freeWalk struct {
	bound map[string]int // how many binders of the name are around
	free  []string
	seen  map[string]struct{}
}

func (w *freeWalk) walk(t Term) bool {
	switch t := t.(type) {
	case *Var:
		if w.bound[t.Name] > 0 {
			return true
		}
		if _, ok := w.seen[t.Name]; !ok {
			if w.seen == nil {
				w.seen = map[string]struct{}{}
			}
			w.seen[t.Name] = struct{}{}
			w.free = append(w.free, t.Name)
		}
	case *Lam:
		if w.bound == nil {
			w.bound = map[string]int{}
		}
		w.bound[t.Param]++
		w.walk(t.Body)
		w.bound[t.Param]--
	case *LetRec:
		if w.bound == nil {
			w.bound = map[string]int{}
		}
		for _, f := range t.Funcs {
			w.bound[f.Name]++
		}
		Children(t, w.walk)
		for _, f := range t.Funcs {
			w.bound[f.Name]--
		}
	case *Quote:
	default:
		Children(t, w.walk)
	}
	return true
}

// Effects gives the operations of capabilities a term asks for outside quoted
// code, each once, sorted.
func Effects(t Term) []string {
	var ops []string
	var walk func(t Term) bool
	walk = func(t Term) bool {
		switch t := t.(type) {
		case *Effect:
			ops = append(ops, t.Op)
		case *Quote:
			return true
		}
		return Children(t, walk)
	}
	walk(t)
	slices.Sort(ops)
	return slices.Compact(ops)
}
