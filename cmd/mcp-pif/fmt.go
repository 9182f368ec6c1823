package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/core"
)

// newFmt prints code in one of its two spellings, laid out.
func newFmt() *cobra.Command {
	var file string
	var asJSON, write bool
	cmd := &cobra.Command{
		Use:   "fmt [CODE]",
		Short: "Print code in the text form, laid out for reading",
		Long: `Reads code, as JSON or in the text form, and prints it in the text form, or as
canonical JSON with --json. Code is an argument, a file with --file, or standard
input with -. With --write the file is replaced. Comments aren't part of a term:
a source that has some is refused, rather than lose them.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if write && file == "" {
				return errors.New("--write replaces a file: name it with --file")
			}
			code, _, _, err := codeAndInput(cmd, file, args)
			if err != nil {
				return err
			}
			out, err := formatted(code, asJSON)
			if err != nil {
				return err
			}
			if write {
				return os.WriteFile(file, out, 0o644)
			}
			_, err = cmd.OutOrStdout().Write(out)
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "read the code from `FILE`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print canonical JSON")
	cmd.Flags().BoolVarP(&write, "write", "w", false, "write the result back to the file")
	return cmd
}

// formatted gives code in the text form, or as canonical JSON, with a newline. What
// would steer a terminal is written as an escape, in a file too: both spellings read
// it as the same, and a reviewer sees what there is.
func formatted(code string, asJSON bool) ([]byte, error) {
	src := []byte(code)
	var p *core.Program
	var err error
	if json.Valid(src) {
		p, err = core.Compile(src)
	} else {
		if hasComment(code) {
			return nil, errors.New("the code has comments, which would be lost")
		}
		p, err = core.CompileText("", src)
	}
	if err != nil {
		return nil, err
	}
	out := p.Text()
	if asJSON {
		out = p.Canonical()
	}
	return append(bytes.TrimRight(escaped(out), "\n"), '\n'), nil
}

// hasComment reports whether a source in the text form has a comment: // that
// is outside a string.
func hasComment(code string) bool {
	for inString := false; len(code) > 0; {
		switch {
		case inString && code[0] == '\\' && len(code) > 1:
			code = code[2:]
			continue
		case code[0] == '"':
			inString = !inString
		case !inString && strings.HasPrefix(code, "//"):
			return true
		}
		code = code[1:]
	}
	return false
}
