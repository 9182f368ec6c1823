package caps_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestSplitCommand: words, quotes and backslashes, and nothing of a shell.
func TestSplitCommand(t *testing.T) {
	for line, want := range map[string][]string{
		"":                                nil,
		" \t":                             nil,
		"/bin/a -i  -q":                   {"/bin/a", "-i", "-q"},
		`a 'b c' "d e" f\ g`:              {"a", "b c", "d e", "f g"},
		`a '' "" b'c'"d"`:                 {"a", "", "", "bcd"},
		`a '\' "\"" \'`:                   {"a", `\`, `"`, "'"},
		"a $(b) `c` $D ~ * ; & | > < # {": {"a", "$(b)", "`c`", "$D", "~", "*", ";", "&", "|", ">", "<", "#", "{"},
	} {
		if c, err := caps.SplitCommand(line); err != nil || !slices.Equal(c.Args, want) {
			t.Errorf("%s is %q, %v", line, c.Args, err)
		}
	}
	for _, line := range []string{`a 'b`, `a "b`, `a \`} {
		if c, err := caps.SplitCommand(line); err == nil {
			t.Errorf("%s is %q", line, c.Args)
		}
	}
}

// TestParseCommand: what is misspelled, twice, or ours to say is refused.
func TestParseCommand(t *testing.T) {
	if c, err := caps.ParseCommand([]byte(`{"command":["/bin/sh","-i"],"env":{"A":"b"},"network":true}`)); err != nil || len(c.Args) != 2 || !c.Network || c.Env["A"] != "b" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, text := range []string{
		`null`, `[]`, `"/bin/sh"`, `{"command":"/bin/sh"}`, `{"comand":[]}`, `{"command":[],"Command":[]}`, `{"command":[]} x`,
		`{"path":"/bin/sh"}`, `{"Path":"/bin/sh"}`, `{"sandbox":"off"}`, `{"SANDBOX":"off"}`,
	} {
		if c, err := caps.ParseCommand([]byte(text)); err == nil {
			t.Errorf("%s is %+v", text, c)
		}
	}
}

// TestResolveCommand: the program is found, the rest completed, and what touches what
// is protected refused, links followed.
func TestResolveCommand(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.NoError(t, err)
	for _, name := range []string{"state", "free"} {
		must.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	program, state, free, link := filepath.Join(dir, "program"), filepath.Join(dir, "state"), filepath.Join(dir, "free"), filepath.Join(dir, "link")
	must.NoError(t, os.WriteFile(program, nil, 0o700))
	for from, to := range map[string]string{link: state, filepath.Join(dir, "other"): program} {
		if err := os.Symlink(to, from); err != nil {
			t.Skip(err)
		}
	}
	protected := []string{state, filepath.Join(dir, "server")}
	c, err := caps.Command{Args: []string{filepath.Join(dir, "other"), "x"}, Write: []string{free}}.Resolve(protected, protected)
	must.NoError(t, err)
	if c.Path != program || c.Args[0] == program || c.Sessions != 32 || c.Idle != "30m" || c.Buffer != 4<<20 {
		t.Errorf("%+v", c)
	}
	back, err := caps.ReadCommand(c.Text())
	if err != nil || back.Text() != c.Text() {
		t.Errorf("%v: %s", err, back.Text())
	}
	if (*caps.Command)(nil).Text() != "" {
		t.Error("no command has a text")
	}
	args := []string{program}
	for what, bad := range map[string]caps.Command{
		"no program":          {},
		"an empty program":    {Args: []string{""}},
		"a relative program":  {Args: []string{"./program"}},
		"no such program":     {Args: []string{"/no/such"}},
		"not in PATH":         {Args: []string{"no-such-program-anywhere"}},
		"the state":           {Args: args, Write: []string{state}},
		"above the state":     {Args: args, Read: []string{dir}},
		"below the state":     {Args: args, Write: []string{state + "/x"}},
		"a link to the state": {Args: args, Write: []string{link}},
		"running there":       {Args: args, Dir: state},
		"executing there":     {Args: args, Execute: []string{state}},
		"a relative path":     {Args: args, Read: []string{"free"}},
		"an unclean path":     {Args: args, Read: []string{free + "/../state"}},
		"a missing path":      {Args: args, Read: []string{free + "/missing"}},
		"a zero byte":         {Args: []string{program, "a\x00b"}},
		"a variable":          {Args: args, Env: map[string]string{"A=B": "c"}},
		"a prompt":            {Args: args, Prompt: "("},
		"many sessions":       {Args: args, Sessions: 257},
		"negative processes":  {Args: args, Processes: -1},
		"little memory":       {Args: args, Memory: 1},
		"large buffers":       {Args: args, Buffer: 512 << 20},
		"a time":              {Args: args, Total: "soon"},
		"no time":             {Args: args, Idle: "0s"},
		"a long one":          {Args: []string{program, strings.Repeat("x", 64<<10)}},
	} {
		if c, err := bad.Resolve(protected, protected); err == nil {
			t.Errorf("%s: %+v", what, c)
		}
	}
}

// TestPolicyProcesses: the policy file maps names.
func TestPolicyProcesses(t *testing.T) {
	p, err := caps.ParsePolicy([]byte(`{"grant":["proc:a"],"processes":{"a":{"command":["/bin/a"]},"b":{"command":["/bin/b"],"pty":true}}}`))
	if err != nil || len(p.Processes) != 2 || p.Processes["a"].Args[0] != "/bin/a" || !p.Processes["b"].PTY {
		t.Errorf("%+v, %v", p, err)
	}
	for _, text := range []string{`{"processes":null}`, `{"processes":[]}`, `{"processes":{"a":["/bin/a"]}}`, `{"processes":{"a":{"cmd":[]}}}`, `{"Processes":{}}`} {
		if _, err := caps.ParsePolicy([]byte(text)); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}
