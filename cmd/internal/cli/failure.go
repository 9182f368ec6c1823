package cli

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"

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
var toolCall = regexp.MustCompile(`([Cc]all )?(\{"name":"[a-z]+","arguments":\{[^{}]*\}\})`)

// shows matches a hint that names one of the server's own tools.
var shows = regexp.MustCompile(`(?m)^(list|history) (shows the (?:tools|versions) there are)`)

// typedActs matches the hint for code that would act and isn't a tool's.
var typedActs = regexp.MustCompile(`(?:Then e|E)volve a tool with this code and ("capabilities":\[[^\]]*\]), and run that\.`)

// InCommands returns a text whose hints name commands in place of calls of a model.
func InCommands(text string) string {
	text = shows.ReplaceAllString(text, "'mcp-pif tools $1' $2")
	text = strings.ReplaceAll(text, ", or make one with evolve", "")
	text = typedActs.ReplaceAllString(text, "Code that is typed can't act, whatever --cap grants. Ask your model to make a tool of it with $1; 'mcp-pif tools list' shows it then.")
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
		if json.Unmarshal([]byte(strings.Replace(parts[2], `"input":…`, `"input":null`, 1)), &c) != nil {
			return call
		}
		name := c.Arguments.Name
		if c.Arguments.Version > 0 {
			name += "@" + strconv.Itoa(c.Arguments.Version)
		}
		command, known := map[string]string{
			"list": "tools list", "describe": "tools show " + name, "history": "tools history " + name, "help": "help " + name,
			"journal": "journal runs", "run": "run " + c.Arguments.Tool + " INPUT", "retire": "tools retire " + name,
		}[c.Name]
		if !known || c.Name == "run" && c.Arguments.Tool == "" {
			return call
		}
		command = "'" + strings.TrimSpace("mcp-pif "+command) + "'"
		switch parts[1] {
		case "Call ":
			command = "Run " + command
		case "call ":
			command = "run " + command
		}
		return command
	})
}
