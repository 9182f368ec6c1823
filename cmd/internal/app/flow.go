package app

import (
	"encoding/json"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

// flowOptions are the flags about where data may flow.
type flowOptions struct{ labels, noFlows, presets []string }

func (o *flowOptions) register(f *pflag.FlagSet) {
	f.StringArrayVar(&o.labels, "label", nil, "call what `NAME=CAPABILITY` gives by a name, for --no-flow, such as private=fs.read:./private; may be repeated")
	f.StringArrayVar(&o.noFlows, "no-flow", nil, "deny that `NAME>CAPABILITY[:ARGUMENT]` is given what the name stands for, such as 'private>fetch' or 'mail,web>mail.send:to'; may be repeated")
	f.StringArrayVar(&o.presets, "flow", nil, "`MODE` of the rules about where data may flow: designate adds that nothing from beyond this machine decides what is acted on; report only records what would be denied")
}

// config is what the flags say besides the member of a policy file; nil: there is none.
func (o *flowOptions) config(member json.RawMessage) (c flow.Config, err error) {
	if member != nil {
		if c, err = flow.ParseConfig(member); err != nil {
			return c, err
		}
	}
	for _, l := range []struct {
		values []string
		add    func(string) error
	}{{o.labels, c.Label}, {o.noFlows, c.NoFlow}, {o.presets, c.Preset}} {
		for _, v := range l.values {
			if err := l.add(v); err != nil {
				return c, cli.UsageError(err)
			}
		}
	}
	return c, nil
}

// sessionFile is where it lasts what the model was shown; "" where tools are kept in memory.
func (a *Authority) sessionFile() (string, error) {
	if a.keptAt == "" {
		return "", nil
	}
	return SessionOf(a.keptAt)
}

// SessionOf is the file of a store.
func SessionOf(store string) (string, error) {
	path, err := grantedFile(store)
	return filepath.Join(filepath.Dir(path), "flow.json"), err
}

// checkFlow tells where the policy file says another thing of flow than when the server
// started, which holds from the next start on.
func (a *Authority) checkFlow(said sayings) {
	now, err := flow.Compile(said.flow, a.Kinds, a.Principals.Grants())
	hash := func(p *flow.Policy) string {
		if p == nil {
			return ""
		}
		return p.Hash
	}
	switch {
	case err != nil:
		a.log.Error("what the policy says of flow is refused; what held before stays", "error", err)
	case hash(now) != hash(a.Flow):
		a.log.Warn("the policy says something else of where data may flow than when this server started: that holds after a restart")
	}
}
