package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpcmd"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

func newCaps() *cobra.Command {
	var o app.CapOptions
	cmd := &cobra.Command{
		Use:   "caps",
		Short: "Show what would be granted, and what can be",
		Long: `Print what a server with these flags would grant: each capability as tools
declare it, what it resolved to, its limits. Without flags it says what can be
granted at all.

The text of a capability is KIND[.VERB[,VERB]]:SCOPE[,OPTION[=VALUE]]:

  fs:./sandbox                              every operation on files below ./sandbox
  fs.read,list:docs=./long/path             reading only; tools call it docs
  fs:./sandbox,ro,max=10MiB                 options follow a comma
  fetch.get:https://api.example.com/v1/**   GET on one origin and path
  kv:notes/**,size=1MiB                     values by keys that begin with notes, kept across restarts
  clock:utc  random:seed  env:LANG          the time, a seed, a variable`,
		Example: `  mcp-pif caps --cap fs:./sandbox --deny fs:./sandbox/secret
  mcp-pif caps --policy policy.json --principal ann
  mcp-pif caps explain 'p => !fs.read({path: p})' --cap fs:./sandbox
  mcp-pif caps revoke fs:./sandbox`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cli.Failed(showCaps(cmd, &o)) },
	}
	cli.JSONFlag(cmd)
	o.Register(cmd.Flags(), app.KeptNowhere)
	o.RegisterPrincipal(cmd.Flags())
	cmd.AddCommand(newExplain(), newRevoke(), newRestore(), newRevoked())
	return cmd
}

// shownAllowed is what is granted and denied to somebody, as JSON.
type shownAllowed struct {
	Principal string   `json:"principal,omitempty"`
	Grants    []string `json:"grants"`
	Denies    []string `json:"denies"`
	Secrets   []string `json:"secrets"`
}

func allowedAsJSON(principal string, grants []*caps.Grant, denies []caps.Capability, secrets []caps.Binding) shownAllowed {
	a := shownAllowed{principal, []string{}, []string{}, append([]string{}, app.SecretLines(secrets)...)}
	for _, g := range grants {
		a.Grants = append(a.Grants, g.String())
	}
	for _, d := range denies {
		a.Denies = append(a.Denies, d.String())
	}
	return a
}

func showCaps(cmd *cobra.Command, o *app.CapOptions) error {
	out := cmd.OutOrStdout()
	auth, err := o.Look(app.Warnings(cmd))
	if err != nil {
		return err
	}
	defer auth.Close()
	if o.Principal != "" && !cli.AsJSON(cmd) && !slices.Contains(auth.Principals.Names(), o.Principal) {
		fmt.Fprintf(out, "The policy says nothing of the principal %q, who has what everybody has.\n", o.Principal)
	}
	grants := auth.Policy.Grants()
	if cli.AsJSON(cmd) {
		all := []shownAllowed{allowedAsJSON(o.Principal, grants, auth.Policy.Denies(), auth.Policy.Secrets().List())}
		for _, name := range auth.Principals.Names() {
			if own := auth.Principals.Own(name); o.Principal == "" {
				all = append(all, allowedAsJSON(name, own.Grants, own.Denies, nil))
			}
		}
		return cli.PrintJSON(cmd, all)
	}
	if len(auth.Principals.Grants()) == 0 {
		fmt.Fprintln(out, "No capabilities granted: tools can only compute.")
		fmt.Fprintln(out, "\nWhat can be granted with --cap:")
		for _, kind := range slices.Sorted(maps.Keys(auth.Kinds)) {
			m, _ := auth.Kinds.Manifest(kind)
			width := 0
			for i := range m.Operations {
				width = max(width, len(m.Operations[i].Name))
			}
			cli.PrintHanging(out, "  "+kind+"  ", m.Doc)
			for i := range m.Operations {
				cli.PrintHanging(out, fmt.Sprintf("    %-*s  ", width, m.Operations[i].Name), m.Operations[i].Doc)
			}
		}
		return nil
	}
	if len(grants) == 0 {
		fmt.Fprintln(out, "No capabilities granted: tools can only compute.")
	}
	printAllowed(out, auth.Policy, grants, auth.Policy.Denies(), auth.Policy.Confirms(), auth.Policy.Secrets().List())
	if o.Principal != "" {
		return nil
	}
	for _, name := range auth.Principals.Names() {
		own := auth.Principals.Own(name)
		fmt.Fprintf(out, "\nthe principal %q besides:\n", name)
		var secrets []caps.Binding
		for _, s := range own.Secrets {
			secrets = append(secrets, s.Binding)
		}
		printAllowed(out, auth.Policy, own.Grants, own.Denies, own.Confirms, secrets)
	}
	return nil
}

