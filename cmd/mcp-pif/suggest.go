package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

// closest returns the name that a word was probably meant to be: one that is spelt
// nearly so, or the first that begins so; "" if there is none.
func closest(word string, names []string) string {
	if near := prim.Closest(word, names); near != "" || word == "" {
		return near
	}
	for _, name := range names {
		if strings.HasPrefix(name, word) {
			return name
		}
	}
	return ""
}

// didYouMean asks whether a name was meant; "" if there is none.
func didYouMean(near string) string {
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// toolCall matches a call of one of the server's own tools, as hints write it.
var toolCall = regexp.MustCompile(`(Call )?(\{"name":"[a-z]+","arguments":\{[^{}]*\}\})`)

// shows matches a hint that names one of the server's own tools.
var shows = regexp.MustCompile(`(?m)^(list|history) (shows the (?:tools|versions) there are)`)

// inCommands returns a text whose hints name commands in place of calls of a model.
func inCommands(text string) string {
	text = shows.ReplaceAllString(text, "'mcp-pif tools $1' $2")
	text = strings.ReplaceAll(text, ", or make one with evolve", "")
	return toolCall.ReplaceAllStringFunc(text, func(call string) string {
		parts := toolCall.FindStringSubmatch(call)
		var c struct {
			Name      string
			Arguments struct {
				Name    string
				Tool    string
				Run     string
				Version int
			}
		}
		if json.Unmarshal([]byte(parts[2]), &c) != nil {
			return call
		}
		name := c.Arguments.Name
		if c.Arguments.Version > 0 {
			name += "@" + strconv.Itoa(c.Arguments.Version)
		}
		command, known := map[string]string{
			"list": "tools list", "describe": "tools show " + name, "history": "tools history " + name, "help": "help " + name,
			"journal": "journal runs", "retire": "tools retire " + name,
		}[c.Name]
		if !known {
			return call
		}
		command = "'" + strings.TrimSpace("mcp-pif "+command) + "'"
		if parts[1] != "" {
			command = "Run " + command
		}
		return command
	})
}

// suggest adds to the error of a command line what was probably meant: the command or
// the flag.
func suggest(root, cmd *cobra.Command, args []string, err error) error {
	var f *failure
	if err == nil || errors.As(err, &f) {
		return err
	}
	if found, rest, _ := root.Find(args); found != nil && found.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		var names []string
		for _, c := range found.Commands() {
			if slices.Contains(c.SuggestFor, rest[0]) {
				return fmt.Errorf("%s has no command %q%s", found.CommandPath(), rest[0], didYouMean(c.Name()))
			}
			names = append(names, c.Name())
		}
		return fmt.Errorf("%s has no command %q%s", found.CommandPath(), rest[0], didYouMean(closest(rest[0], names)))
	}
	if flag, unknown := strings.CutPrefix(err.Error(), "unknown flag: --"); unknown {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := closest(flag, names); near != "" {
			return fmt.Errorf("%w%s", err, didYouMean("--"+near))
		}
	}
	return err
}
