package prim

// predecessor is the order in which the program that this one continues tried
// the keys of an object. A trailing ? marks those whose wrong shape let the
// next key have its turn.
var predecessor = []string{
	"var?", "lam", "app",
	"add?", "sub?", "mul?", "div?", "mod?", "eq?", "lt?", "gt?", "lte?", "gte?", "and?", "or?",
	"not", "if", "nil", "cons", "head", "tail", "isEmpty", "length", "pair", "fst", "snd", "concat?",
	"self", "continue", "fold", "quote", "eval", "code_of",
}

// NewRank is the smallest [Row.Rank] of a row the predecessor didn't have.
// Such a row stands alone: a key beside it is refused.
const NewRank = 1000

func rank(r *Row) {
	r.Rank = NewRank
	for i, name := range predecessor {
		falls := name[len(name)-1] == '?'
		if falls {
			name = name[:len(name)-1]
		}
		if name == r.Name {
			r.Rank, r.Falls = i, falls
		}
	}
}
