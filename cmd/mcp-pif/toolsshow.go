package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

// A shownTool is a tool as list and describe answer it.
type shownTool struct {
	Name        string `json:"name"`
	Version     int    `json:"version"`
	Hash        string `json:"hash"`
	Time        string `json:"time"`
	Description string `json:"description"`
	// Text is the code as it was written; Code, of a tool that was written in JSON.
	Text         string          `json:"text"`
	Code         json.RawMessage `json:"code"`
	Canonical    json.RawMessage `json:"canonical"`
	Inputs       []string        `json:"inputs"`
	Declared     []string        `json:"declared"`
	Capabilities []string        `json:"capabilities"`
	State        string          `json:"state"`
	Why          string          `json:"why"`
	BoundTo      []struct {
		Name    string `json:"name"`
		Version int    `json:"version"`
	} `json:"bound_to"`
	CalledBy []string           `json:"called_by"`
	Reaches  []string           `json:"reaches"`
	Examples []registry.Example `json:"examples"`
	Notes    []string           `json:"notes"`
	// InputSchema is there where one was declared.
	InputSchema json.RawMessage `json:"input_schema"`
}

func newToolsList() *cobra.Command {
	return toolsCommand(&cobra.Command{
		Use: "list", SuggestFor: []string{"ls"}, Short: "List the tools", Args: cobra.NoArgs,
	}, app.ToRead, func(cmd *cobra.Command, k *app.Kept, _ []string) error {
		var list struct{ Tools []shownTool }
		a, err := k.Ask(cmd, "list", nil, &list)
		if err != nil {
			return err
		}
		if cli.AsJSON(cmd) {
			return printIndented(cmd, a.Structured)
		}
		if len(list.Tools) == 0 {
			fmt.Fprintln(cmd.OutOrStdout(), "no tools yet")
			return nil
		}
		var rows [][]string
		for _, t := range list.Tools {
			what := cli.FirstLine(t.Description, 60)
			if t.Why != "" {
				what = cli.FirstLine(t.Why, 200)
			}
			rows = append(rows, []string{t.Name, strconv.Itoa(t.Version), t.State, cmp.Or(strings.Join(t.Capabilities, " "), "-"), what})
		}
		cli.PrintTable(cmd.OutOrStdout(), []string{"NAME", "VERSION", "STATE", "MAY", "DESCRIPTION"}, rows)
		printUngranted(cmd, k, list.Tools)
		return nil
	})
}

// printUngranted says that nothing is granted, where a tool is blocked.
func printUngranted(cmd *cobra.Command, k *app.Kept, tools []shownTool) {
	if !k.Ungrantable && len(k.Auth.Policy.Grants()) == 0 && slices.ContainsFunc(tools, func(t shownTool) bool { return t.State == "blocked" }) {
		fmt.Fprintln(cmd.ErrOrStderr(), "Judged by no grants: no server here granted anything on this store. --cap or --policy judge by others.")
	}
}

func newToolsShow() *cobra.Command {
	var canonical bool
	c := toolsCommand(&cobra.Command{
		Use: "show NAME[@V]", Short: "Show details of a tool, or of one version, and its code as it was written", Args: cobra.ExactArgs(1),
	}, app.ToRead, func(cmd *cobra.Command, k *app.Kept, args []string) error {
		question, err := question(k, args[0])
		if err != nil {
			return err
		}
		question["detail"], question["canonical"] = true, canonical
		var t shownTool
		a, err := k.Ask(cmd, "describe", question, &t)
		if err != nil {
			return err
		}
		if cli.AsJSON(cmd) {
			return printIndented(cmd, a.Structured)
		}
		t.print(cmd.OutOrStdout())
		printUngranted(cmd, k, []shownTool{t})
		return nil
	})
	c.Flags().BoolVar(&canonical, "canonical", false, "show the code as canonical JSON, which is what is hashed")
	return c
}

// question is what describe is asked about NAME[@V]. A name may hold an @ itself.
func question(k *app.Kept, text string) (map[string]any, error) {
	if _, ok := k.Registry().Snapshot().Get(text); ok {
		return map[string]any{"name": text}, nil
	}
	name, version, err := nameAndVersion(text)
	q := map[string]any{"name": name}
	if version > 0 {
		q["version"] = version
	}
	return q, err
}

