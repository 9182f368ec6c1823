package main

import (
	"strings"
	"testing"
)

// The author's folder isn't in a picture.
func TestPicture(t *testing.T) {
	r := &recorder{dir: "/tmp/recording-1"}
	if got := r.picture("title", []string{"in /tmp/recording-1/sandbox"}); !strings.Contains(got, "in ~/sandbox") || strings.Contains(got, r.dir) {
		t.Error(got)
	}
}
