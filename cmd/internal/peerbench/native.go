package main

// The programs written by hand in Go: the floor the others are measured
// against, and the reference the tests compare results with.
//
// They keep the programs' algorithms under the peers' rules: recursion where
// the program recurses without a tail call, a fold with a function argument
// where the program folds, slices for lists, and a heap cell per cons only
// where tails are shared. Pairs are structs by value, as anyone would write it
// in Go. They are the only contestant that wraps around at 64 bits.

// pair is a PIF pair whose parts have known types.
type pair[A, B any] struct {
	fst A
	snd B
}

// native holds the programs by id; the arguments are those of [program.args].
var native = map[string]func(a []int64) int64{
	"ack":         func(a []int64) int64 { return ack(a[0], a[1]) },
	"church":      func(a []int64) int64 { return church(a[0]) },
	"collatzloop": func(a []int64) int64 { return collatzLoop(a[0]) },
	"compose":     func(a []int64) int64 { return compose(a[0]) },
	"deep":        func(a []int64) int64 { return deep(a[0]) },
	"evenodd":     func(a []int64) int64 { return evenOdd(a[0]) },
	"fib":         func(a []int64) int64 { return fib(a[0]) },
	"foldsum":     func(a []int64) int64 { return foldSum(a[0]) },
	"hanoi":       func(a []int64) int64 { return hanoi(a[0]) },
	"mapfilter":   func(a []int64) int64 { return mapFilter(a[0]) },
	"nqueens":     func(a []int64) int64 { return nqueens(a[0]) },
	"qsort":       func(a []int64) int64 { return quicksort(a[0]) },
	"sieve":       func(a []int64) int64 { return sieve(a[0]) },
	"square":      func(a []int64) int64 { return square(a[0]) },
	"strcat":      func(a []int64) int64 { return strcat(a[0]) },
	"tak":         func(a []int64) int64 { return tak(a[0], a[0]-6, a[0]-12) },
	"trees":       func(a []int64) int64 { return trees(a[0]) },
}

func fold[A any](f func(A, int64) A, acc A, xs []int64) A {
	for _, x := range xs {
		acc = f(acc, x)
	}
	return acc
}

func push(xs []int64, x int64) []int64 { return append(xs, x) }

// upTo is the list [1..n].
func upTo(n int64) []int64 {
	var xs []int64
	for i := int64(1); i <= n; i++ {
		xs = append(xs, i)
	}
	return xs
}

func mapList(f func(int64) int64, xs []int64) []int64 {
	var out []int64
	for _, x := range xs {
		out = append(out, f(x))
	}
	return out
}

func filter(f func(int64) bool, xs []int64) []int64 {
	var out []int64
	for _, x := range xs {
		if f(x) {
			out = append(out, x)
		}
	}
	return out
}

func square(x int64) int64 { return x * x }

func fib(n int64) int64 {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func tak(x, y, z int64) int64 {
	if y >= x {
		return z
	}
	return tak(tak(x-1, y, z), tak(y-1, z, x), tak(z-1, x, y))
}

func ack(m, n int64) int64 {
	if m == 0 {
		return n + 1
	}
	if n == 0 {
		return ack(m-1, 1)
	}
	return ack(m-1, ack(m, n-1))
}

func deep(n int64) int64 {
	if n == 0 {
		return 0
	}
	return n + deep(n-1)
}

func foldSum(n int64) int64 {
	return fold(func(a, x int64) int64 { return a + x }, 0, upTo(n))
}

func quicksort(n int64) int64 {
	var xs []int64
	s := int64(42)
	for range n {
		s = (s*4096 + 150889) % 714025
		xs = append(xs, s)
	}
	return fold(func(a, x int64) int64 { return (a*31 + x) % 1000003 }, 0, sortList(xs))
}

func sortList(xs []int64) []int64 {
	if len(xs) == 0 {
		return nil
	}
	pv := xs[0]
	type sides = pair[[]int64, []int64]
	q := fold(func(a sides, x int64) sides {
		if x < pv {
			return sides{append(a.fst, x), a.snd}
		}
		return sides{a.fst, append(a.snd, x)}
	}, sides{}, xs[1:])
	return fold(push, append(sortList(q.fst), pv), sortList(q.snd))
}

func sieve(n int64) int64 {
	c := int64(0)
	for xs := upTo(n)[1:]; len(xs) > 0; c++ {
		h := xs[0]
		if h*h > n {
			return c + int64(len(xs))
		}
		xs = filter(func(x int64) bool { return x%h != 0 }, xs[1:])
	}
	return c
}

func strcat(n int64) int64 {
	s := ""
	for i := n; i != 0; i-- {
		if i%2 == 0 {
			s += "ab"
		} else {
			s += "cde"
		}
	}
	return int64(len(s))
}

func collatzLoop(n int64) int64 {
	var best, bi int64
	for i := int64(1); i < n; i++ {
		c := int64(1)
		for k := i; k != 1; c++ {
			if k%2 == 0 {
				k /= 2
			} else {
				k = k*3 + 1
			}
		}
		if c > best {
			best, bi = c, i
		}
	}
	return bi*1000 + best
}

type fun func(int64) int64

func compose(n int64) int64 {
	comp := func(f, g fun) fun { return func(x int64) int64 { return f(g(x)) } }
	inc := func(i int64) int64 { return i + 1 }
	acc := fun(func(x int64) int64 { return x })
	for i := n; i != 0; i-- {
		acc = comp(inc, acc)
	}
	return acc(0)
}
