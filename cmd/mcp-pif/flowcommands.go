package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
)

// flowOf is the policy that the flags, or the last server's, say; an error if none does.
func flowOf(k *app.Kept) (*flow.Policy, error) {
	if k.Auth.Flow == nil {
		return nil, errors.New("no rule says where data may flow: give --label and --no-flow, --flow=designate, or a --policy with the member flow")
	}
	return k.Auth.Flow, nil
}

// flowTool is that policy, and a tool that is kept.
func flowTool(k *app.Kept, name string) (*flow.Policy, *registry.Tool, error) {
	p, err := flowOf(k)
	t, ok := k.Registry().Snapshot().Get(name)
	if err == nil && !ok {
		err = fmt.Errorf("there is no tool %q", name)
	}
	return p, t, err
}

// newFlowExplain tells what the rules mean for a tool.
func newFlowExplain() *cobra.Command {
	return toolsCommand(&cobra.Command{
		Use:   "explain TOOL",
		Short: "Show what the rules mean for a tool: what it may read, and where that may not go",
		Args:  cobra.ExactArgs(1),
	}, app.ToRead, func(cmd *cobra.Command, k *app.Kept, args []string) error {
		p, t, err := flowTool(k, args[0])
		if err != nil {
			return err
		}
		uses := p.Uses(t.Reach())
		if cli.AsJSON(cmd) {
			return cli.PrintJSON(cmd, map[string]any{"name": t.Name, "version": t.Version, "made_under": append([]string{}, t.MadeUnder...), "rules": append([]string{}, uses...)})
		}
		out := cmd.OutOrStdout()
		fmt.Fprintf(out, "%s, version %d\n", cli.Printable(t.Name), t.Version)
		for _, u := range p.Explain(t.MadeUnder, t.Reach()) {
			fmt.Fprintf(out, "%s\n", cli.Printable(u))
		}
		if len(uses) == 0 {
			fmt.Fprintln(out, "No rule is about anything that it may do.")
		}
		return nil
	})
}

// judged is what rules say of each request of a recorded run.
func (r *replayer) judged(ctx context.Context, id string, rules *flow.Policy, permits *caps.Policy) ([]run.FlowJudgement, run.Verdict, error) {
	rec, err := r.record(id)
	if err != nil {
		return nil, run.Verdict{}, err
	}
	options, err := r.options(rec, "")
	if err == nil {
		err = options.Replay.TryFlow(rules, permits)
	}
	if err != nil {
		return nil, run.Verdict{}, err
	}
	_, v := engine.Replay(ctx, options)
	return options.Replay.Judged(), v, nil
}

// newFlowOf judges a recorded run by the rules of now.
func newFlowOf() *cobra.Command {
	return toolsCommand(&cobra.Command{
		Use:   "of RUN",
		Short: "Judge a recorded run by the rules: what each request was made of, and what would become of it",
		Long: `Replay a recorded run, as 'mcp-pif replay' does, and judge each request by the rules
that the flags say, or those of the last server on the store: so rules can be tried on what
was done before they are in force. Nothing is done, and nothing is recorded. What the model
had been shown before the run counts for nothing here.`,
		Example: `  mcp-pif flow of abcdefgh-17 --profile claude --no-flow 'mail>fetch' --label mail=mail.read …`,
		Args:    cobra.ExactArgs(1),
	}, app.ToRead, func(cmd *cobra.Command, k *app.Kept, args []string) error {
		p, err := flowOf(k)
		if err != nil {
			return err
		}
		judged, v, err := (&replayer{store: k.Journal, tools: k.Registry()}).judged(cli.Context(cmd), args[0], p, k.Auth.Policy)
		if err != nil {
			return err
		}
		if cli.AsJSON(cmd) {
			return cli.PrintJSON(cmd, struct {
				Run     string              `json:"run"`
				Replay  string              `json:"replay"`
				Flow    []run.FlowJudgement `json:"requests"`
				Session string              `json:"session"`
			}{args[0], v.Verdict, append([]run.FlowJudgement{}, judged...), p.SessionSentence()})
		}
		rows := make([][]string, len(judged))
		for i, j := range judged {
			verdict := j.Verdict
			if j.Rule > 0 {
				verdict += fmt.Sprintf(" (rule %d)", j.Rule)
			}
			for _, name := range slices.Sorted(maps.Keys(j.From)) {
				j.Why += fmt.Sprintf("; %s: %s", cmp.Or(name, "it"), j.From[name])
			}
			rows[i] = []string{fmt.Sprint(j.N), j.Op, j.At, cmp.Or(strings.Join(j.Data, " "), "-"), cmp.Or(strings.Join(j.Control, " "), "-"), cmp.Or(verdict, "no rule"), cli.Printable(j.Why)}
		}
		cli.PrintTable(cmd.OutOrStdout(), []string{"N", "REQUEST", "AT", "MADE OF", "DECIDED BY", "VERDICT", "WHY"}, rows)
		if !v.OK() {
			fmt.Fprintln(cmd.ErrOrStderr(), cli.Printable("the replay: "+v.Text))
		}
		return nil
	})
}