// printAllowed prints what is granted, denied and bound.
func printAllowed(out io.Writer, p *caps.Policy, grants []*caps.Grant, denies []caps.Capability, confirms []caps.Requests, secrets []caps.Binding) {
	for _, g := range grants {
		fmt.Fprintln(out, cli.PrintableLines(strings.TrimRight(g.Describe(p.Left(g)), "\n")))
	}
	for _, d := range denies {
		fmt.Fprintf(out, "denied: %s\n", cli.Printable(d.String()))
	}
	for _, c := range confirms {
		fmt.Fprintf(out, "only as part of a plan that you approved, unless it only reads: %s\n", cli.Printable(c.Text))
	}
	for _, line := range app.SecretLines(secrets) {
		fmt.Fprintln(out, cli.Printable(line))
	}
}

func newExplain() *cobra.Command {
	var (
		o          app.CapOptions
		file, name string
		declared   []string
	)
	cmd := &cobra.Command{
		Use:   "explain CODE",
		Short: "Show the capabilities that a term needs, and why it would be refused",
		Long: `Read a term as the code of a tool and say which operations it can ask for and
where, what a tool of it would have to declare, and whether evolve would make it
under the grants given. Nothing is run. The exit status is 1 if it would be
refused.`,
		Example: `  mcp-pif caps explain 'p => !fs.read({path: p})' --cap fs:./sandbox --declare fs.read:./sandbox`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			code, _, _, err := cli.CodeAndInput(cmd, file, args)
			if err != nil {
				return err
			}
			auth, err := o.Look(app.Warnings(cmd))
			if err != nil {
				return cli.Failed(err)
			}
			defer auth.Close()
			return cli.Failed(explain(cmd, auth, name, code, declared))
		},
	}
	cli.JSONFlag(cmd)
	f := cmd.Flags()
	o.Register(f, app.KeptNowhere)
	o.RegisterPrincipal(f)
	f.StringVarP(&file, "file", "f", "", "read the code from this `FILE`")
	f.StringVar(&name, "name", "it", "the tool's `NAME`")
	f.StringArrayVar(&declared, "declare", nil, "a `CAPABILITY` the tool declares; may be repeated. Without it, what it needs of the grants")
	return cmd
}

// errRefused ends a command that has told why already.
var errRefused error = &cli.Failure{}

func explain(cmd *cobra.Command, auth *app.Authority, name, code string, declared []string) error {
	p, err := cli.Compile(name, code)
	if f, isFault := errors.AsType[*fault.Fault](err); isFault && cli.AsJSON(cmd) {
		return cmp.Or(cli.PrintJSON(cmd, map[string]any{"error": f}), errRefused)
	}
	if err != nil {
		return cli.InSource(err, code)
	}
	n := p.Needs()
	wasDeclared := len(declared) > 0
	if !wasDeclared {
		declared = auth.Policy.Suggest(n)
	}
	d, f := auth.Policy.Decide(declared, n, caps.DecideOptions{Tool: name})
	if f != nil {
		err = errRefused
	}
	if cli.AsJSON(cmd) {
		return cmp.Or(cli.PrintJSON(cmd, map[string]any{
			"asks": placed(n.Ops), "calls": placed(n.Calls), "unknown": placed(n.Unknown), "never_allowed": placed(n.Inert),
			"declared": append([]string{}, declared...), "has": append([]string{}, d.Texts...), "notes": append([]string{}, d.Notes...), "refused": f,
		}), err)
	}
	out := cmd.OutOrStdout()
	if len(n.Ops)+len(n.Calls)+len(n.Withs)+len(n.Unknown)+len(n.Inert) == 0 {
		fmt.Fprintln(out, "Pure: it needs no capabilities.")
	}
	tell := func(title string, needs []core.Need) {
		for _, need := range needs {
			in := ""
			if need.In != "" {
				in = " in " + cli.Printable(need.In)
			}
			fmt.Fprintf(out, "%s %s%s, at %s\n", title, cli.Printable(need.Name), in, cli.Printable(placeOf(need)))
		}
	}
	tell("asks for", n.Ops)
	tell("calls the tool", n.Calls)
	tell("can't be known:", n.Unknown)
	tell("never allowed there:", n.Inert)
	if !wasDeclared && len(declared) > 0 {
		fmt.Fprintf(out, "could declare: %s\n", cli.Printable(strings.Join(declared, " ")))
	}
	if f != nil {
		cli.PrintPlaced(out, cli.Red, cli.Faulty(f.Error(), f, code))
	}
	for _, text := range d.Texts {
		fmt.Fprintf(out, "would have: %s\n", cli.Printable(text))
	}
	for _, note := range d.Notes {
		fmt.Fprintf(out, "note: %s\n", cli.Printable(note))
	}
	return err
}

