package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// installOptions are the flags of install.
type installOptions struct {
	client, name       string
	project, undo, yes bool
	show               bool
}

func newInstall() *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "install --client CLIENT [flags] [-- SERVER-FLAGS]",
		Short: "Add this server to an MCP client's configuration, or remove it",
		Long: `Add this server to the configuration of an MCP client: claude-desktop, claude-code,
cursor or vscode. The change is shown first and made when you agree; nothing else in
the file is touched. What stands after -- are the flags with which the client will
start the server; relative paths in them are made absolute, since a client starts it
in a folder of its own. With --undo the file gets back what stood there before.`,
		Example: `  mcp-pif install --client claude-desktop
  mcp-pif install --client cursor --project -- --cap fs:./sandbox
  mcp-pif install --client cursor --project --undo`,
		RunE: func(cmd *cobra.Command, args []string) error { return install(cmd, &o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.client, "client", "", "the `CLIENT`: claude-desktop, claude-code, cursor or vscode")
	f.StringVar(&o.name, "name", "pif", "the server's `NAME` there")
	f.BoolVar(&o.project, "project", false, "for the project in this folder only, not for all of yours")
	f.BoolVar(&o.undo, "undo", false, "give the file back what stood there before")
	f.BoolVarP(&o.yes, "yes", "y", false, "make the change without asking")
	f.BoolVarP(&o.show, "dry-run", "n", false, "show the change and don't make it")
	return cmd
}

// serverName is what every client accepts as the name of a server.
var serverName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func install(cmd *cobra.Command, o *installOptions, args []string) error {
	c, err := clientNamed(o.client)
	if err != nil {
		return err
	}
	if !serverName.MatchString(o.name) {
		return fmt.Errorf("--name is letters, digits, _ and -, not %q", o.name)
	}
	path, err := c.file(o.project)
	if err != nil {
		return failing(err)
	}
	file, err := openConfiguration(path, c.members)
	if err != nil {
		return failing(err)
	}
	past, err := openInstalls()
	if err != nil {
		return failing(err)
	}
	key := file.path + "#" + o.name
	var entry json.RawMessage
	var back *span
	if o.undo {
		if len(args) > 0 {
			return errors.New("--undo takes no flags of the server")
		}
		was, ok := past.Entries[key]
		if !ok {
			return failing(fmt.Errorf("nothing to undo: install didn't add %q to %s", o.name, path))
		}
		if now := file.entry(o.name); !equalJSON(now, was.Wrote) {
			return failing(fmt.Errorf("%q in %s isn't what install wrote: take it out by hand", o.name, path))
		}
		if entry = was.Before; string(entry) == "null" {
			entry = nil
		}
		back = was.Back
	} else {
		command, err := ownCommand()
		if err != nil {
			return failing(err)
		}
		flags, err := absoluteFlags(args)
		if err != nil {
			return err
		}
		entry = c.entry(command, flags)
	}
	e, err := file.set(o.name, entry)
	if err != nil {
		return failing(err)
	}
	if exact, ok := file.back(back); ok {
		e = exact
		e.remove = o.undo && past.Entries[key].Made
	}
	if e.same() {
		fmt.Fprintf(cmd.OutOrStdout(), "%s has it already.\n", path)
		return nil
	}
	fmt.Fprint(cmd.OutOrStdout(), printableLines(string(diff.Diff(path, e.before, path, e.after))))
	switch agreed, err := o.agreed(cmd); {
	case err != nil:
		return failing(err)
	case !agreed:
		fmt.Fprintln(cmd.ErrOrStderr(), "Nothing was changed.")
		return nil
	}
	if o.undo {
		delete(past.Entries, key)
	} else {
		before := file.entry(o.name)
		was, again := past.Entries[key]
		if again = again && equalJSON(before, was.Wrote); again {
			before = was.Before // what stood there before the first time
		}
		past.Entries[key] = written{Before: before, Wrote: entry, Back: e.reverse(), Made: !e.existed}
		if again {
			past.Entries[key] = written{Before: before, Wrote: entry}
		}
		// Recorded first: an entry that can't be undone would be worse than a
		// record of one that wasn't made.
		if err := past.save(); err != nil {
			return failing(err)
		}
	}
	if err := e.apply(); err != nil {
		return failing(err)
	}
	if o.undo {
		if err := past.save(); err != nil {
			return failing(err)
		}
	}
	change := "changed"
	if e.remove {
		change = "removed: install had made it"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s is %s. %s\n", path, change, c.after)
	return nil
}

// agreed asks whether to make the change.
func (o *installOptions) agreed(cmd *cobra.Command) (bool, error) {
	if o.show || o.yes {
		return o.yes && !o.show, nil
	}
	if !terminal(cmd.InOrStdin()) {
		return false, errors.New("not a terminal, so it can't ask: review the change above, then run again with --yes")
	}
	fmt.Fprint(cmd.ErrOrStderr(), "Make this change? [y/N] ")
	line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}

// ownCommand is the path of this program, as a client can start it tomorrow.
func ownCommand() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if strings.Contains(self, "go-build") {
		return "", errors.New("this program is in a folder that 'go run' removes: install it with 'go install github.com/mcp-pif/mcp-pif/cmd/mcp-pif@latest' and run that")
	}
	return self, nil
}

