// Package random is the plugin of the kind random: numbers that nobody can
// foretell. It exports [Plugin].
//
// A program that needs many numbers takes one seed and computes the others: the
// seed is an outcome in the journal, so that a replay computes the same. A
// capability's scope is a name of the operator's, such as random:seed; it means
// nothing, and keeps limits apart. What the journal holds is no secret: these
// numbers are for samples, games and names, not for keys.
package random

import (
	"context"
	"crypto/rand"
	"math/big"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// Plugin returns the plugin of the kind random.
func Plugin() sdk.Plugin {
	drawn := sdk.Flags{ReadOnly: true} // and another one each time
	return sdk.Plugin{
		Kind:    "random",
		Version: "1.0.0",
		Doc:     "draws random numbers",
		Scope:   sdk.Exact,
		Operations: []sdk.Operation{
			sdk.Op("seed", "draws an integer of 256 bits, from which a program can compute others", drawn, seed),
			sdk.Op("int", "draws an integer from 0 to below the one that is given, each as likely", drawn, integer),
		},
	}
}

// seedBits is the size of a seed.
const seedBits = 256

func seed(context.Context, any, struct{}) (value.Int, error) {
	return draw(new(big.Int).Lsh(big.NewInt(1), seedBits))
}

type integerArgs struct {
	Below value.Int `pif:"below,main" doc:"at least 1; at most 4096 bits"`
}

func integer(_ context.Context, _ any, a integerArgs) (value.Int, error) {
	below := a.Below.Big()
	if below.Sign() <= 0 || below.BitLen() > 4096 {
		return value.Int{}, sdk.Fail("invalid", "below must be from 1 to a number of 4096 bits").WithHint("For a die: {\"random.int\": 6} and add 1.")
	}
	return draw(below)
}

// draw is uniform from 0 to below a number.
func draw(below *big.Int) (value.Int, error) {
	n, err := rand.Int(rand.Reader, below)
	if err != nil {
		return value.Int{}, err
	}
	return value.NewBig(n), nil
}
