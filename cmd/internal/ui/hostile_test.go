package ui

import (
	"strconv"
	"strings"
	"testing"
)

// hostile is what a model, a plugin or another server might write.
var hostile = []string{
	`<script>canary()</script>`, `<img src=x onerror=canary()>`, `<svg onload=canary()>`, `"><script>canary()</script>`, `'><img src=x onerror=canary()>`,
	`javascript:canary()`, `data:text/html,<script>canary()</script>`, `</title><script>canary()</script>`, `</textarea><script>canary()</script>`, `</style><script>canary()</script>`,
	`<!--`, `-->`, `]]>`, `<![CDATA[<script>canary()</script>]]>`, `{{.}}`, `{{template "main" .}}`, `${canary()}`, `$"{canary()}"`, "`canary()`", `&#60;script&#62;canary()&#60;/script&#62;`,
	`&lt;script&gt;`, `<a href="javascript:canary()">x</a>`, `<iframe srcdoc="<script>canary()</script>">`, `<base href="//attacker.test/">`, `<meta http-equiv="refresh" content="0;url=//attacker.test">`,
	`<form action="//attacker.test">`, `<link rel=stylesheet href=//attacker.test>`, `<style>*{display:none}</style>`, `<object data=//attacker.test>`, `<math><mtext></mtext><script>canary()</script></math>`,
	"safe\u202egnp.exe", "\u2066isolate\u2069", "\u200b\u200c\u200dzero", "\ufeffbom", "soft\u00adhyphen", "line\u2028separator", "paragraph\u2029separator", "tag\U000E0041\U000E0042", "mongolian\u180e", "filler\u3164\u115f\uffa0",
	"braille\u2800blank", "variation\ufe0f\U000E0100", "nul\x00byte", "escape\x1b[31mred", "bell\x07back\x08", "carriage\rreturn", "\x7fdelete", "next\u0085line", "a" + strings.Repeat("\u0301", 500), "ש\u05c1לום עולם",
	"مرحبا بالعالم", strings.Repeat("long ", 3000), strings.Repeat("W", 15000), strings.Repeat("\n", 3000), "%2e%2e%2f", "../../etc/passwd", "//attacker.test/x", `\\attacker\x`, "\uE000private", "😀👩‍👩‍👧",
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

// caps60 is JSON as code of PIF has strings: without what its strings don't take.
func caps60(text []byte) []byte {
	return []byte(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(text)))
}

// TestVisible: what hides, acts or turns is written out; all else is as it was.
func TestVisible(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"":                    "",
		"plain é 中 →\n\tx":    "plain é 中 →\n\tx",
		"a\u202eb":            `a\u{202E}b`,
		"\u200b":              `\u{200B}`,
		"a\x00b\rc\x1b":       `a\u{0}b\u{D}c\u{1B}`,
		"x\xff\ufffdy":        `x\xff` + "\ufffdy",
		"a\u0301\u0301\u0301": "a\u0301\u0301" + `\u{301}`,
		"a\u0301b\u0301":      "a\u0301b\u0301",
		"\U000E0041":          `\u{E0041}`,
		"no\u00a0break\u2800": `no\u{A0}break\u{2800}`,
		"שלום":                "שלום",
	} {
		if got := visible(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
