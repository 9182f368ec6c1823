package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

// Exit statuses.
const (
	StatusFailed = 1
	StatusUsage  = 2
)

// A Failure is the end of a command that was used rightly and could not do what
// was asked. Where err is nil the reason has been told already; status is the exit
// status where that isn't StatusFailed.
type Failure struct {
	Err    error
	Status int
}

func (f *Failure) Error() string {
	if f.Err == nil {
		return "failed"
	}
	return f.Err.Error()
}

func (f *Failure) Unwrap() error { return f.Err }

// Failed makes an error a failure, and leaves nil, and what is one, as it is.
func Failed(err error) error {
	if _, isFailure := errors.AsType[*Failure](err); err == nil || isFailure {
		return err
	}
	return &Failure{Err: err}
}

// UsageError is the end of a command that was given something that can't be meant.
func UsageError(err error) error { return &Failure{Err: err, Status: StatusUsage} }

// Words is an error as a person reads it: of a file that isn't there it names no system call, and a command that was ended
// was interrupted.
func Words(err error) string {
	text := err.Error()
	if f := (*fs.PathError)(nil); errors.As(err, &f) && errors.Is(f, fs.ErrNotExist) {
		text = strings.Replace(text, f.Error(), "there is no file "+f.Path, 1)
	}
	if errors.Is(err, context.Canceled) {
		text = strings.Replace(text, context.Canceled.Error(), "interrupted", 1)
	}
	return text
}

// Closest returns the name that a word was probably meant to be: one that is spelt
// nearly so, or the first that begins so; "" if there is none.
func Closest(word string, names []string) string {
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

// DidYouMean asks whether a name was meant; "" if there is none.
func DidYouMean(near string) string {
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// toolCall matches a call of one of the server's own tools, as hints write it.
var toolCall = regexp.MustCompile(`([Cc]all )?(\{"name":"[a-z]+","arguments":` + object + `\})`)

// object matches an object, with some levels of others in it.
var object = strings.Repeat(`\{(?:[^{}]|`, 8) + `\{[^{}]*\}` + strings.Repeat(`)*\}`, 8)

// shows matches a hint that names one of the server's own tools.
var shows = regexp.MustCompile(`(?m)^(list|history) (shows the (?:tools|versions) there are)`)

// shownCommand matches a command of a hint that reads a store.
var shownCommand = regexp.MustCompile(`'mcp-pif (?:run|tools (?:list|show|history|retire|rollback)|journal runs)`)

// InCommandsOf is [InCommands] with the store that a command was given.
func InCommandsOf(cmd *cobra.Command, text string) string {
	text = InCommands(text)
	for _, name := range []string{"store", "profile"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && !strings.ContainsAny(f.Value.String(), " '\"\\$`") {
			text = shownCommand.ReplaceAllString(text, "$0 --"+name+" "+f.Value.String())
		}
	}
	return text
}

// typedActs matches the hint for code that would act and isn't a tool's.
var typedActs = regexp.MustCompile(`(?m)(?:^.*(?:[Aa]sk the operator|[Gg]ive this command).*\. )?(?:Then e|E)volve a tool with this code and ("capabilities":\[[^\]]*\]), and run that\..*`)

// placeholder matches what stands for a value of the reader's.
var placeholder = regexp.MustCompile(`([:\[,{])…`)

// spoken is what hints say to a model, and its words here.
var spoken = strings.NewReplacer(
	", or make one with evolve", "", ", or ask help what it is called here", "; 'mcp-pif help language' lists the operations", `(run's "steps")`, "(run's --steps)", `(run's "memory")`, "(run's --memory and --max-memory)",
	"For more ask the operator to start the server with", "For more give this command", "Ask the operator to start the server with", "Give this command", "ask the operator to start the server with", "give this command",
	`Plan it again: run with`, `Have your model plan it again: run with`,
	`Call run with "plan" and "resume":true once`, `Have your model call run with "plan" and "resume":true once`,
	"if_version is", "--if-version is", "with describe, work your change into it, then use if_version", "with 'mcp-pif tools show NAME', then use --if-version",
	"with describe, then use if_version", "with 'mcp-pif tools show NAME', then use --if-version", "with history, then use if_version", "with 'mcp-pif tools history NAME', then use --if-version",
	"version; history shows them", "version; 'mcp-pif tools history NAME' shows them", "Evolve both at once:", "Have your model evolve both at once:",
	`Write {"record":{}} for an empty record, [] for an empty list`, "Write ({}) for an empty record, [] for an empty list",
)

// InCommands returns a text whose hints name commands in place of calls of a model.
func InCommands(text string) string {
	text = shows.ReplaceAllString(text, "'mcp-pif tools $1' $2")
	text = strings.ReplaceAll(text, "'mcp-pif tools history' shows", "'mcp-pif tools history NAME' shows")
	text = spoken.Replace(text)
	text = typedActs.ReplaceAllString(text, "Code that is typed can't act, whatever --cap grants. Ask your model to make a tool of it with $1; 'mcp-pif tools list' shows it then.")
	return toolCall.ReplaceAllStringFunc(text, func(call string) string {
		parts := toolCall.FindStringSubmatch(call)
		var c struct {
			Name      string
			Arguments struct {
				Name    string
				Tool    string
				Code    string
				Run     string
				Input   json.RawMessage
				Version int
				From    int `json:"from_version"`
			}
		}
		if json.Unmarshal([]byte(placeholder.ReplaceAllString(parts[2], "${1}null")), &c) != nil {
			return call
		}
		name := c.Arguments.Name
		if c.Arguments.Version > 0 {
			name += "@" + strconv.Itoa(c.Arguments.Version)
		}
		command, known := map[string]string{
			"list": "tools list", "describe": "tools show " + name, "history": "tools history " + name, "help": "help " + name,
			"journal": "journal runs", "run": "run " + cmp.Or(c.Arguments.Tool, "CODE") + " INPUT", "retire": "tools retire " + name,
			"evolve": "tools rollback " + name + " " + strconv.Itoa(c.Arguments.From),
		}[c.Name]
		if !known || c.Name == "evolve" && c.Arguments.From == 0 || c.Name == "run" && c.Arguments.Tool+c.Arguments.Code == "" {
			return call
		}
		command = "'" + strings.TrimSpace("mcp-pif "+command) + "'"
		if in := c.Arguments.Input; c.Name == "run" && len(in) > 0 && in[0] == '{' && len(in) < 200 && !strings.Contains(parts[2], "…") {
			command += " with the INPUT " + string(in)
		}
		switch parts[1] {
		case "Call ":
			command = "Run " + command
		case "call ":
			command = "run " + command
		}
		return command
	})
}