// print writes a tool for a person.
func (t *shownTool) print(out io.Writer) {
	fmt.Fprintf(out, "%s@%d, %s", cli.Printable(t.Name), t.Version, t.State)
	if t.Why != "" {
		fmt.Fprintf(out, ": %s", cli.Printable(t.Why))
	}
	fmt.Fprintln(out)
	line := func(title, text string) {
		if text != "" {
			fmt.Fprintf(out, "  %-13s %s\n", title+":", cli.Printable(text))
		}
	}
	line("description", cli.FirstLine(t.Description, 500))
	line("made", localTime(t.Time))
	line("hash", t.Hash)
	line("inputs", strings.Join(t.Inputs, ", "))
	line("input schema", string(t.InputSchema))
	line("declares", strings.Join(t.Declared, " "))
	line("may", strings.Join(t.Capabilities, " "))
	var bound []string
	for _, b := range t.BoundTo {
		bound = append(bound, fmt.Sprintf("%s@%d", b.Name, b.Version))
	}
	line("bound to", strings.Join(bound, " "))
	line("reaches", strings.Join(t.Reaches, " "))
	line("called by", strings.Join(t.CalledBy, " "))
	for i := range t.Examples {
		line("example", exampleLine(&t.Examples[i]))
	}
	for _, note := range slices.DeleteFunc(t.Notes, ofNext) {
		line("note", note)
	}
	code := cmp.Or(string(t.Canonical), t.Text, string(t.Code))
	fmt.Fprintf(out, "\n%s\n", cli.PrintableLines(strings.TrimRight(code, "\n")))
}

// exampleLine is an example in a line.
func exampleLine(e *registry.Example) string {
	text := fmt.Sprintf("%s → %s", e.Input, e.Expect)
	if e.Error != "" {
		text = fmt.Sprintf("%s fails: %s", e.Input, e.Error)
	}
	for _, o := range e.Effects {
		gives := string(o.Value)
		if o.Error != "" {
			gives = "fails: " + o.Error
		}
		text += fmt.Sprintf("; %s %s gives %s", o.Op, o.Args, gives)
	}
	return text
}

// localTime is an answer's time as people read it.
func localTime(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return at.Local().Format("2006-01-02 15:04:05")
}

func newToolsHistory() *cobra.Command {
	return toolsCommand(&cobra.Command{
		Use: "history NAME", Short: "Show a tool's versions, the newest first", Args: cobra.ExactArgs(1),
	}, app.ToRead, func(cmd *cobra.Command, k *app.Kept, args []string) error {
		all, err := k.Versions(cmd, args[0])
		if err != nil {
			return err
		}
		if cli.AsJSON(cmd) {
			return cli.PrintJSON(cmd, map[string]any{"name": args[0], "versions": all})
		}
		var rows [][]string
		for _, raw := range all {
			var v struct {
				Version, From, Bytes          int
				Kind, Time, Hash, Description string
				Capabilities                  []string
			}
			if err := json.Unmarshal(raw, &v); err != nil {
				return err
			}
			kind := strings.ReplaceAll(v.Kind, "_", " ")
			if v.From > 0 {
				kind += fmt.Sprintf(" to %d", v.From)
			}
			rows = append(rows, []string{
				strconv.Itoa(v.Version), kind, localTime(v.Time), fmt.Sprintf("%.12s", v.Hash), cmp.Or(strings.Join(v.Capabilities, " "), "-"), cli.FirstLine(v.Description, 60),
			})
		}
		cli.PrintTable(cmd.OutOrStdout(), []string{"VERSION", "CHANGE", "TIME", "HASH", "MAY", "DESCRIPTION"}, rows)
		return nil
	})
}

func newToolsDiff() *cobra.Command {
	return toolsCommand(&cobra.Command{
		Use: "diff NAME V1 [V2]", Short: "Compare two versions of a tool, or one with the current one",
		Long: `Compare two versions of a tool as they were written, with their descriptions, the
capabilities they declare and their examples. Without V2 the other one is the newest.`,
		Args: cobra.RangeArgs(2, 3),
	}, app.ToRead, func(cmd *cobra.Command, k *app.Kept, args []string) error {
		name := args[0]
		first, err := versionNumber(args[1])
		if err != nil {
			return err
		}
		second := 0
		if len(args) == 3 {
			if second, err = versionNumber(args[2]); err != nil {
				return err
			}
		} else if second, err = k.Newest(name); err != nil {
			return err
		}
		both := make([]*registry.Tool, 2)
		for i, v := range []int{first, second} {
			if both[i], err = k.Registry().Version(registry.Ref{Name: name, Version: v}); err != nil {
				return app.PrintableError(cmd, err)
			}
		}
		text := string(registry.Diff(both[0], both[1]))
		if cli.AsJSON(cmd) {
			return cli.PrintJSON(cmd, map[string]any{"name": name, "versions": []int{first, second}, "diff": text})
		}
		if cli.PrintDiff(cmd.OutOrStdout(), text); text == "" && first == second && len(args) == 2 {
			fmt.Fprintf(cmd.ErrOrStderr(), "version %d is the current one\n", first)
		} else if text == "" {
			fmt.Fprintln(cmd.ErrOrStderr(), "they are the same")
		}
		return nil
	})
}
