package term

// Params returns the names of the parameters of the function that a term gives: those of
// directly nested lambdas, also where lets are around them, or of one that a let has bound to
// the name that the term comes to. It is nil where the form of the term doesn't show a function.
func Params(t Term) []string {
	var lets *bound
	for {
		switch u := t.(type) {
		case *Lam:
			n := 0
			for l, ok := u, true; ok; l, ok = l.Body.(*Lam) {
				n++
			}
			names := make([]string, n)
			for i := range names {
				l := t.(*Lam)
				names[i], t = l.Param, l.Body
			}
			return names
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
