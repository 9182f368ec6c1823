package plugincmd

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
)

// modulePath is the module that plugins import.
const modulePath = "github.com/mcp-pif/mcp-pif"

// newPluginFiles is what a new plugin's module is made of.
//
//go:embed newplugin
var newPluginFiles embed.FS

func newPluginNew() *cobra.Command {
	var dir, replace, module string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a working plugin to start from",
		Long: `Write a Go module with a plugin of the kind NAME: forty lines that work, a test
of them and of the contract, fixtures for 'plugin test', and a README with the way
to a tool that uses it. Nothing that is there already is overwritten.

With --replace the module is built against a checkout of mcp-pif on this machine;
its go.sum is copied, so that nothing is downloaded that isn't there.`,
		Example: `  mcp-pif plugin new weather
  mcp-pif plugin new weather --dir ~/src/weather --replace ~/src/mcp-pif`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" {
				dir = args[0]
			}
			if err := writePlugin(args[0], dir, replace, module); err != nil {
				return cli.Failed(err)
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "wrote the plugin %s to %s; next:\n\n  cd %s\n", args[0], dir, dir)
			if replace == "" && released.MatchString(cli.Version()) {
				fmt.Fprintf(out, "  go get %s@latest\n", modulePath)
			} else if replace == "" {
				fmt.Fprintf(out, "  go mod edit -replace %s=CLONE && go mod tidy    # CLONE: your clone of mcp-pif; this program is of no release\n", modulePath)
			}
			fmt.Fprintf(out, "  go test ./...\n  CGO_ENABLED=0 go build -o %[1]s .\n  mcp-pif plugin test ./%[1]s --fixtures fixtures.json\n  mcp-pif plugin add ./%[1]s\n", args[0])
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "dir", "", "the `FOLDER` to write (default NAME)")
	f.StringVar(&replace, "replace", "", "build against the checkout of mcp-pif in this `FOLDER`")
	f.StringVar(&module, "module", "", "the module's `PATH` (default example.com/NAME)")
	return cmd
}

var (
	newKind    = lazyregexp.New(`^[a-z][a-z0-9]{0,31}$`)
	moduleName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._~/-]*$`)
	released   = lazyregexp.New(`^v\d+\.\d+\.\d+$`)
)

// writePlugin writes a module, and nothing where it can't write all of it.
func writePlugin(kind, dir, replace, module string) error {
	switch {
	case !newKind.MatchString(kind):
		return fmt.Errorf("the name %s: a plugin is called by its kind, lower-case letters and digits", lock.Shown(kind, 60))
	case slices.Contains(lock.Reserved, kind):
		return fmt.Errorf("the kind %s is reserved for what ships with mcp-pif: choose another", kind)
	}
	module = cmp.Or(module, "example.com/"+kind)
	if !moduleName.MatchString(module) {
		return fmt.Errorf("the module path %s", lock.Shown(module, 100))
	}
	data := struct {
		Kind, Module, Version, Replace string
		Indirect                       []string
	}{Kind: kind, Module: module}
	var sums []byte
	if v := cli.Version(); released.MatchString(v) {
		data.Version = v
	}
	if replace != "" {
		abs, err := filepath.Abs(replace)
		if err != nil {
			return err
		}
		if data.Indirect, sums, err = checkout(abs); err != nil {
			return fmt.Errorf("--replace %s: %w", replace, err)
		}
		data.Version, data.Replace = "v0.0.0", abs
		if strings.ContainsAny(abs, " \t\"`'()") {
			data.Replace = strconv.Quote(abs)
		}
	}
	files := map[string][]byte{".gitignore": []byte("/" + kind + "\n")}
	if sums != nil {
		files["go.sum"] = sums
	}
	templates, err := template.New("").Delims("[[", "]]").ParseFS(newPluginFiles, "newplugin/*.tmpl")
	if err != nil {
		return err
	}
	for _, t := range templates.Templates() {
		if t.Name() == "" {
			continue
		}
		var b bytes.Buffer
		if err := t.Execute(&b, data); err != nil {
			return err
		}
		files[strings.TrimSuffix(t.Name(), ".tmpl")] = append(bytes.TrimRight(b.Bytes(), "\n"), '\n')
	}
	return writeNew(dir, files)
}

// writeNew writes files into a folder that has none of them.
func writeNew(dir string, files map[string][]byte) error {
	for name := range files {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is there already: nothing was written", filepath.Join(dir, name))
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// checkout reads what a module that is built against a checkout needs of it: the
// modules it requires, and their sums.
func checkout(dir string) (requires []string, sums []byte, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, nil, err
	}
	if first, _, _ := strings.Cut(string(text), "\n"); strings.TrimSpace(first) != "module "+modulePath {
		return nil, nil, errors.New("it isn't a checkout of " + modulePath)
	}
	within := false
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "//")
		line = strings.TrimSpace(line)
		switch {
		case line == "require (":
			within = true
		case line == ")":
			within = false
		case within && line != "":
			requires = append(requires, line)
		case strings.HasPrefix(line, "require "):
			requires = append(requires, strings.TrimSpace(strings.TrimPrefix(line, "require ")))
		}
	}
	sums, err = os.ReadFile(filepath.Join(dir, "go.sum"))
	return requires, sums, err
}
