package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// newFmt prints code in one of its two spellings, laid out.
func newFmt() *cobra.Command {
	var file string
	var asJSON, write, check bool
	cmd := &cobra.Command{
		Use:   "fmt [CODE | FILE | FOLDER]…",
		Short: "Lay code out for reading",
		Long: `Read code, as JSON or in the text form, and print it in the text form, or as
canonical JSON with --json. Code is an argument, a file, or standard input with -.
Of the text form only white space changes: comments and pipelines stay.

With --write files are replaced, and of folders all files below them that end in
.pif. With --check nothing is written: the exit status is 1 if a file would change,
and the changes are printed.`,
		Example: `  mcp-pif fmt 'n=>n*n'
  mcp-pif fmt --write tools
  mcp-pif fmt --check .`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				args = append(args, file)
			}
			paths, err := pifFiles(args)
			switch {
			case err != nil:
				return cli.Failed(err)
			case len(paths) == 0 && (write || check):
				return errors.New("--write and --check are for files: name some, or a folder")
			case len(paths) == 0:
				code, _, _, err := cli.CodeAndInput(cmd, "", args)
				if err != nil {
					return err
				}
				out, err := formatted(code, asJSON)
				if err == nil {
					_, err = cmd.OutOrStdout().Write(out)
				}
				return cli.Failed(cli.InSource(err, code))
			}
			return cli.Failed(formatFiles(cmd, paths, asJSON, write, check))
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "read the code from `FILE`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print canonical JSON")
	cmd.Flags().BoolVarP(&write, "write", "w", false, "write the result back to the files")
	cmd.Flags().BoolVar(&check, "check", false, "print what would change, and fail if something would")
	return cmd
}

// pifFiles returns the files that arguments name, with those of folders; none if an
// argument is code.
func pifFiles(args []string) (paths []string, err error) {
	for _, arg := range args {
		if err := cli.NoFile(arg); err != nil {
			return nil, err
		}
		info, err := os.Stat(arg)
		if err != nil && len(args) == 1 {
			return nil, nil // code
		}
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			paths = append(paths, arg)
			continue
		}
		err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && filepath.Ext(path) == ".pif" {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("there is no file that ends in .pif below %s", arg)
		}
	}
	return paths, nil
}

// formatFiles prints, writes or compares files. It goes on after one that can't be
// read.
func formatFiles(cmd *cobra.Command, paths []string, asJSON, write, check bool) (err error) {
	changed := 0
	for _, path := range paths {
		before, wrong := os.ReadFile(path)
		var after []byte
		if wrong == nil {
			after, wrong = formatted(strings.TrimSpace(string(before)), asJSON)
		}
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", path, cli.InSource(wrong, strings.TrimSpace(string(before)))))
			continue
		}
		same := bytes.Equal(before, after)
		switch {
		case check && !same:
			changed++
			cli.PrintDiff(cmd.OutOrStdout(), string(diff.Diff(path, before, path, after)))
		case check || write && same:
		case write:
			err = errors.Join(err, rewrite(path, after))
		default:
			_, wrong := cmd.OutOrStdout().Write(after)
			err = errors.Join(err, wrong)
		}
	}
	if changed > 0 {
		err = errors.Join(err, fmt.Errorf("%s not laid out: 'mcp-pif fmt --write' does it", cli.Count(changed, "file is", "files are")))
	}
	return err
}

// rewrite replaces a file's text, if that may be written, whole or not at all. A link stays one.
func rewrite(path string, text []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return statefile.Replace(path, text, info.Mode().Perm())
}

// formatted gives code in the text form, or as canonical JSON, with a newline. What
// would steer a terminal is written as an escape, in a file too: both spellings read
// it as the same, and a reviewer sees what there is.
func formatted(code string, asJSON bool) ([]byte, error) {
	src := []byte(code)
	p, err := cli.Compile("", code)
	var out []byte
	switch {
	case err != nil:
		return nil, err
	case asJSON:
		out = p.Canonical()
	case json.Valid(src):
		out = p.Text()
	default:
		var f *fault.Fault
		if out, f = text.Format(src, text.Options{}); f != nil {
			return nil, f
		}
	}
	return append(bytes.TrimRight(cli.EscapeJSON(out), "\n"), '\n'), nil
}