// newFlowRelease prints what a policy has to say to release what a tool gives.
func newFlowRelease() *cobra.Command {
	return toolsCommand(&cobra.Command{
		Use:   "release TOOL",
		Short: "Show what to write into the policy so that results of a tool's version lose labels",
		Long: `Print the type of what a tool gives, how much that can tell, and the entry of the policy's
flow.release with which results of this very version lose labels. Candidates are small: counts,
enumerations, dates. Only a person writes policy.`,
		Args: cobra.ExactArgs(1),
	}, app.ToRead, func(cmd *cobra.Command, k *app.Kept, args []string) error {
		p, t, err := flowTool(k, args[0])
		if err != nil {
			return err
		}
		whole := t.Whole()
		if whole == "" {
			return fmt.Errorf("%s calls tools that are worked out when it runs, or takes their code, so nothing says which code would be released", args[0])
		}
		typ := t.Report().Signature()
		var to []string
		var from flow.Atoms
		for _, r := range p.Rules {
			if from |= r.Forbidden(); !slices.Contains(to, r.To) {
				to = append(to, r.To)
			}
		}
		if from == 0 {
			return errors.New("there is no rule, so there is nothing to release it from")
		}
		entry := flow.ReleaseConfig{Tool: t.Name + "@sha256:" + whole, From: p.Names(from), To: to}
		bits, bounded := flow.Bits(t.OutputSchema())
		if cli.AsJSON(cmd) {
			answer := map[string]any{"name": t.Name, "version": t.Version, "type": typ, "release": entry}
			if bounded {
				answer["bits"] = bits
			}
			return cli.PrintJSON(cmd, answer)
		}
		out := cmd.OutOrStdout()
		fmt.Fprintf(out, "%s, version %d: %s\n", cli.Printable(t.Name), t.Version, cli.Printable(typ))
		if bounded {
			fmt.Fprintf(out, "One result tells at most %d bits.\n", bits)
		} else {
			fmt.Fprintln(out, "A result may tell anything: there is no bound to what this type holds.")
		}
		fmt.Fprintf(out, "Its code, all of which is released:\n%s\n", cli.PrintableLines(string(t.Shown())))
		uses := t.Uses()
		for _, name := range slices.Sorted(maps.Keys(uses)) {
			fmt.Fprintf(out, "and that of %s, version %d, as 'mcp-pif tools show' prints it\n", cli.Printable(name), uses[name].Version)
		}
		fmt.Fprintf(out, "To release it, add to \"release\" in the policy's flow, with the sources and sinks that are meant:\n%s\n", cli.Marshal(entry))
		return nil
	})
}

