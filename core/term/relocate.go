package term

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
