package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpcmd"
	"github.com/mcp-pif/mcp-pif/cmd/internal/packs"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// The shell completes what a command or a flag takes: each row lists the words there
// are now. What can't be read completes to nothing.

// A listing returns the words that fit after the arguments already there.
type listing func(cmd *cobra.Command, args []string) []string

// argumentWords are what arguments of commands can be, by the command's path.
var argumentWords = map[string]listing{
	"tools show":     first(versionsToo),
	"tools history":  first(allTools),
	"tools diff":     toolThenVersions,
	"tools rollback": toolThenVersions,
	"tools retire":   first(allTools),
	"journal show":   first(runNames),
	"replay":         first(runNames),
	"step":           first(runNames),
	"resolve":        first(runNames),
	"tasks show":     first(runNames),
	"tasks cancel":   first(runNames),
	"tasks every":    second(allTools),
	"flow of":        first(runNames),
	"flow explain":   first(allTools),
	"flow release":   first(allTools),
	"run":            first(allTools),
	"approve":        first(questionIDs),
	"caps restore":   first(revokedTexts),
	"caps revoke":    first(grantedTexts),
	"mcp show":       serverThenTools,
	"mcp accept":     serverThenTools,
	"mcp diff":       first(serverNames),
	"mcp upgrade":    first(serverNames),
	"mcp remove":     first(serverNames),
	"mcp test":       serverNames,
	"mcp try":        first(serverNames),
	"mcp logs":       first(serverNames),
	"mcp login":      first(serverNames),
	"mcp logout":     first(serverNames),
	"plugin inspect": first(pluginNames),
	"plugin accept":  first(pluginNames),
	"plugin upgrade": first(pluginNames),
	"plugin remove":  first(pluginNames),
}

// flagWords are what values of flags can be, by the flag's name.
var flagWords = map[string]listing{
	"profile":   func(*cobra.Command, []string) []string { names, _ := app.Profiles(); return names },
	"run":       runNames,
	"with":      versionsToo,
	"tool":      allTools,
	"clear":     answeredNames,
	"cap":       kindNames,
	"deny":      kindNames,
	"ask":       kindNames,
	"declare":   kindNames,
	"log-level": fixed("debug", "info", "warn", "error"),
	"ask-via":   fixed("terminal", "elicitation"),
	"sandbox":   fixed("require", "best-effort", "off"),
	"input-as":  fixed("data", "auto", "term"),
	"flow":      fixed("designate", "report", "start=", "count"),
	"confirm":   kindNames,
}

// bashWords is in place of what the script of cobra takes from the package bash-completion, which
// gives them where it is loaded: the words before the cursor, split at white space alone.
const bashWords = `__mcp-pif_words() {
    if declare -F _get_comp_words_by_ref >/dev/null; then
        _get_comp_words_by_ref "$@"
        return
    fi
    local line=${COMP_LINE:0:COMP_POINT}
    IFS=$' \t\n' read -ra words <<<"$line"
    [[ $line != *[[:space:]] ]] || words+=("")
    cword=$((${#words[@]} - 1))
    cur=${words[cword]} prev=${words[cword - 1]}
}

`

// completeInBash has the script of bash work without the package bash-completion.
func completeInBash(root *cobra.Command) {
	bash, _, _ := root.Find([]string{"completion", "bash"})
	bash.Long = strings.Replace(bash.Long, "This script depends on the 'bash-completion' package.\nIf it is not installed already, you can install it via your OS's package manager.", "It works with and without the package bash-completion.", 1)
	bash.RunE = func(cmd *cobra.Command, _ []string) error {
		var script strings.Builder
		short, err := cmd.Flags().GetBool("no-descriptions")
		if err = errors.Join(err, root.GenBashCompletionV2(&script, !short)); err != nil {
			return err
		}
		_, err = fmt.Fprint(root.OutOrStdout(), bashWords, strings.ReplaceAll(script.String(), "_get_comp_words_by_ref", "__mcp-pif_words"))
		return err
	}
}

// completeFlags registers these rows with every command.
func completeFlags(root *cobra.Command) {
	for _, c := range root.Commands() {
		completeFlags(c)
	}
	if words := argumentWords[strings.TrimPrefix(root.CommandPath(), "mcp-pif ")]; words != nil {
		root.ValidArgsFunction = words.complete
	}
	root.Flags().VisitAll(func(f *pflag.Flag) {
		words := flagWords[f.Name]
		if f.Name == "kind" && root.Parent() != nil && root.Parent().Name() == "journal" {
			words = eventKinds
		}
		if f.Name == "with" && f.Value.Type() == "stringSlice" { // of a server
			words = packNames
		}
		if words != nil {
			_ = root.RegisterFlagCompletionFunc(f.Name, words.complete)
		}
	})
}