// placed is what code needs, and where, for programs.
func placed(needs []core.Need) []map[string]string {
	list := []map[string]string{}
	for _, need := range needs {
		one := map[string]string{"name": need.Name, "place": placeOf(need)}
		if need.In != "" {
			one["in"] = need.In
		}
		list = append(list, one)
	}
	return list
}

func placeOf(n core.Need) string {
	if n.Line > 0 {
		return fmt.Sprintf("line %d, column %d", n.Line, n.Col)
	}
	if n.At == "" {
		return "the whole code"
	}
	return string(n.At)
}

// revokeOptions are the flags of revoke and restore.
type revokeOptions struct {
	at                    mcpcmd.ServerLock
	pluginLock, principal string
}

func (o *revokeOptions) register(cmd *cobra.Command) {
	o.at.Register(cmd)
	cmd.Flags().StringVar(&o.pluginLock, "plugin-lock", "", "use the plugins in this lock `FILE`")
	cmd.Flags().StringVar(&o.principal, "principal", "", "only of the principal with this `NAME`, whether everybody has it or they alone")
}

// revocable is the operator's list, and a capability to be put on it or taken
// off; known reports whether this program knows its kind.
func (o *revokeOptions) revocable(text string) (r caps.Revocations, e caps.Revocation, known bool, err error) {
	if r, err = app.Revocations(); err != nil {
		return r, e, false, err
	}
	// Where a plugin was changed or is gone, a server that started it before still has it.
	third, err := app.OpenInstalled(o.pluginLock, slog.New(slog.DiscardHandler))
	if err == nil {
		defer third.Close()
	}
	manifests := third.Manifests()
	if servers, err := app.OpenUpstreams(&app.CapOptions{UpstreamOptions: app.UpstreamOptions{McpLock: o.at.Path}}); err == nil { // without one the kind of a server is unknown
		manifests = append(manifests, servers.Kinds...)
	}
	all, err := app.Kinds(manifests...)
	if err != nil {
		return r, e, false, err
	}
	if e, err = caps.RevocationOf(text, all, "", o.principal); err != nil {
		return r, e, false, err
	}
	_, err = caps.ParsePattern(text, all)
	return r, e, err == nil, nil
}

func newRevoke() *cobra.Command {
	var o revokeOptions
	cmd := &cobra.Command{
		Use:   "revoke CAPABILITY",
		Short: "Revoke a grant in every server, until it is restored",
		Long: `Take a grant back. Every running server of this user stops what is under way
within a second and refuses it from then on; flags and policy files don't bring
it back, 'mcp-pif caps restore' does. CAPABILITY is the text it was granted with,
a path in it from the same folder; a folder may have been moved or be gone. With
--principal only that one loses it.

What it hit is printed. The exit status is 1 if no running server has it, or one
doesn't answer; servers that are started later won't have it either way.`,
		Example: `  mcp-pif caps revoke fs:./sandbox
  mcp-pif caps revoke fs:./sandbox --principal ann`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.Failed(revoke(cmd, args[0], &o))
		},
	}
	o.register(cmd)
	return cmd
}

