package vectors

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strings"
)

// token is a string of JSON, or a number with a point or an exponent.
var token = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?`)

// Round rounds each number of JSON that has a point or an exponent to the nearest
// integer, of two the even one: the predecessor read code so. A source that is a
// string of JSON is rounded inside.
func Round(code json.RawMessage) json.RawMessage {
	var s string
	if len(code) > 0 && code[0] == '"' && json.Unmarshal(code, &s) == nil && json.Valid([]byte(s)) {
		inner, _ := json.Marshal(string(round(s)))
		return inner
	}
	return round(string(code))
}

func round(src string) json.RawMessage {
	return json.RawMessage(token.ReplaceAllStringFunc(src, func(s string) string {
		if s[0] == '"' || !strings.ContainsAny(s, ".eE") {
			return s
		}
		exact, ok := new(big.Rat).SetString(s)
		if !ok {
			return s
		}
		// Floor of x + 1/2, less one where x was half way and that is odd.
		double := new(big.Int).Add(new(big.Int).Lsh(exact.Num(), 1), exact.Denom())
		n, rest := new(big.Int).DivMod(double, new(big.Int).Lsh(exact.Denom(), 1), new(big.Int))
		if rest.Sign() == 0 && n.Bit(0) == 1 {
			n.Sub(n, big.NewInt(1))
		}
		return n.String()
	}))
}
