package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

// AuthorityFlags are the flags that decide what tools may do, each with where its
// values are.
func (o *CapOptions) AuthorityFlags() map[string]*[]string {
	return map[string]*[]string{
		"cap": &o.Grants, "deny": &o.denies, "ask": &o.Asks, "proc": &o.processes, "secret": &o.secrets, "sandbox": &o.Sandbox, "folder": (*[]string)(&o.Folders),
		"mcp": &o.mcp, "label": &o.labels, "no-flow": &o.noFlows, "flow": &o.presets, "confirm": &o.confirms,
	}
}

// grantedFile is where the flags of the last server on a store are.
func grantedFile(store string) (string, error) {
	dir, err := StateOfPlugin(store, "any")
	return filepath.Join(filepath.Dir(filepath.Dir(dir)), "granted.json"), err
}

// remember keeps the flags that decide what tools may do, for the commands that show
// it later. Nothing depends on it.
func (o *CapOptions) remember(store string) error {
	path, err := grantedFile(store)
	if err != nil || store == "" {
		return err
	}
	said := map[string][]string{"policy": {o.policy}, "plugin-lock": {o.pluginLock}, "mcp-lock": {o.McpLock}}
	for flag, values := range o.AuthorityFlags() {
		said[flag] = slices.Clone(*values)
	}
	for flag, values := range said {
		if flag == "folder" { // it is a capability by now
			flag = "cap"
		}
		for i := range values {
			if values[i], err = FixPaths(flag, values[i], AbsolutePath); err != nil {
				return err
			}
		}
	}
	text, err := json.Marshal(said)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(path); err == nil && string(old) == string(text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return statefile.Replace(path, text, 0o600)
}

// ReadGranted reads those flags; nil: no server is known.
func ReadGranted(store string) (said map[string][]string) {
	path, err := grantedFile(store)
	if err != nil {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &said) != nil {
		return nil
	}
	return said
}

// Recall takes the flags of the last server on a store if none are given, and tells
// so.
func (o *CapOptions) Recall(cmd *cobra.Command, store string) {
	given := o.policy + o.pluginLock + o.McpLock
	for _, values := range o.AuthorityFlags() {
		given += strings.Join(*values, "")
	}
	said := ReadGranted(store)
	if given != "" || said == nil {
		return
	}
	last := *o
	for flag, values := range last.AuthorityFlags() {
		*values = said[flag]
	}
	last.policy, last.pluginLock, last.McpLock = strings.Join(said["policy"], ""), strings.Join(said["plugin-lock"], ""), strings.Join(said["mcp-lock"], "")
	auth, err := last.Look(Warnings(cmd))
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "What the last server granted can't be granted now, so nothing is: %s\n", cli.Printable(err.Error()))
		return
	}
	defer auth.Close()
	*o = last
	if summary := auth.Summary(); summary != "none" && (cmd.Name() == "list" || cmd.Name() == "show") {
		fmt.Fprintf(cmd.ErrOrStderr(), "As the last server here granted: %s. --cap or --policy judge by other grants.\n", cli.Printable(summary))
	}
}
