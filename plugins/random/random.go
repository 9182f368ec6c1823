// Package random is the plugin of the kind random: a seed that nobody can foretell.
// It exports [Plugin].
//
// A program takes a seed and computes what it needs from it: a number below six is
// its remainder, and the next one comes of a generator that the program has. The
// seed is an outcome in the journal, so that a replay computes the same. A
// capability's scope is a name of the operator's, such as random:seed; it means
// nothing, and keeps limits apart. What the journal holds is no secret: seeds are
// for samples, games and names, not for keys.
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
	return sdk.Plugin{
		Kind:    "random",
		Version: "1.0.0",
		Doc:     "draws a seed for programs that need chance",
		Scope:   sdk.Exact,
		Operations: []sdk.Operation{
			// A second time draws another.
			sdk.Op("seed", "draws an integer of 256 bits; below n it is mod(seed, n)", sdk.Flags{ReadOnly: true}, seed),
		},
	}
}

// seedBytes is the size of a seed.
const seedBytes = 32

func seed(context.Context, any, struct{}) (value.Int, error) {
	b := make([]byte, seedBytes)
	rand.Read(b) // never fails
	return value.NewBig(new(big.Int).SetBytes(b)), nil
}
