package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check/normal"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// statusUnknown is the exit status of check --equal where it can't be told.
const statusUnknown = 3

// checking is the flags of check.
type checking struct {
	grants           app.CapOptions
	file, name, tool string
	equal            string
	declared         []string
	strict, verbose  bool
}

func newCheck() *cobra.Command {
	var o checking
	cmd := &cobra.Command{
		Use:   "check [CODE]",
		Short: "Analyse a tool without running it",
		Long: `Read a term as the code of a tool and say what is known of it before it runs: its
type and inputs, what it can ask the world for and what it can't, the capabilities
that would do, what it costs, where it must fail, and where that is known only when
it runs, and what is probably a mistake. Nothing is run. With --store or
--profile it may call the tools that are kept there, and --tool looks at one of them;
nothing is changed.

The formula of steps has at most the terms that grow fastest. With -v it is whole, and
there are that of memory, whether an independent checker accepts the certificate of
all this, and the hashes of the code and of its normal form.

With --equal it says whether the tool and another, given as code or as the name of a
tool that is kept, do the same for every input; where they don't it shows one.

The exit status is 0 if all is well, 1 if a place must fail or no tool can be
made of it with the capabilities there are (with --strict: if anything is known
only when it runs), 2 if it can't be read or found. With --equal it is 0 for equal, 1 for
different, and 3 if that isn't known.`,
		Example: `  mcp-pif check 'n => n * m'
  mcp-pif check --file square.json
  mcp-pif check --store pif.db --tool square --json
  mcp-pif check 'x => x + x' --equal 'x => x * x'`,
		Args: cobra.MaximumNArgs(1),
		RunE: o.run,
	}
	f := cmd.Flags()
	o.grants.Register(f, app.KeptNowhere)
	f.StringArrayVar(&o.declared, "declare", nil, "a `CAPABILITY` the tool declares; may be repeated")
	f.StringVarP(&o.file, "file", "f", "", "read the code from this `FILE`")
	f.StringVar(&o.name, "name", "it", "the tool's `NAME`, to which continue and self refer")
	f.StringVar(&o.tool, "tool", "", "look at the kept tool `NAME`, or NAME@VERSION")
	f.StringVar(&o.equal, "equal", "", "say whether it does the same as `CODE`, or as the kept tool of this name")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print whole formulas, the certificate and the hashes, too")
	f.BoolVar(&o.strict, "strict", false, "fail where anything is known only when it runs")
	cli.JSONFlag(cmd)
	return cmd
}

func (o *checking) run(cmd *cobra.Command, args []string) error {
	if o.tool != "" && (len(args) > 0 || o.file != "" || len(o.declared) > 0 || cmd.Flags().Changed("name")) {
		return errors.New("--tool looks at a tool that is kept: give no code, --declare or --name with it")
	}
	var s subject
	var err error
	if o.tool != "" {
		s, err = o.kept(cmd)
	} else {
		s, err = o.given(cmd, args)
	}
	if s.close != nil {
		defer s.close()
	}
	var f *fault.Fault
	switch {
	case errors.As(err, &f) && s.unreadable:
		return o.unreadable(cmd, f, s.source)
	case err != nil:
		return unanswered(err)
	case cmd.Flags().Changed("equal"):
		return o.compare(cmd, &s)
	}
	r := s.report(o.strict)
	if cli.AsJSON(cmd) {
		err = cli.PrintJSON(cmd, r)
	} else {
		r.print(cmd.OutOrStdout(), s.tool.Source, o.verbose)
	}
	if s.refused != nil && !cli.AsJSON(cmd) {
		cli.PrintPlaced(cmd.ErrOrStderr(), cli.Red, cli.InCommandsOf(cmd, cli.Faulty(s.refused.Error(), s.refused, string(s.tool.Source))))
	}
	if err == nil && !r.OK {
		err = &cli.Failure{}
	}
	return err
}

// unanswered is a failure before anything was found out: 1 is for what was.
func unanswered(err error) error {
	if f, ok := errors.AsType[*cli.Failure](err); ok && f.Status == 0 {
		return &cli.Failure{Err: f.Err, Status: cli.StatusUsage}
	}
	return err
}

// A subject is the tool that is looked at, among those that it may call.
type subject struct {
	tool    *registry.Tool
	tools   *registry.Registry
	others  *registry.Snapshot
	kept    bool // it is on record there
	stored  bool // and in a store
	kinds   caps.Kinds
	cannot  []string
	notes   []string
	refused *fault.Fault // why it can't be made
	close   func()
	// unreadable is set beside an error where the code is no code.
	unreadable bool
	source     string
}