func (words listing) complete(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	var fit []string
	for _, word := range words(cmd, args) {
		withVerb := strings.HasSuffix(word, ":") && strings.Contains(word, ".")
		if strings.HasPrefix(word, prefix) && (!withVerb || strings.Contains(prefix, ".")) {
			fit = append(fit, word)
			if strings.HasSuffix(word, ":") {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
		}
	}
	return fit, directive
}

func fixed(words ...string) listing {
	return func(*cobra.Command, []string) []string { return words }
}

// first lists for the first argument only.
func first(words listing) listing {
	return func(cmd *cobra.Command, args []string) []string {
		if len(args) > 0 {
			return nil
		}
		return words(cmd, args)
	}
}

// second lists for the second argument only.
func second(words listing) listing {
	return func(cmd *cobra.Command, args []string) []string {
		if len(args) != 1 {
			return nil
		}
		return words(cmd, args)
	}
}

func packNames(*cobra.Command, []string) (names []string) {
	for i := range packs.All {
		names = append(names, packs.All[i].Name)
	}
	return names
}

// completedServers reads the lock file of servers that the flags typed so far mean.
func completedServers(cmd *cobra.Command) map[string]*mcplock.Server {
	var at mcpcmd.ServerLock
	at.Path, _ = cmd.Flags().GetString("mcp-lock")
	l, err := at.Read()
	if err != nil {
		return nil
	}
	return l.Servers
}

func serverNames(cmd *cobra.Command, _ []string) []string {
	return slices.Sorted(maps.Keys(completedServers(cmd)))
}

// serverThenTools lists the servers, and then the tools of the one that is named.
func serverThenTools(cmd *cobra.Command, args []string) []string {
	if len(args) == 0 {
		return serverNames(cmd, args)
	}
	if s := completedServers(cmd)[args[0]]; s != nil {
		return slices.Sorted(maps.Keys(s.Tools))
	}
	return nil
}

func pluginNames(cmd *cobra.Command, _ []string) (names []string) {
	path, _ := cmd.Flags().GetString("plugin-lock")
	if l, err := lock.Read(path); err == nil {
		for i := range l.Entries {
			names = append(names, l.Entries[i].Name)
		}
	}
	return names
}

// completedStore opens the store that the flags typed so far mean; nil: there is none.
func completedStore(cmd *cobra.Command) *journal.Store {
	var o app.StoreOptions
	o.Store, _ = cmd.Flags().GetString("store")
	o.Profile, _ = cmd.Flags().GetString("profile")
	path, err := o.There()
	if err != nil {
		return nil
	}
	s, err := journal.Open(path, journal.Options{ReadOnly: true})
	if err != nil {
		return nil
	}
	return s
}

// completedTools reads the tools of that store.
func completedTools(cmd *cobra.Command, read func(*registry.Registry) []string) []string {
	s := completedStore(cmd)
	if s == nil {
		return nil
	}
	defer s.Close()
	tools, _, err := registry.Open(run.Log(s), nil)
	if err != nil {
		return nil
	}
	return read(tools)
}

func allTools(cmd *cobra.Command, _ []string) []string {
	return completedTools(cmd, func(tools *registry.Registry) (names []string) {
		for _, t := range tools.Snapshot().All() {
			names = append(names, t.Name)
		}
		return names
	})
}

// versionsToo lists the tools, and each version of those that have several.
func versionsToo(cmd *cobra.Command, _ []string) []string {
	return completedTools(cmd, func(tools *registry.Registry) (names []string) {
		for _, t := range tools.Snapshot().All() {
			names = append(names, t.Name)
			for v := 1; v <= t.Version; v++ {
				names = append(names, t.Name+"@"+strconv.Itoa(v))
			}
		}
		return names
	})
}

// toolThenVersions lists the tools, and then the versions of the one that is named.
func toolThenVersions(cmd *cobra.Command, args []string) []string {
	if len(args) == 0 {
		return allTools(cmd, args)
	}
	return completedTools(cmd, func(tools *registry.Registry) (versions []string) {
		changes, _, _ := tools.History(args[0], 0, 100)
		for _, c := range changes {
			versions = append(versions, strconv.Itoa(c.Version))
		}
		return versions
	})
}

func runNames(cmd *cobra.Command, _ []string) (names []string) {
	s := completedStore(cmd)
	if s == nil {
		return nil
	}
	defer s.Close()
	events, _, _ := s.Read(journal.Query{Kind: journal.RunStarted, Limit: 50, Last: true})
	for i := range events {
		names = append(names, events[i].Run)
	}
	return names
}

func eventKinds(*cobra.Command, []string) []string {
	kinds := map[string]bool{}
	for _, k := range journal.Kinds {
		family, _, _ := strings.Cut(string(k), ".")
		kinds[family], kinds[string(k)] = true, true
	}
	return slices.Sorted(maps.Keys(kinds))
}

// kindNames lists the kinds, and each with each of its verbs.
func kindNames(*cobra.Command, []string) (names []string) {
	k, _ := app.Kinds()
	for kind, m := range k {
		names = append(names, kind+":")
		for _, v := range m.Verbs {
			names = append(names, kind+"."+v.Name+":")
		}
	}
	slices.Sort(names)
	return names
}

func questionIDs(*cobra.Command, []string) (ids []string) {
	path, _ := app.ConsentFile()
	questions, _, _ := (&caps.Consents{Path: path}).All()
	for i := range questions {
		ids = append(ids, questions[i].ID)
	}
	plans, requests, _ := waiting(&journalOptions{})
	for _, p := range plans {
		ids = append(ids, p.ID)
	}
	for _, q := range requests {
		ids = append(ids, q.ID)
	}
	return ids
}

func answeredNames(*cobra.Command, []string) (names []string) {
	path, _ := app.ConsentFile()
	_, answers, _ := (&caps.Consents{Path: path}).All()
	for i := range answers {
		names = append(names, answers[i].Tool)
	}
	return names
}

func revokedTexts(*cobra.Command, []string) (texts []string) {
	r, _ := app.Revocations()
	list, _ := r.Load()
	for _, e := range list {
		texts = append(texts, e.Text)
	}
	return texts
}

// grantedTexts lists what the running servers have, and what the last server of each profile granted.
func grantedTexts(*cobra.Command, []string) (texts []string) {
	servers, _ := app.Running()
	for i := range servers {
		texts = append(texts, servers[i].Grants...)
	}
	names, _ := app.Profiles()
	for _, name := range names {
		path, _ := app.FolderPath(name)
		texts = append(texts, app.ReadGranted(path)["cap"]...)
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}
