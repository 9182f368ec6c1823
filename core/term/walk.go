package term

import (
	"slices"
)

// Applied returns the places of the variables that are applied in t.
func Applied(t Term) map[int]bool {
	applied := map[int]bool{}
	var walk func(t Term) bool
	walk = func(t Term) bool {
		if a, ok := t.(*App); ok {
			if v, ok := a.Func.(*Var); ok {
				applied[v.Pos()] = true
			}
		}
		return Children(t, walk)
	}
	walk(t)
	return applied
}

// Children calls visit for each operand of t, in order, until one call returns
// false; it returns whether none did. Quoted code is an operand too, and so is
// the list that stands beside eval.
func Children(t Term, visit func(Term) bool) bool {
	switch t := t.(type) {
	case *Lam:
		return visit(t.Body)
	case *LetRec:
		for i := range t.Funcs {
			if !visit(t.Funcs[i].Lam) {
				return false
			}
		}
		return visit(t.Body)
	case *App:
		return visit(t.Func) && visit(t.Arg)
	case *If:
		return visit(t.Cond) && visit(t.Then) && visit(t.Else)
	case *List:
		for _, item := range t.Items {
			if !visit(item) {
				return false
			}
		}
	case *Record:
		for i := range t.Fields {
			if !visit(t.Fields[i].Value) {
				return false
			}
		}
	case *Quote:
		return visit(t.Body)
	case *Continue:
		return visit(t.Input)
	case *Effect:
		return visit(t.Arg)
	case *Prim:
		for _, a := range t.Args {
			if !visit(a) {
				return false
			}
		}
	}
	return true
}

// LooseContinues visits every continue in the code of a tool that is not in tail
// position: in the tool's outermost lambdas, also behind lets, then in branches of if and in
// the bodies of lambdas applied at once. free is how many free variables the code has: with one, code
// that is no lambda is the body of a lambda.
func LooseContinues(t Term, free int, visit func(*Continue)) {
	for lets := free == 0; lets; {
		switch u := t.(type) {
		case *LetRec:
			for _, f := range u.Funcs {
				looseContinues(f.Lam, false, visit)
			}
			t = u.Body
		case *App:
			var l *Lam
			if l, lets = u.Func.(*Lam); lets {
				looseContinues(u.Arg, false, visit)
				t = l.Body
			}
		default:
			lets = false
		}
	}
	lam, isLam := t.(*Lam)
	for ; isLam && lam != nil; lam, _ = t.(*Lam) {
		t = lam.Body
	}
	looseContinues(t, isLam || free == 1, visit)
}

// looseContinues walks a term outside quoted code.
func looseContinues(t Term, tail bool, visit func(*Continue)) {
	switch t := t.(type) {
	case *Quote:
		return
	case *Continue:
		if !tail {
			visit(t)
		}
	case *App:
		f, n := t.Func, 1
		for inner, ok := f.(*App); ok; inner, ok = f.(*App) {
			f, n = inner.Func, n+1
		}
		applied := false
		for l, ok := f.(*Lam); ok && n > 0; l, ok = f.(*Lam) {
			f, applied, n = l.Body, true, n-1
		}
		looseContinues(f, tail && applied && n == 0, visit)
		for t != nil {
			looseContinues(t.Arg, false, visit)
			t, _ = t.Func.(*App)
		}
		return
	case *LetRec:
		for _, f := range t.Funcs {
			looseContinues(f.Lam, false, visit)
		}
		looseContinues(t.Body, tail, visit)
		return
	case *If:
		looseContinues(t.Cond, false, visit)
		looseContinues(t.Then, tail, visit)
		looseContinues(t.Else, tail, visit)
		return
	}
	Children(t, func(child Term) bool {
		looseContinues(child, false, visit)
		return true
	})
}

// Relocate returns a copy of t with every node, quoted ones too, at another place.
func Relocate(t Term, place func(At) At) Term {
	at := place(At(t.Pos()))
	all := func(ts []Term) []Term {
		out := make([]Term, len(ts))
		for i, t := range ts {
			out[i] = Relocate(t, place)
		}
		return out
	}
	switch t := t.(type) {
	case *Int:
		return &Int{at, t.Value}
	case *Big:
		return &Big{at, t.Value}
	case *Dec:
		c := *t
		c.At = at
		return &c
	case *Bool:
		return &Bool{at, t.Value}
	case *Str:
		return &Str{at, t.Value}
	case *Unit:
		return &Unit{at}
	case *Var:
		return &Var{at, t.Name}
	case *Lam:
		return &Lam{at, t.Param, Relocate(t.Body, place)}
	case *LetRec:
		funcs := make([]Func, len(t.Funcs))
		for i, f := range t.Funcs {
			funcs[i] = Func{f.Name, Relocate(f.Lam, place).(*Lam)}
		}
		return &LetRec{at, funcs, Relocate(t.Body, place)}
	case *App:
		return &App{at, Relocate(t.Func, place), Relocate(t.Arg, place)}
	case *If:
		return &If{at, Relocate(t.Cond, place), Relocate(t.Then, place), Relocate(t.Else, place)}
	case *List:
		return &List{at, all(t.Items)}
	case *Record:
		fields := make([]Field, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = Field{f.Key, Relocate(f.Value, place)}
		}
		return &Record{at, fields}
	case *Quote:
		return &Quote{at, Relocate(t.Body, place)}
	case *CodeOf:
		return &CodeOf{at, t.Name}
	case *Self:
		return &Self{at}
	case *Continue:
		return &Continue{at, Relocate(t.Input, place)}
	case *Effect:
		return &Effect{at, t.Op, t.In, Relocate(t.Arg, place)}
	case *Prim:
		return &Prim{at, t.ID, all(t.Args)}
	}
	return t
}

// Free gives the variables that nothing in the term binds, each once, in the
// order of their first use. Quoted code doesn't count: it is data until it is
// evaluated.
func Free(t Term) []string {
	var w freeWalk
	w.walk(t)
	return w.free
}

// IsLet reports whether an application is of a literal lambda, directly or as
// the last of several arguments that its directly nested lambdas take: a let,
// which nothing has to be returned to.
func IsLet(n *App) bool {
	args := 1
	f := n.Func
	for app, ok := f.(*App); ok; app, ok = f.(*App) {
		f = app.Func
		args++
	}
	for ; args > 0; args-- {
		lam, ok := f.(*Lam)
		if !ok {
			return false
		}
		f = lam.Body
	}
	return true
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

// AsFunction makes a tool's code that is no lambda and has exactly one free variable the
// function of that variable.
func AsFunction(t Term) Term {
	if _, ok := t.(*Lam); ok {
		return t
	}
	if free := Free(t); len(free) == 1 {
		return &Lam{At: At(t.Pos()), Param: free[0], Body: t}
	}
	return t
}