// absoluteFlags checks the flags of a server, and makes relative paths in them
// absolute.
func absoluteFlags(args []string) ([]string, error) {
	var o serveOptions
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.register(f)
	var flags []string
	err := f.ParseAll(args, func(flag *pflag.Flag, value string) error {
		absolute, err := absoluteFlag(flag.Name, value)
		if err != nil {
			return fmt.Errorf("--%s: %w", flag.Name, err)
		}
		if err := f.Set(flag.Name, value); err != nil {
			return err
		}
		flags = append(flags, "--"+flag.Name+"="+absolute)
		return nil
	})
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("a server takes flags only, not %q", f.Arg(0))
	}
	if err != nil {
		return nil, fmt.Errorf("the flags after --: %w", err)
	}
	if _, err := o.limits(); err != nil {
		return nil, err
	}
	return flags, nil
}

// pathFlags is the flags of a server whose value is a path.
var pathFlags = map[string]bool{"policy": true, "plugin-lock": true, "store": true}

func absoluteFlag(name, value string) (string, error) {
	switch {
	case pathFlags[name] && value != inMemory && value != "":
		return filepath.Abs(value)
	case name != "cap" && name != "deny" && name != "ask":
		return value, nil
	}
	k, err := kinds()
	if err != nil {
		return "", err
	}
	kind, _, _ := strings.Cut(value, ":")
	kind, _, _ = strings.Cut(kind, ".")
	m, shipped := k[kind]
	if !shipped {
		return value, nil // a third party's: the lock file knows it
	}
	c, err := caps.Parse(value, k)
	if err != nil {
		return "", err
	}
	if m.Algebra == caps.Path && !filepath.IsAbs(c.Scope) {
		if c.Scope, err = filepath.Abs(c.Scope); err != nil {
			return "", err
		}
	}
	return c.String(), nil
}

// installs is what install has written, to be undone.
type installs struct {
	path    string
	Entries map[string]written `json:"entries"`
}

// written is one entry: what stood there before (null: nothing), and what was
// written.
type written struct {
	Before json.RawMessage `json:"before"`
	Wrote  json.RawMessage `json:"wrote"`
	// Back is how the file gets its very text back while nobody else changes it.
	Back *span `json:"back,omitempty"`
	// Made is that there was no file before. A client takes an empty one for broken.
	Made bool `json:"made,omitempty"`
}

func openInstalls() (*installs, error) {
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	i := &installs{path: filepath.Join(dir, "installs.json"), Entries: map[string]written{}}
	text, err := os.ReadFile(i.path)
	if errors.Is(err, fs.ErrNotExist) {
		return i, nil
	}
	if err == nil {
		err = json.Unmarshal(text, i)
	}
	if i.Entries == nil {
		i.Entries = map[string]written{}
	}
	return i, err
}

func (i *installs) save() error {
	if err := os.MkdirAll(filepath.Dir(i.path), 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	return statefile.Replace(i.path, append(text, '\n'), 0o600)
}

// equalJSON reports whether two texts are the same JSON, but for white space and
// the order of members.
func equalJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && string(encodeAny(x)) == string(encodeAny(y))
}

func encodeAny(v any) []byte {
	b, _ := json.Marshal(v) // of what was read from JSON
	return b
}
