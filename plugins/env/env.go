// Package env is the plugin of the kind env: one environment variable, by name. It
// exports [Plugin].
//
// A capability is for one variable, env:LANG, never for a pattern. The plugin's
// process has no environment of the server's but that variable's value, which the
// host gives it when it is started (the privilege "variable"): what isn't granted
// isn't there to be read. Values are those that the server was started with.
//
// The journal records the value as every outcome. A password or a key is no
// variable to grant but a secret, which programs name and never hold.
package env

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// Plugin returns the plugin of the kind env.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Kind:    "env",
		Version: "1.0.0",
		Doc:     "gives the value of one environment variable of the server",
		Scope:   sdk.Exact,
		Open:    func(_ context.Context, c sdk.Capability) (any, error) { return &variable{c.Within, c.Variable}, nil },
		Operations: []sdk.Operation{
			sdk.Op("get", "gives the variable's value, a string", sdk.Flags{ReadOnly: true, Idempotent: true}, get),
		},
		Privileges: []string{"variable"},
	}
}

// A variable is an open capability; without a value it isn't set.
type variable struct {
	name  string
	value *string
}

type getArgs struct {
	Name    *string     `pif:"name,main,designates" doc:"the variable; the capability's if left out"`
	Default value.Value `pif:"default,optional" doc:"what to give where it isn't set; without it that is a failure"`
}

func get(_ context.Context, v *variable, a getArgs) (value.Value, error) {
	name := strconv.Quote(v.name)
	switch {
	case a.Name != nil && *a.Name != v.name:
		return nil, sdk.Fail("denied", "the capability is for the variable %s alone", name)
	case v.value != nil && !(utf8.ValidString(*v.value) && !strings.ContainsRune(*v.value, 0)):
		return nil, sdk.Fail("failed", "the value of %s isn't text in UTF-8", name)
	case v.value != nil:
		return value.Str(*v.value), nil
	case a.Default != nil:
		return a.Default, nil
	}
	return nil, sdk.Fail("not_found", "the variable %s isn't set where the server was started", name).
		WithHint(`Give a "default", or tell the user.`)
}
