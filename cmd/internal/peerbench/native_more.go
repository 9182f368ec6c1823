package main

// The six programs this folder adds to the eleven it was given.

func nqueens(n int64) int64 { return queens(n, nil, upTo(n)) }

// cell is a cons cell of integers; nil is the empty list.
type cell struct {
	head int64
	tail *cell
}

func queens(k int64, qs *cell, cols []int64) int64 {
	if k == 0 {
		return 1
	}
	return fold(func(acc, c int64) int64 {
		if safe(c, qs) {
			return acc + queens(k-1, &cell{c, qs}, cols)
		}
		return acc
	}, 0, cols)
}

func safe(c int64, qs *cell) bool {
	for d := int64(1); qs != nil; d++ {
		q := qs.head
		if q == c || q == c+d || q == c-d {
			return false
		}
		qs = qs.tail
	}
	return true
}

type tally = pair[int64, int64]

func hanoi(n int64) int64 {
	st := towers(n, 1, 2, 3, tally{0, 7})
	return st.fst*1000003 + st.snd
}

func towers(n, a, b, c int64, st tally) tally {
	for n != 0 {
		st = towers(n-1, a, c, b, st)
		st = tally{st.fst + 1, (st.snd*31 + (a*3 + b)) % 1000003}
		n, a, c = n-1, c, a
	}
	return st
}

func mapFilter(n int64) int64 {
	scale := func(k int64) fun { return func(x int64) int64 { return x * k } }
	shift := func(k int64) fun { return func(x int64) int64 { return x + k } }
	keep := func(k int64) func(int64) bool { return func(x int64) bool { return x%k != 0 } }
	xs := mapList(shift(5), filter(keep(4), mapList(scale(3), upTo(n))))
	return fold(func(a, x int64) int64 { return (a*7 + x) % 1000003 }, 0, xs)
}

func evenOdd(n int64) int64 {
	acc := int64(0)
	for i := n; i != 0; i-- {
		acc += even(i)
	}
	return acc
}

func even(n int64) int64 {
	if n == 0 {
		return 1
	}
	return odd(n - 1)
}

func odd(n int64) int64 {
	if n == 0 {
		return 0
	}
	return even(n - 1)
}

// numeral is a Church numeral over integer functions; powers apply one to
// the numeral three, which PIF's untyped application writes as c(three).
type numeral func(fun) fun

func church(n int64) int64 {
	c := num(n)
	inc := func(i int64) int64 { return i + 1 }
	mult := func(f fun) fun { return c(c(f)) }
	return power(n, num(3))(inc)(0) + mult(inc)(0)
}

func num(k int64) numeral {
	if k == 0 {
		return func(fun) fun { return func(x int64) int64 { return x } }
	}
	m := num(k - 1)
	return func(f fun) fun { return func(x int64) int64 { return f(m(f)(x)) } }
}

// power is the numeral k applied to m: f ↦ m(m(…m(f))), k times.
func power(k int64, m numeral) numeral {
	if k == 0 {
		return func(f fun) fun { return f }
	}
	p := power(k-1, m)
	return func(f fun) fun { return m(p(f)) }
}

// tree is a leaf with a number, or an inner node with two subtrees; Go has no
// untagged union, so the depth decides which, as in the program.
type tree struct {
	fst, snd *tree
	leaf     int64
}

func trees(n int64) int64 { return sumTree(n, buildTree(n, 1)) }

func buildTree(d, i int64) *tree {
	if d == 0 {
		return &tree{leaf: i}
	}
	return &tree{fst: buildTree(d-1, i*2), snd: buildTree(d-1, i*2+1)}
}

func sumTree(d int64, t *tree) int64 {
	if d == 0 {
		return t.leaf
	}
	return sumTree(d-1, t.fst) + sumTree(d-1, t.snd)
}
