package display

import "testing"

func TestTruncate(t *testing.T) {
	for _, c := range []struct {
		text, truncated, prefix string
		max                     int
	}{
		{"", "", "", 0},
		{"abc", "abc", "abc", 3},
		{"abcd", "abc…", "abc", 3},
		{"aé", "a…", "a", 2}, // é has two bytes
		{"a😀b", "a…", "a", 4},
		{"a😀b", "a😀…", "a😀", 5},
		{"abc", "…", "", 0},
		{"\x80\x80\x80\x80\x80\x80", "\x80…", "\x80", 5}, // no character starts here
	} {
		if got := Truncate(c.text, c.max); got != c.truncated {
			t.Errorf("Truncate(%q, %d) = %q, want %q", c.text, c.max, got, c.truncated)
		}
		if got := Prefix([]byte(c.text), c.max); got != c.prefix {
			t.Errorf("Prefix(%q, %d) = %q, want %q", c.text, c.max, got, c.prefix)
		}
	}
}
