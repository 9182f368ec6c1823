package check

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// A number is one of JSON, exactly, however large: 0.digits times ten to the power
// of point.
type number struct {
	text     string
	negative bool
	digits   string // without zeros around; "": it is 0
	point    int64
}

func numberOf(raw []byte) (n number, ok bool) {
	if !isNumber(raw) {
		return n, false
	}
	s := string(raw)
	n.text = s
	s, n.negative = strings.CutPrefix(s, "-")
	mantissa, power := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, power = s[:i], s[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	n.point = int64(len(whole))
	if power != "" {
		const most = 1 << 60 // what is beyond is as good as that
		e, err := strconv.ParseInt(power, 10, 64)
		if err != nil {
			e = most
			if power[0] == '-' {
				e = -most
			}
		}
		n.point += max(min(e, most), -most)
	}
	digits := whole + fraction
	n.digits = strings.TrimLeft(digits, "0")
	n.point -= int64(len(digits) - len(n.digits))
	n.digits = strings.TrimRight(n.digits, "0")
	if n.digits == "" {
		n.negative, n.point = false, 0
	}
	return n, true
}

func (n number) isInteger() bool { return n.point >= int64(len(n.digits)) }

func (n number) sign() int {
	switch {
	case n.digits == "":
		return 0
	case n.negative:
		return -1
	}
	return 1
}

func (n number) compare(m number) int {
	switch a, b := n.sign(), m.sign(); {
	case a != b && a < b:
		return -1
	case a != b:
		return 1
	case n.point != m.point:
		if n.point < m.point {
			return -n.sign()
		}
		return n.sign()
	}
	return n.sign() * strings.Compare(n.digits, m.digits)
}

// nextInteger is an integer next to a number, by 1 or -1.
func nextInteger(q *big.Rat, by int64) json.RawMessage {
	if !q.IsInt() {
		quotient := new(big.Int).Div(q.Num(), q.Denom()) // the one below
		if by > 0 {
			quotient.Add(quotient, big.NewInt(1))
		}
		return json.RawMessage(quotient.String())
	}
	return json.RawMessage(new(big.Int).Add(q.Num(), big.NewInt(by)).String())
}

// rat is the number to reckon with; nil where it is too long for that.
func (n number) rat() *big.Rat {
	const most = 1000
	if len(n.digits) > most || n.point > most || n.point < -most {
		return nil
	}
	sign := ""
	if n.negative {
		sign = "-"
	}
	q, ok := new(big.Rat).SetString(fmt.Sprintf("%s0%se%d", sign, n.digits, n.point-int64(len(n.digits))))
	if !ok {
		return nil
	}
	return q
}
