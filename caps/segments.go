package caps

import (
	"errors"
	"strings"
)

func split(s string) []string { return strings.Split(s, "/") }

// checkSegments refuses empty segments and those that many systems read as
// directions.
func checkSegments(s string) error {
	for i, segment := range split(s) {
		switch segment {
		case "":
			switch {
			case s == "":
			case i == 0:
				return errors.New("it begins with a slash: leave that out")
			case strings.HasSuffix(s, "/") && i == strings.Count(s, "/"):
				return errors.New("it ends with a slash: leave that out")
			}
			return errors.New("it has an empty segment")
		case ".", "..":
			return errors.New(`"." and ".." are no segments`)
		}
	}
	return nil
}

// checkPattern refuses what is no pattern of whole segments.
func checkPattern(s string) error {
	if err := checkSegments(s); err != nil {
		return err
	}
	return checkStars(split(s))
}

// checkStars allows stars as whole segments only, and ** in the last place.
func checkStars(segments []string) error {
	for i, segment := range segments {
		switch {
		case segment == "*", segment == "**" && i == len(segments)-1:
		case segment == "**":
			return errors.New("** comes last: it is all further segments")
		case strings.Contains(segment, "*"):
			return errors.New("a star stands for a whole segment: write * or **, not " + quoted(segment))
		}
	}
	return nil
}

// segmentsContain: everything that narrower matches, the pattern matches. A
// final ** is any number of segments, none too.
func segmentsContain(pattern, narrower []string) bool {
	for i, p := range pattern {
		if p == "**" && i == len(pattern)-1 {
			return true
		}
		if i == len(narrower) || narrower[i] == "**" && i == len(narrower)-1 {
			return false
		}
		if p != "*" && p != narrower[i] {
			return false
		}
	}
	return len(pattern) == len(narrower)
}

// segmentsCover: the pattern matches the segments as they are, stars in them
// being letters.
func segmentsCover(pattern, segments []string) bool {
	for i, p := range pattern {
		if p == "**" && i == len(pattern)-1 {
			return true
		}
		if i == len(segments) || p != "*" && p != segments[i] {
			return false
		}
	}
	return len(pattern) == len(segments)
}

// segmentsOverlap: something is matched by both.
func segmentsOverlap(a, b []string) bool {
	for i := 0; ; i++ {
		endA, endB := i == len(a), i == len(b)
		if !endA && a[i] == "**" && i == len(a)-1 || !endB && b[i] == "**" && i == len(b)-1 {
			return true
		}
		if endA || endB {
			return endA && endB
		}
		if a[i] != "*" && b[i] != "*" && a[i] != b[i] {
			return false
		}
	}
}
