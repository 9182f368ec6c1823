package app

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/model"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// modelOptions are the flags about the language models that tools may have extract data.
type modelOptions struct{ models []string }

func (o *modelOptions) register(f *pflag.FlagSet) {
	cli.Strings(f, &o.models, "model", "name a language model, `NAME=URL,model=MODEL`, for --cap model:NAME; then secret=SECRET, in=BYTES, out=TOKENS, tries=N as you like; the URL is that of an API like OpenAI's, such as http://127.0.0.1:11434/v1; may be repeated")
}

// An endpoint is a model of the flags.
type endpoint struct {
	model.Settings
	secret string // the name of its key; empty: it needs none
}

// read reads the endpoints of the flags.
func (o *modelOptions) read() (all []endpoint, err error) {
	for _, text := range o.models {
		e, err := readEndpoint(text)
		if err != nil {
			return nil, cli.UsageError(fmt.Errorf("--model %s: %w", e.Name, err))
		}
		if slices.ContainsFunc(all, func(o endpoint) bool { return o.Name == e.Name }) {
			return nil, cli.UsageError(fmt.Errorf("--model: duplicate name %s", e.Name))
		}
		all = append(all, e)
	}
	return all, nil
}

func readEndpoint(text string) (e endpoint, err error) {
	name, rest, ok := strings.Cut(text, "=")
	e.Name = name
	if !ok || name == "" {
		return e, fmt.Errorf("it is NAME=URL,model=MODEL")
	}
	parts := strings.Split(rest, ",")
	e.URL = parts[0]
	for _, part := range parts[1:] {
		key, said, _ := strings.Cut(part, "=")
		number := func(n *int) {
			if *n, err = strconv.Atoi(said); err != nil || *n < 1 {
				err = fmt.Errorf("%s is a number, not %q", key, said)
			}
		}
		switch key {
		case "model":
			e.Model = said
		case "secret":
			e.secret = said
		case "in":
			number(&e.In)
		case "out":
			number(&e.Out)
		case "tries":
			number(&e.Tries)
		default:
			err = fmt.Errorf("unknown option %q: model, secret, in, out, tries", key)
		}
		if err != nil {
			return e, err
		}
	}
	return e, e.Check()
}

// Models is the endpoint of each grant of a model.
type Models struct{ byGrant[endpoint] }

// settings is what a grant's process is told.
func (m *Models) settings(g *caps.Grant) ([]byte, error) {
	e := m.get(g)
	if e == nil {
		return nil, fmt.Errorf("nothing is known of the model of this grant")
	}
	return json.Marshal(e.Settings)
}

// endpoint finds the model that a capability is for, with its key; nil: it is of another kind.
func (a *Authority) endpoint(c caps.Capability, r *resolving) (*endpoint, error) {
	if c.Kind != model.Kind {
		return nil, nil
	}
	all, err := a.options.modelOptions.read()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(e endpoint) bool { return e.Name == c.Scope })
	if i < 0 {
		return nil, fmt.Errorf("there is no model of the name: say --model %s=URL,model=MODEL", c.Scope)
	}
	e := &all[i]
	if e.secret == "" {
		return e, nil
	}
	i = slices.IndexFunc(r.known, func(s *caps.Secret) bool {
		return s.Name == e.secret && s.For.Kind == model.Kind && s.For.Scope == e.Name
	})
	if i < 0 {
		return nil, fmt.Errorf("no secret %q is bound to it: say --secret %s=model:%s,file=PATH", e.secret, e.secret, e.Name)
	}
	e.Key = r.known[i].Value()
	return e, e.Check()
}

// text is what a grant of the endpoint is for, without the key; "" of nil.
func (e *endpoint) text() string {
	if e == nil {
		return ""
	}
	s := *e
	s.Key = ""
	b, err := json.Marshal([]any{s.Settings, s.secret})
	if err != nil {
		return e.URL
	}
	return string(b)
}

// serveModel is this program as the plugin of a model, for the endpoint that the host's
// settings name.
func serveModel() int {
	told, err := sdk.ReadSettings()
	var s model.Settings
	if err == nil {
		s, err = model.ParseSettings(told)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "mcp-pif: the plugin of models: %v\n", err)
		return cli.StatusUsage
	}
	sdk.Serve(model.Plugin(s))
	return 0
}