// newFlowShow shows the person a sealed result.
func newFlowShow() *cobra.Command {
	return toolsCommand(&cobra.Command{
		Use:   "show s_…",
		Short: "Show a result that is sealed from the model",
		Args:  cobra.ExactArgs(1),
	}, app.ToRead, func(cmd *cobra.Command, k *app.Kept, args []string) error {
		one, err := run.FindSealed(cli.Context(cmd), k.Journal, args[0])
		if err != nil {
			return err
		}
		if cli.AsJSON(cmd) {
			return cli.PrintJSON(cmd, one)
		}
		fmt.Fprintln(cmd.ErrOrStderr(), cli.Printable(fmt.Sprintf("of run %s, type %s, made of %s, decided by %s", cmp.Or(one.Run, "none"), one.Type, cmp.Or(strings.Join(one.Data, " "), "nothing labelled"), cmp.Or(strings.Join(one.Control, " "), "nothing labelled"))))
		text := one.Text
		if !one.Failed && !engine.Unpassed(one) {
			text = string(one.Result)
		}
		fmt.Fprintln(cmd.OutOrStdout(), cli.PrintableLines(text))
		return nil
	})
}

// newFlowClear forgets what the model was shown.
func newFlowClear() *cobra.Command {
	var o app.StoreOptions
	cmd := &cobra.Command{
		Use:   "clear",
		Short: "Forget what the model was shown, and that stores hold what they weren't labelled for",
		Long: `Empty the session of a profile: the labels of what its model was shown, the bits that were
let through, and the labels that stores took on (folders for all profiles). Do it when a new conversation begins, which no
server can see, and when the stores are clean. It takes a terminal. Servers that run learn of it
at once.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cli.Failed(clearFlow(cmd, &o)) },
	}
	o.Register(cmd.Flags(), "the only profile's, where there is one")
	return cmd
}

// sessionOf opens what the model was shown, kept beside a store, and reads it.
func sessionOf(store string, p *flow.Policy) (s *flow.Session, state flow.SessionState, err error) {
	file, err := app.SessionOf(store)
	if err == nil {
		s, err = app.OpenSession(file, p)
	}
	if err == nil {
		state, err = s.State()
	}
	return s, state, err
}

func clearFlow(cmd *cobra.Command, o *app.StoreOptions) error {
	path, err := o.There()
	if err != nil {
		return err
	}
	s, state, err := sessionOf(path, nil)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if state.Empty() {
		fmt.Fprintln(out, "There is nothing to forget: the model was shown nothing that has a label.")
		return nil
	}
	tty, err := openTerminal(cmd.InOrStdin())
	if err != nil {
		return errors.New("what a model was shown is forgotten by a person: run 'mcp-pif flow clear' at a terminal, with nothing piped into it")
	}
	defer tty.Close()
	printSession(tty, state)
	code := challenge()
	fold(tty, "Type %s to forget that: ", code)
	line, err := bufio.NewReader(tty).ReadString('\n')
	if err != nil {
		return err
	}
	if strings.TrimSpace(line) != code {
		return errors.New("nothing was forgotten")
	}
	store, err := app.OpenStore(path, journal.Options{Notes: app.Heads()})
	if err != nil {
		return err
	}
	err = forget(s, state, func(text []byte) error {
		_, err := store.Append(journal.Synced, journal.FlowCleared, "", "", text)
		return err
	})
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	fmt.Fprintf(out, "Forgotten for %s.\n", cli.Printable(filepath.Base(filepath.Dir(path))))
	return nil
}

// forget has what is forgotten on record before it is, and where that fails, after it, what of it was forgotten.
func forget(s *flow.Session, state flow.SessionState, record func([]byte) error) error {
	if err := record(cli.Marshal(state)); err != nil {
		return err
	}
	err := s.Clear(&state)
	if err != nil {
		err = errors.Join(err, record(cli.Marshal(struct {
			flow.SessionState
			Only bool `json:"only"` // this of it
		}{state, true})))
	}
	return err
}

// printSession says what lasts of a session.
func printSession(out interface{ Write([]byte) (int, error) }, state flow.SessionState) {
	if len(state.Label) > 0 {
		fmt.Fprintf(out, "The model was shown what came from %s.\n", cli.Printable(strings.Join(state.Label, ", ")))
	}
	for _, name := range slices.Sorted(maps.Keys(state.Bits)) {
		fmt.Fprintf(out, "It was told %s of %s in spite of a rule.\n", cli.Count(state.Bits[name], "bit", "bits"), cli.Printable(name))
	}
	for _, store := range slices.Sorted(maps.Keys(state.Taints)) {
		fmt.Fprintf(out, "%s holds what came from %s.\n", cli.Printable(store), cli.Printable(strings.Join(state.Taints[store], ", ")))
	}
	for _, key := range slices.Sorted(maps.Keys(state.Moves)) {
		fmt.Fprintf(out, "A move of run %s between %s is under way, or was cut: what the one holds the other does.\n", cli.Printable(key), cli.Printable(strings.Join(state.Moves[key], " and ")))
	}
}

// shownFlow is a policy as JSON.
type shownFlow struct {
	Hash    string   `json:"hash,omitempty"`
	Session string   `json:"session"`
	Report  bool     `json:"report,omitempty"`
	Rules   []string `json:"rules"`
	Models  []string `json:"models,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	// State is what lasts of the session of a profile.
	State *flow.SessionState `json:"state,omitempty"`
}

func newFlow() *cobra.Command {
	var o app.CapOptions
	cmd := &cobra.Command{
		Use:   "flow",
		Short: "Show where data may flow",
		Long: `Print the rules about where data may flow, as sentences: those of --no-flow, of
--flow=designate, and of the member flow of the policy file. A rule that no request
could break, or that every one would, is an error, here as at the start of a server.

A capability says what a tool may do; a rule says what it may do that with:

  --label private=fs.read:./private --no-flow 'private>fetch'
  --label mail=mail.read --no-flow 'mail>mail.send:to'
  --flow=designate

No rule covers that a run ends, and how long it takes; the order in which branches
ask; how many events there are; what an answer tells besides its label; what a model
does that saw something elsewhere; what a sink's owner does with it.`,
		Example: `  mcp-pif flow --cap fs:./private --cap fetch:https://api.example.com --label private=fs.read:./private --no-flow 'private>fetch'
  mcp-pif flow --policy policy.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cli.Failed(showFlow(cmd, &o)) },
	}
	cli.JSONFlag(cmd)
	o.Register(cmd.Flags(), app.KeptNowhere)
	cmd.AddCommand(newFlowExplain(), newFlowOf(), newFlowRelease(), newFlowShow(), newFlowClear())
	return cmd
}

func showFlow(cmd *cobra.Command, o *app.CapOptions) error {
	out := cmd.OutOrStdout()
	path := ""
	if o.StoreOptions.Given() {
		var err error
		if path, err = o.There(); err != nil {
			return err
		}
		o.Recall(cmd, path)
	}
	o.Principals = true
	auth, err := o.Look(app.Warnings(cmd))
	if err != nil {
		return err
	}
	defer auth.Close()
	p := auth.Flow
	if p == nil {
		if cli.AsJSON(cmd) {
			return cli.PrintJSON(cmd, shownFlow{Session: "no rules", Rules: []string{}})
		}
		fmt.Fprintln(out, "No rule says where data may flow: a tool may do what it may with all that it reads.")
		return nil
	}
	var state *flow.SessionState
	if path != "" {
		_, kept, err := sessionOf(path, p)
		if err != nil {
			return err
		}
		state = &kept
	}
	if cli.AsJSON(cmd) {
		return cli.PrintJSON(cmd, shownFlow{p.Hash, p.SessionSentence(), p.Report, p.Sentences(), p.Models(), p.Notes, state})
	}
	fmt.Fprintln(out, p.SessionSentence())
	if state != nil {
		printSession(out, *state)
	}
	if p.Report {
		fmt.Fprintln(out, "Nothing is denied: what would be is only recorded (--flow=report). No store takes a label on either: what is read back from it counts as without.")
	}
	for _, s := range append(p.Sentences(), p.Models()...) {
		fmt.Fprintln(out, cli.Printable(s))
	}
	for _, note := range p.Notes {
		fmt.Fprintln(out, "note: "+cli.Printable(note))
	}
	return nil
}