// given is code that is given on the command line, made a tool in memory as evolve
// makes one, or as it would be if that were not refused.
func (o *checking) given(cmd *cobra.Command, args []string) (s subject, err error) {
	code, _, _, err := cli.CodeAndInput(cmd, o.file, args)
	if err != nil {
		return s, err
	}
	if name, ok := core.LoneName([]byte(code)); ok && !json.Valid([]byte(code)) {
		return s, cli.UsageError(fmt.Errorf("%s is a name, and no code: --tool %[1]s looks at the kept tool of that name", cli.Printable(name)))
	}
	auth, err := o.grants.Look(app.Warnings(cmd))
	if err != nil {
		return s, cli.Failed(err)
	}
	s.close = auth.Close
	if s.tools, err = o.grants.Copied(cmd, auth); err != nil {
		return s, cli.Failed(err)
	}
	_, trying, err := s.tools.Snapshot().Trying(o.definition(code))
	if err != nil {
		s.unreadable, s.source = true, code
		return s, err
	}
	a := app.CallTool(cli.Context(cmd), engine.New(engine.Options{Broker: auth.Broker, Registry: s.tools}), "evolve",
		map[string]any{"name": o.name, "code": code, "capabilities": o.declared, "draft": true})
	s.others = s.tools.Snapshot()
	if a.Fault != nil {
		s.tool, s.refused = trying, a.Fault
		s.notes = trying.Program().Notes()
	} else {
		var made struct{ Notes []string }
		if err := json.Unmarshal(a.Structured, &made); err != nil {
			return s, cli.Failed(err)
		}
		s.tool, _ = s.others.Get(o.name)
		s.kept, s.notes = true, slices.DeleteFunc(made.Notes, ofNext)
	}
	s.kinds = auth.Kinds
	s.cannot = s.tool.Cannot(s.kinds)
	return s, nil
}

func (o *checking) definition(code string) registry.Definition {
	return registry.Definition{Name: o.name, Code: []byte(code), Text: !json.Valid([]byte(code)), Capabilities: o.declared}
}

// ofNext reports whether a note of evolve's is about the call that it suggests, which
// isn't shown here.
func ofNext(note string) bool {
	return strings.HasPrefix(note, "next shows") || strings.HasPrefix(note, "no next call") || strings.Contains(note, " in next is a name")
}

// kept is a tool of a store.
func (o *checking) kept(cmd *cobra.Command) (s subject, err error) {
	if err := o.grants.Check(); err != nil {
		return s, err
	}
	name, version, err := nameAndVersion(o.tool)
	if err != nil {
		return s, err
	}
	k, err := o.grants.Tools(cmd, app.ToRead)
	if err != nil {
		return s, cli.Failed(err)
	}
	s.close = k.Close
	s.tools, s.kept, s.stored = k.Registry(), true, true
	s.others = s.tools.Snapshot()
	if version > 0 {
		s.tool, err = s.tools.Version(registry.Ref{Name: name, Version: version})
	} else {
		var ok bool
		if s.tool, ok = s.others.Get(name); !ok {
			err = fmt.Errorf("there is no tool %q%s", cli.Printable(name), cli.DidYouMean(cli.Closest(name, engine.Names(s.others))))
		}
	}
	if err == nil {
		err = s.tool.Problem()
	}
	if err != nil {
		return s, cli.Failed(app.PrintableError(cmd, err))
	}
	s.notes = append(s.tool.Program().Notes(), s.tool.Notes...)
	s.kinds = k.Auth.Kinds
	s.cannot = s.tool.Cannot(s.kinds)
	return s, nil
}

// unreadable tells of code that is none.
func (o *checking) unreadable(cmd *cobra.Command, f *fault.Fault, source string) error {
	if cli.AsJSON(cmd) {
		if err := cli.PrintJSON(cmd, map[string]any{"ok": false, "error": f}); err != nil {
			return err
		}
	} else {
		cli.PrintPlaced(cmd.ErrOrStderr(), cli.Red, cli.Faulty(f.Error(), f, source))
	}
	return &cli.Failure{Status: cli.StatusUsage}
}

// compare says whether the subject and another do the same.
func (o *checking) compare(cmd *cobra.Command, s *subject) error {
	other, ok := s.others.Get(o.equal)
	if ok {
		if err := other.Problem(); err != nil {
			return unanswered(cli.Failed(app.PrintableError(cmd, err)))
		}
	} else {
		code, err := cli.Source(cmd, o.equal)
		if err != nil {
			return err
		}
		if _, other, err = s.others.Trying(o.definition(code)); err != nil {
			if f, ok := errors.AsType[*fault.Fault](err); ok {
				return o.unreadable(cmd, f, code)
			}
			return err
		}
	}
	v := normal.Equal(s.tool.Program().Term(), other.Program().Term(), true, normal.Limits{Lets: true})
	if v.Answer == normal.Same && !registry.SameVersions(s.tool, other) {
		v = normal.Verdict{Answer: normal.Unknown, Reason: "their code does the same, but the tools it names are bound to other versions"}
	}
	out := cmd.OutOrStdout()
	if cli.AsJSON(cmd) {
		if err := cli.PrintJSON(cmd, v); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(out, "%s: %s\n", v.Answer, cli.Printable(v.Reason))
	}
	switch v.Answer {
	case normal.Same:
		return nil
	case normal.Different:
		return &cli.Failure{}
	}
	return &cli.Failure{Status: statusUnknown}
}