func revoke(cmd *cobra.Command, text string, o *revokeOptions) error {
	r, e, known, err := o.revocable(text)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(r.Path), 0o700); err != nil {
		return err
	}
	before, err := r.Load()
	if err == nil {
		err = r.Add(e)
	}
	if err != nil {
		return err
	}
	got, err := app.AwaitServers(cli.Context(cmd), r)
	if err != nil {
		return err
	}
	hit := got.By(e.ID)
	if isOld := slices.ContainsFunc(before, func(other caps.Revocation) bool { return e.Same(&other) }); !known && !isOld && len(hit.Servers) == 0 {
		if _, err := r.Remove(e); err != nil {
			return err
		}
		return fmt.Errorf("no kind of that name is known, and no running server has %q", text)
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "revoked %s%s\n", cli.Printable(e.Text), ofPrincipal(e.Principal))
	_, alone := statefile.ReadCluster(filepath.Dir(r.Path))
	if alone == nil && hit.Shared == "" {
		fmt.Fprint(out, "no node of the cluster acts under it any more; on this machine: ")
	}
	fmt.Fprint(out, cli.Printable(hit.Words()))
	if len(hit.Servers) == 0 {
		fmt.Fprintf(out, "; those that start later don't get it until 'mcp-pif caps restore %s'", cli.Printable(e.Text))
	}
	fmt.Fprintln(out)
	if alone == nil && hit.Shared != "" {
		return fmt.Errorf("the other nodes share that folder and may have it elsewhere: 'mcp-pif caps revoke %s' revokes it on all", hit.Shared)
	}
	if len(got.Silent) > 0 {
		return fmt.Errorf("not confirmed by %s: end it", strings.Join(got.Silent, ", "))
	}
	if len(hit.Servers) == 0 && alone != nil {
		return errRefused
	}
	return nil
}

// ofPrincipal says whose alone something is.
func ofPrincipal(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" of the principal %q", name)
}

func newRestore() *cobra.Command {
	var o revokeOptions
	cmd := &cobra.Command{
		Use:   "restore CAPABILITY",
		Short: "Restore a revoked grant",
		Long: `Restore a grant that was revoked, and wait until every running server has it
again.

The exit status is 1 if it isn't revoked, or a running server doesn't answer:
it is restored then, and that server has it again once it goes on.`,
		Example: `  mcp-pif caps restore fs:./sandbox`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, e, _, err := o.revocable(args[0])
			if err != nil {
				return cli.Failed(err)
			}
			found, err := r.Remove(e)
			if err == nil && !found {
				found, err = app.RemoveShared(cli.Context(cmd), r, e)
			}
			switch {
			case err != nil:
				return cli.Failed(err)
			case !found:
				return cli.Failed(fmt.Errorf("%s%s is not revoked; 'mcp-pif caps revoked' lists what is", e.Text, ofPrincipal(e.Principal)))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "restored %s%s\n", cli.Printable(e.Text), ofPrincipal(e.Principal))
			got, err := app.AwaitServers(cli.Context(cmd), r)
			if err == nil && len(got.Silent) > 0 {
				err = fmt.Errorf("restored; not yet confirmed by %s: it takes effect there when that goes on", strings.Join(got.Silent, ", "))
			}
			return cli.Failed(err)
		},
	}
	o.register(cmd)
	return cmd
}

func newRevoked() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoked",
		Short: "List what is revoked",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := app.Revocations()
			if err != nil {
				return cli.Failed(err)
			}
			list, err := r.Load()
			if err != nil {
				return cli.Failed(err)
			}
			if cli.AsJSON(cmd) {
				return cli.Failed(cli.PrintJSON(cmd, append([]caps.Revocation{}, list...)))
			}
			if len(list) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing is revoked")
			}
			for _, e := range list {
				at := ""
				if e.Real != "" {
					at = ", which is " + e.Real
				}
				fmt.Fprintln(cmd.OutOrStdout(), cli.Printable(e.Text+ofPrincipal(e.Principal)+at))
			}
			return nil
		},
	}
	cli.JSONFlag(cmd)
	return cmd
}
