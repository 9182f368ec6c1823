package term

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
