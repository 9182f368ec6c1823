package arch

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

var (
	// link matches a link or an image in Markdown.
	link = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	// notProse matches what isn't rendered as Markdown: fenced blocks and code.
	notProse = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]+`")
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// notSlug matches what GitHub drops from a heading's anchor.
	notSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the anchors that GitHub gives the headings of a document.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(text, ""), -1) {
		all[strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

// deadLinks returns the relative links of a document that lead nowhere.
func deadLinks(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var dead []string
	for _, m := range link.FindAllStringSubmatch(notProse.ReplaceAllString(string(text), "x"), -1) {
		u, err := url.Parse(m[1])
		if err != nil {
			dead = append(dead, m[1])
			continue
		}
		if u.Scheme != "" {
			continue
		}
		target := file
		if u.Path != "" {
			target = filepath.Join(filepath.Dir(file), filepath.FromSlash(u.Path))
		}
		if _, err := os.Stat(target); err != nil {
			dead = append(dead, m[1])
			continue
		}
		if u.Fragment == "" {
			continue
		}
		page, err := os.ReadFile(target)
		if err != nil || !anchors(string(page))[u.Fragment] {
			dead = append(dead, m[1])
		}
	}
	return dead, nil
}

// TestLinks: every relative link in a document leads to a file or heading that exists.
func TestLinks(t *testing.T) {
	documents := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "node_modules" || name == "testdata" || name == ".git") {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		documents++
		dead, err := deadLinks(path)
		for _, to := range dead {
			t.Errorf("%s: the link %s leads nowhere", path, to)
		}
		return err
	})
	must.NoError(t, err)
	if documents < 10 {
		t.Errorf("only %d documents were read", documents)
	}
}

// TestDeadLinks: a missing file, a missing heading and a missing image are found; links
// in code and to other sites are left alone.
func TestDeadLinks(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		must.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("b.md", "# What it's for, and why don't we …?\n")
	write("a.md", "# One\n[1](b.md) [2](#one) [3](b.md#what-its-for-and-why-dont-we-) [4](https://a.example/x)\n"+
		"`[5](in/code)`\n```\n[6](in/block)\n# two\n```\n[7](c.md) [8](#two) [9](b.md#three) ![10](d.svg)\n")
	dead, err := deadLinks(filepath.Join(dir, "a.md"))
	must.NoError(t, err)
	if got := strings.Join(dead, " "); got != "c.md #two b.md#three d.svg" {
		t.Errorf("dead links: %s", got)
	}
}
