package pinned

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// starter is the file that runs a program of an installed wheel: Python adds no
// folder of packages by itself where it is started in isolation.
const starter = "__main__.py"

// installWheels installs from PyPI, or where pip's own settings point. Only wheels
// are taken: building from source runs code of the package's.
func (p Package) installWheels(ctx context.Context, folder string, o Options) (Installed, error) {
	var in Installed
	python, err := look(ctx, folder, "", "python3", "-c", "import os, sys; print(os.path.realpath(sys.executable))")
	if err != nil {
		return in, fmt.Errorf("python3: %w", err)
	}
	interpreter := strings.TrimSpace(string(python))
	program, args := interpreter, []string{"-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-q"}
	if _, err := exec.LookPath("uv"); err == nil {
		program, args = "uv", []string{"pip", "install", "--python", interpreter, "-q"}
	}
	if !o.Scripts {
		args = append(args, "--only-binary", ":all:")
	}
	if err := run(ctx, folder, program, append(args, "--no-compile", "--target", folder, p.Name+"=="+p.Version)...); err != nil {
		return in, err
	}
	call, err := p.entryPoint(folder)
	if err != nil {
		return in, err
	}
	module, function, _ := strings.Cut(call, ":")
	first, _, _ := strings.Cut(function, ".")
	source := fmt.Sprintf("import os, sys\nsys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))\nfrom %s import %s\nsys.exit(%s())\n", module, first, function)
	if err := os.WriteFile(filepath.Join(folder, starter), []byte(source), 0o600); err != nil {
		return in, err
	}
	in.Command = append([]string{interpreter, "-I", "-B", starter}, p.Args...)
	return in, nil
}

// newestWheel asks the installer which version it would install.
func (p Package) newestWheel(ctx context.Context, folder string) (string, error) {
	spec := p.Name
	switch {
	case strings.Contains(p.Range, "*"):
		spec += "==" + p.Range
	case p.Range != "" && p.Range != "latest":
		return "", fmt.Errorf("%q isn't one exact version, such as %s==1.2.3", p.Range, p.Name)
	}
	ask := []string{"python3", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-q", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary", ":all:", "--report", "-", spec}
	if _, err := exec.LookPath("uv"); err == nil {
		ask = []string{"uv", "pip", "compile", "-q", "--no-deps", "--no-header", "--no-annotate", "--only-binary", ":all:", "-"}
	}
	out, err := look(ctx, folder, spec+"\n", ask[0], ask[1:]...)
	if err != nil {
		return "", fmt.Errorf("PyPI has no wheel of %s: %w", spec, err)
	}
	_, version, _ := strings.Cut(strings.TrimSpace(string(out)), "==") // as uv writes it
	var report struct {
		Install []struct {
			Metadata struct{ Version string }
		}
	}
	if json.Unmarshal(out, &report) == nil && len(report.Install) == 1 {
		version = report.Install[0].Metadata.Version
	}
	if !pypiVersion.MatchString(version) {
		return "", fmt.Errorf("PyPI answered no version of %s", spec)
	}
	return version, nil
}

// entryPoint finds what the program calls, as module:function.
func (p Package) entryPoint(folder string) (string, error) {
	normal := strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToLower(p.Name))
	infos, err := filepath.Glob(filepath.Join(folder, "*.dist-info", "entry_points.txt"))
	if err != nil {
		return "", err
	}
	for _, file := range infos {
		dist, _, _ := strings.Cut(filepath.Base(filepath.Dir(file)), "-")
		if strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToLower(dist)) != normal {
			continue
		}
		all, err := readEntryPoints(file)
		if err != nil {
			return "", err
		}
		name, err := choose(p.Program, p.Name, all)
		if err != nil {
			return "", err
		}
		return all[name], nil
	}
	return "", fmt.Errorf("%s has no program", p.Name)
}

// readEntryPoints reads the section console_scripts of an entry_points.txt
// (Python Packaging User Guide, entry points specification).
func readEntryPoints(file string) (map[string]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, inside := map[string]string{}, false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			inside = line == "[console_scripts]"
			continue
		}
		name, call, isPair := strings.Cut(line, "=")
		call, _, _ = strings.Cut(call, "[") // extras
		call = strings.TrimSpace(call)
		if inside && isPair && isCall(call) {
			all[strings.TrimSpace(name)] = call
		}
	}
	return all, lines.Err()
}

// isCall reports whether a text is module:function, of dotted names.
func isCall(s string) bool {
	module, function, ok := strings.Cut(s, ":")
	dotted := func(s string) bool {
		return s != "" && strings.IndexFunc(s, func(r rune) bool {
			return !(r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
		}) < 0
	}
	return ok && dotted(module) && dotted(function)
}
