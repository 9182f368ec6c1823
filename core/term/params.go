package term

// Params returns the names of the parameters of the function that a term gives: those of
// directly nested lambdas, also where lets are around them, or of one that a let has bound to
// the name that the term comes to. It is nil where the form of the term doesn't show a function.
func Params(t Term) (names []string) {
	for l := Main(t); l != nil; l, _ = l.Body.(*Lam) {
		names = append(names, l.Param)
	}
	return names
}

// Main returns the function whose parameters [Params] names, nil where there is none.
func Main(t Term) *Lam {
	var lets *bound
	for {
		switch u := t.(type) {
		case *Lam:
			return u
		case *App:
			l, ok := u.Func.(*Lam)
			if !ok {
				return nil
			}
			lets, t = &bound{l.Param, u.Arg, lets}, l.Body
		case *LetRec:
			for _, f := range u.Funcs {
				lets = &bound{f.Name, f.Lam, lets}
			}
			t = u.Body
		case *Var:
			for lets != nil && lets.name != u.Name {
				lets = lets.around
			}
			if lets == nil {
				return nil
			}
			t, lets = lets.value, lets.around
		default:
			return nil
		}
	}
}

// A bound is what a let binds its name to, with the lets around that.
type bound struct {
	name   string
	value  Term
	around *bound
}
