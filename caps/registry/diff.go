package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/rogpeppe/go-internal/diff"
)

// Diff is how one version became another, as a unified difference of what
// was written, JSON in lines; nil where nothing differs. What isn't code is there as comments
// above it: the description, what is declared, what names are bound to, the
// examples. It has no character but line feeds that a terminal would act on.
func Diff(a, b *Tool) []byte {
	return diff.Diff(a.title(), a.page(), b.title(), b.page())
}

// title is the version in a word.
func (t *Tool) title() string { return fmt.Sprintf("%s@%d", visible(t.Name), t.Version) }

// page is the version as text.
func (t *Tool) page() []byte {
	var b []byte
	comment := func(format string, args ...any) {
		b = append(append(append(b, "// "...), visible(fmt.Sprintf(format, args...))...), '\n')
	}
	for line := range strings.Lines(t.Description) {
		comment("%s", strings.TrimRight(line, "\r\n"))
	}
	for _, c := range t.Declared {
		comment("capability %s", c)
	}
	for _, bound := range t.bindings() {
		comment("%s is %s@%d %.12s", bound.Name, bound.Name, bound.Version, bound.Hash)
	}
	if t.As != AsTool {
		comment("published as a %s", t.As)
	}
	if t.Input != nil {
		comment("input schema %s", t.Input)
	}
	for i := range t.Examples {
		comment("example %s", encode(t.Examples[i]))
	}
	if b != nil {
		b = append(b, '\n')
	}
	if err := t.Problem(); err != nil {
		comment("its code can't be used: %v", err)
		return b
	}
	code := t.Shown()
	if compact := new(bytes.Buffer); !t.Text && json.Compact(compact, code) == nil {
		code = layout(nil, compact.Bytes(), 0)
	}
	for line := range strings.Lines(string(code)) {
		b = append(append(b, visible(strings.TrimSuffix(line, "\n"))...), '\n')
	}
	return b
}

// visible is text without what a terminal would act on, or nobody would see.
func visible(s string) string {
	if !strings.ContainsFunc(s, unseen) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !unseen(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteToASCII(string(r))
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

func unseen(r rune) bool { return r != ' ' && !unicode.IsGraphic(r) }
