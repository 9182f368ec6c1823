package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/core"
)

// MaxSource bounds what is read from a file or standard input as code or input.
const MaxSource = 32 << 20

// Strings registers a flag that may be repeated, as pflag's StringArrayVar does; that one
// prepares a writer of CSV for each such flag of each command whenever the program starts.
func Strings(flags *pflag.FlagSet, to *[]string, name, usage string) {
	flags.Var((*list)(to), name, usage)
}

// list is a pflag.SliceValue.
type list []string

func (l *list) Append(s string) error    { return l.Set(s) }
func (l *list) Replace(s []string) error { *l = s; return nil }
func (l *list) GetSlice() []string       { return *l }
func (l *list) Set(s string) error       { *l = append(*l, s); return nil }
func (l *list) String() string           { return strings.Join(*l, ",") }
func (l *list) Type() string             { return "stringArray" }

// Source reads code as it was given on the command line: "-" is standard input, anything
// else itself.
func Source(cmd *cobra.Command, text string) (string, error) {
	code, err := Input(cmd, text)
	if text == "-" {
		code = strings.TrimSpace(code)
	}
	return code, err
}

// Input is [Source] for an input: of standard input no white space is taken off but one line
// end at its end.
func Input(cmd *cobra.Command, text string) (string, error) {
	if text != "-" {
		return unmarked(cmd, text), nil
	}
	b, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), MaxSource+1))
	if err != nil {
		return "", fmt.Errorf("reading standard input: %w", err)
	}
	if len(b) > MaxSource {
		return "", fmt.Errorf("standard input has more than %d bytes", MaxSource)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), nil
}

// MarkNegatives puts a space before each argument such as -5, which is no flag, and such as
// " -5", so that it stays another, up to --.
func MarkNegatives(args []string) []string {
	marked := slices.Clone(args)
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if isNegative(strings.TrimLeft(arg, " ")) {
			marked[i] = " " + arg
		}
	}
	return marked
}

// unmarked takes the space off again.
func unmarked(cmd *cobra.Command, arg string) string {
	if n := cmd.ArgsLenAtDash(); n >= 0 && slices.Contains(cmd.Flags().Args()[n:], arg) {
		return arg
	}
	if rest, isMarked := strings.CutPrefix(arg, " "); isMarked && isNegative(strings.TrimLeft(rest, " ")) {
		return rest
	}
	return arg
}

func isNegative(arg string) bool {
	return len(arg) > 1 && arg[0] == '-' && '0' <= arg[1] && arg[1] <= '9'
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
			return "", "", false, errors.New("CODE is missing: give a program, - for standard input, or --file FILE")
		}
		if len(args) > 1 && args[0] == "-" && args[1] == "-" {
			return "", "", false, errors.New("CODE and INPUT can't both come from standard input")
		}
		if err := NoFile(args[0]); err != nil {
			return "", "", false, err
		}
		if info, err := os.Stat(args[0]); err == nil && info.Mode().IsRegular() && strings.HasSuffix(args[0], ".pif") {
			return "", "", false, fmt.Errorf("%s is a file; did you mean --file %[1]s?", args[0])
		}
		if code, err = Source(cmd, args[0]); err != nil {
			return "", "", false, err
		}
		args = args[1:]
	}
	if code == "" {
		return "", "", false, errors.New("CODE is empty: give a program")
	}
	switch len(args) {
	case 0:
		return code, "", false, nil
	case 1:
		input, err = Input(cmd, args[0])
		return code, input, true, err
	}
	return "", "", false, fmt.Errorf("too many arguments: %q is none of CODE and INPUT", args[1])
}

// NoFile is the error of an argument that can only mean a file or a folder, and isn't there.
func NoFile(arg string) error {
	if strings.HasSuffix(arg, ".pif") || strings.HasSuffix(arg, "/") {
		if _, err := os.Stat(arg); errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(arg, " \t\n(=[{") {
			return UsageError(fmt.Errorf("there is no file %s", arg))
		}
	}
	return nil
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
	if name == "" {
		return core.CompileInline([]byte(code))
	}
	return core.CompileText(name, []byte(code))
}
