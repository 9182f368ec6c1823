// Command dice is a capability plugin: a whole one, as plugins/README.md shows it,
// and a test holds it to the letter.
//
// It decides how dice fall, and refuses numbers of dice that can't be meant. Where
// tables are and who may throw at them is the host's; go on with package sdk.
package main

import (
	"context"
	"math/rand/v2"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

func main() { sdk.Serve(dice) }

var dice = sdk.Plugin{
	Kind: "dice", Version: "1.0.0", Doc: "Throws dice at tables.", Scope: sdk.Segments,
	Operations: []sdk.Operation{
		sdk.Op("throw", "Throws dice and says what they show.", sdk.Flags{ReadOnly: true}, throw),
	},
}

type arguments struct {
	Table string `pif:"table,main,designates" doc:"the table, such as hall/left"`
	Dice  *int   `doc:"how many; one if left out"`
}

type result struct {
	Eyes []int
	Sum  int
}

func throw(_ context.Context, _ any, a arguments) (r result, err error) {
	n := 1
	if a.Dice != nil {
		n = *a.Dice
	}
	if n < 1 || n > 100 {
		return r, sdk.Fail("invalid", "%d dice can't be thrown", n).WithHint("Throw 1 to 100.")
	}
	for range n {
		eyes := 1 + rand.IntN(6)
		r.Eyes, r.Sum = append(r.Eyes, eyes), r.Sum+eyes
	}
	return r, nil
}
