package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

// flowOptions are the flags about what may go where.
type flowOptions struct{ labels, noFlows, presets []string }

func (o *flowOptions) register(f *pflag.FlagSet) {
	f.StringArrayVar(&o.labels, "label", nil, "call what `NAME=CAPABILITY` gives by a name, for --no-flow, such as private=fs.read:./private; may be repeated")
	f.StringArrayVar(&o.noFlows, "no-flow", nil, "deny that `NAME>CAPABILITY[:ARGUMENT]` is given what the name stands for, such as 'private>fetch' or 'mail,web>mail.send:to'; may be repeated")
	f.StringArrayVar(&o.presets, "flow", nil, "`MODE` of the rules about what may go where: designate adds that nothing from beyond this machine decides what is acted on; report only records what would be denied")
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
func (a *authority) sessionFile() (string, error) {
	if a.keptAt == "" {
		return "", nil
	}
	return sessionOf(a.keptAt)
}

// sessionOf is the file of a store.
func sessionOf(store string) (string, error) {
	path, err := grantedFile(store)
	return filepath.Join(filepath.Dir(path), "flow.json"), err
}

// checkFlow tells where the policy file says another thing of flow than when the server
// started, which holds from the next start on.
func (a *authority) checkFlow(said sayings) {
	now, err := flow.Compile(said.flow, a.kinds, a.principals.Grants())
	hash := func(p *flow.Policy) string {
		if p == nil {
			return ""
		}
		return p.Hash
	}
	switch {
	case err != nil:
		a.log.Error("what the policy says of flow is refused; what held before stays", "error", err)
	case hash(now) != hash(a.flow):
		a.log.Warn("the policy says something else of what may go where than when this server started: that holds after a restart")
	}
}

// shownFlow is a policy as JSON.
type shownFlow struct {
	Hash    string   `json:"hash,omitempty"`
	Session string   `json:"session"`
	Report  bool     `json:"report,omitempty"`
	Rules   []string `json:"rules"`
	Notes   []string `json:"notes,omitempty"`
}

func newFlow() *cobra.Command {
	var o capOptions
	var asJSON *bool
	cmd := &cobra.Command{
		Use:   "flow",
		Short: "Show what may go where",
		Long: `Print the rules about what may go where, as sentences: those of --no-flow, of
--flow=designate, and of the member flow of the policy file. A rule that no request
could break, or that every one would, is an error, here as at the start of a server.

A capability says what a tool may do; a rule says what it may do that with:

  --label private=fs.read:./private --no-flow 'private>fetch'
  --label mail=mail.read --no-flow 'mail>mail.send:to'
  --flow=designate`,
		Example: `  mcp-pif flow --cap fs:./private --cap fetch:https://api.example.com --label private=fs.read:./private --no-flow 'private>fetch'
  mcp-pif flow --policy policy.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cli.Failed(showFlow(cmd, &o, *asJSON)) },
	}
	asJSON = cli.JSONFlag(cmd)
	o.register(cmd.Flags(), keptNowhere)
	cmd.AddCommand(newFlowExplain(), newFlowOf(), newFlowRelease(), newFlowShow(), newFlowClear())
	return cmd
}

func showFlow(cmd *cobra.Command, o *capOptions, asJSON bool) error {
	out := cmd.OutOrStdout()
	path := ""
	if o.storeOptions.given() {
		var err error
		if path, err = o.there(); err != nil {
			return err
		}
		o.recall(cmd, path)
	}
	o.principals = true
	auth, err := o.look(warnings(cmd))
	if err != nil {
		return err
	}
	defer auth.close()
	p := auth.flow
	if p == nil {
		if asJSON {
			return cli.PrintJSON(cmd, shownFlow{Session: "no rules", Rules: []string{}})
		}
		fmt.Fprintln(out, "Nothing is said of what may go where: what a tool may do it may do with anything.")
		return nil
	}
	if asJSON {
		return cli.PrintJSON(cmd, shownFlow{p.Hash, p.SessionSentence(), p.Report, p.Sentences(), p.Notes})
	}
	fmt.Fprintln(out, p.SessionSentence())
	if path != "" {
		file, err := sessionOf(path)
		if err != nil {
			return err
		}
		s, err := flow.NewSession(file, p)
		if err != nil {
			return err
		}
		state, err := s.State()
		if err != nil {
			return err
		}
		printSession(out, state)
	}
	if p.Report {
		fmt.Fprintln(out, "Nothing is denied: what would be is only recorded (--flow=report).")
	}
	for _, s := range p.Sentences() {
		fmt.Fprintln(out, cli.Printable(s))
	}
	for _, note := range p.Notes {
		fmt.Fprintln(out, "note: "+cli.Printable(note))
	}
	return nil
}
