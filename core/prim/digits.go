package prim

import "math/big"

// fewDigits is up to how many math/big reads them: its time grows with the
// square of their number, that of a multiplication doesn't.
const fewDigits = 2048

// parseDigits returns the integer of decimal digits. A number of millions of
// them is one step that nobody can interrupt.
func parseDigits(s string) *big.Int {
	if len(s) <= fewDigits {
		n, _ := new(big.Int).SetString(s, 10)
		return n
	}
	// Powers of ten by the number of the digits that stand behind: each is the
	// square of the one before it.
	powers := []*big.Int{new(big.Int).Exp(big.NewInt(10), big.NewInt(fewDigits), nil)}
	for fewDigits<<len(powers) < len(s) {
		last := powers[len(powers)-1]
		powers = append(powers, new(big.Int).Mul(last, last))
	}
	return joinDigits(s, powers)
}

// joinDigits reads at most twice as many digits as the last of the powers has.
func joinDigits(s string, powers []*big.Int) *big.Int {
	if len(s) <= fewDigits {
		n, _ := new(big.Int).SetString(s, 10)
		return n
	}
	last := len(powers) - 1
	low := fewDigits << last
	if len(s) <= low {
		return joinDigits(s, powers[:last])
	}
	n := joinDigits(s[:len(s)-low], powers[:last])
	n.Mul(n, powers[last])
	return n.Add(n, joinDigits(s[len(s)-low:], powers[:last]))
}

// decimalText is the decimal digits of an integer.
func decimalText(n *big.Int, m *Meter) string {
	m.look(len(n.Bits()))
	return n.String()
}
