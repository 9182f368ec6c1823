package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/core"
)

// MaxSource bounds what is read from a file or standard input as code or input.
const MaxSource = 32 << 20

// Source reads code or an input as it was given on the command line: "-" is
// standard input, anything else itself.
func Source(cmd *cobra.Command, text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	b, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), MaxSource+1))
	if err != nil {
		return "", fmt.Errorf("reading standard input: %w", err)
	}
	if len(b) > MaxSource {
		return "", fmt.Errorf("standard input has more than %d bytes", MaxSource)
	}
	return strings.TrimSpace(string(b)), nil
}

// CodeAndInput reads CODE [INPUT], or --file FILE [INPUT].
func CodeAndInput(cmd *cobra.Command, file string, args []string) (code, input string, hasInput bool, err error) {
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", "", false, err
		}
		code = strings.TrimSpace(string(b))
	} else {
		if len(args) == 0 {
			return "", "", false, errors.New("CODE is missing: give a term as JSON, - for standard input, or --file FILE")
		}
		if len(args) > 1 && args[0] == "-" && args[1] == "-" {
			return "", "", false, errors.New("CODE and INPUT can't both come from standard input")
		}
		if info, err := os.Stat(args[0]); err == nil && info.Mode().IsRegular() && strings.HasSuffix(args[0], ".pif") {
			return "", "", false, fmt.Errorf("%s is a file; did you mean --file %[1]s?", args[0])
		}
		if code, err = Source(cmd, args[0]); err != nil {
			return "", "", false, err
		}
		args = args[1:]
	}
	switch len(args) {
	case 0:
		return code, "", false, nil
	case 1:
		input, err = Source(cmd, args[0])
		return code, input, true, err
	}
	return "", "", false, fmt.Errorf("too many arguments: %q is none of CODE and INPUT", args[1])
}

// InputJSON is an input from a command line or a prompt as an argument of run:
// JSON is itself, any other text a string.
func InputJSON(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return Marshal(text)
}

// Marshal gives JSON of what has some.
func Marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("mcp-pif: %T has no JSON: %v", v, err))
	}
	return b
}

// Compile compiles the code of a tool in either spelling.
func Compile(name, code string) (*core.Program, error) {
	if json.Valid([]byte(code)) {
		return core.CompileTool(name, []byte(code))
	}
	return core.CompileText(name, []byte(code))
}
