package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
)

// Copied is the tools that the flags mean, in memory, where nothing that is done
// with them lasts; none without such a flag.
func (o *CapOptions) Copied(cmd *cobra.Command, auth *Authority) (*registry.Registry, error) {
	tools := run.NewTools(auth.Policy)
	if path, err := o.Path(""); err != nil || path == "" {
		return tools, err
	}
	k, err := o.Tools(cmd, ToRead)
	if err != nil {
		return nil, err
	}
	defer k.Close()
	all, err := registry.Decode(bytes.NewReader(registry.Encode(k.Registry().Snapshot())))
	if err != nil {
		return nil, err
	}
	_, _, _, err = tools.Import(all)
	return tools, err
}

// httpProfile is whose tools those are of clients that come in without a token, and
// what begins the names of the profiles of those that have one. No client on
// standard input and output has such a name.
const (
	HTTPProfile   = "http"
	PrincipalMark = "http:"
)

// WholeResult is the limit of results on the command line: there is none but
// the budget of memory.
const WholeResult = 1 << 40

// CallTool is a call of a server from the command line.
func CallTool(ctx context.Context, s *engine.Engine, tool string, arguments map[string]any) engine.Answer {
	return s.Call(ctx, engine.Call{Tool: tool, Arguments: cli.Marshal(arguments)})
}

// A Kept is the tools of a store, opened by a command. What it shows goes through
// package engine, so that it is what a model sees.
type Kept struct {
	*engine.Engine
	Journal *journal.Store
	Auth    *Authority
	// Ungrantable: what the last server granted can't be granted now, which was told.
	Ungrantable bool
}

func (k *Kept) Close() {
	if k.Journal != nil {
		k.Journal.Close()
	}
	k.Auth.Close()
}

// How a command opens a store.
type Opening int

const (
	ToRead Opening = iota
	ToWrite
	ToMake // where there is none, too
)

// asPrincipal makes the options those of the principal whose store it is, by whatever name that is opened: its tools may
// do what it may.
func (o *CapOptions) asPrincipal(path string) error {
	if name, ok := strings.CutPrefix(o.Profile, PrincipalMark); ok {
		o.Principal, o.Principals = name, true
	}
	file, err := o.policyFile()
	if err != nil {
		return err
	}
	there, _ := os.Stat(path)
	for name := range file.Principals {
		own, err := FolderPath(FolderName(PrincipalMark + name))
		if err != nil {
			continue
		}
		if kept, err := os.Stat(own); own == path || err == nil && os.SameFile(kept, there) {
			o.Principal, o.Principals = name, true
		}
	}
	return nil
}

// Tools opens the tools that the flags mean. No server starts with it, so that
// nothing but what the command does is recorded.
func (o *CapOptions) Tools(cmd *cobra.Command, how Opening) (_ *Kept, err error) {
	path, err := o.There()
	if err != nil {
		return nil, err
	}
	log := Warnings(cmd)
	k := new(Kept)
	if how == ToRead {
		k.Ungrantable = !o.Recall(cmd, path)
	}
	if err := o.asPrincipal(path); err != nil {
		return nil, err
	}
	if k.Auth, err = o.Prepare(log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			k.Close()
		}
	}()
	if len(k.Auth.Policy.Grants()) > 0 && k.Auth.Revocations.Path != "" {
		if _, err := k.Auth.Revocations.Apply(k.Auth.Policy); err != nil {
			return nil, err
		}
	}
	if how == ToWrite {
		if err := Missing(path); err != nil {
			return nil, err
		}
	}
	if k.Journal, err = OpenStore(path, journal.Options{Log: log, ReadOnly: how == ToRead, Notes: Heads()}); err != nil {
		return nil, err
	}
	tools, problems, err := registry.Open(run.Log(k.Journal), k.Auth.Policy)
	if err != nil {
		return nil, err
	}
	for _, problem := range problems {
		log.Warn("a tool on record can't be made", "error", problem)
	}
	k.Auth.keptAt = path
	consents := k.Auth.Consents()
	if err := consents.Poll(); err != nil {
		log.Warn("what was approved can't be read", "error", err)
	}
	k.Engine = engine.New(engine.Options{
		Registry: tools,
		Broker:   run.New(run.Options{Policy: k.Auth.Policy, Journal: k.Journal, Log: log, Consents: consents}),
		Limits:   engine.Limits{Result: WholeResult},
	})
	return k, nil
}

// Ask makes a call of one of the server's own tools, and reads what it answers.
func (k *Kept) Ask(cmd *cobra.Command, tool string, arguments map[string]any, into any) (engine.Answer, error) {
	a := CallTool(cli.Context(cmd), k.Engine, tool, arguments)
	if a.Fault != nil {
		return a, errors.New(cli.InCommandsOf(cmd, cli.PrintableLines(a.Fault.Error())))
	}
	if into != nil {
		if err := json.Unmarshal(a.Structured, into); err != nil {
			return a, err
		}
	}
	return a, nil
}

// PrintableError is an error whose words can't steer a terminal, and whose hints name
// commands, with the store that this one was given.
func PrintableError(cmd *cobra.Command, err error) error {
	return errors.New(cli.InCommandsOf(cmd, cli.PrintableLines(err.Error())))
}

// Versions is all rows of a tool's history.
func (k *Kept) Versions(cmd *cobra.Command, name string) (all []json.RawMessage, err error) {
	question := map[string]any{"name": name, "limit": 200}
	for {
		var page struct {
			Versions []json.RawMessage
			Next     *struct{ Arguments map[string]any }
		}
		if _, err := k.Ask(cmd, "history", question, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Versions...)
		if page.Next == nil {
			return all, nil
		}
		question = page.Next.Arguments
	}
}

// Newest is the number of a tool's newest version, retired or not.
func (k *Kept) Newest(name string) (int, error) {
	changes, _, err := k.Registry().History(name, 0, 1)
	if err != nil {
		return 0, err
	}
	if len(changes) == 0 {
		return 0, fmt.Errorf("there is no tool %q, and there never was", name)
	}
	return changes[0].Version, nil
}

// Missing is the error of a store that isn't there.
func Missing(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the store %s: there is no such file", cli.Printable(path))
	}
	return nil
}
