package text

import "strings"

// A Class is what a part of a source is, for whoever colours it.
type Class string

// The classes. Names, brackets, and what is between tokens have none.
const (
	ClassNone     Class = ""
	ClassKeyword  Class = "keyword"
	ClassString   Class = "string"
	ClassNumber   Class = "number"
	ClassComment  Class = "comment"
	ClassOperator Class = "operator"
	ClassTool     Class = "tool"
	ClassEffect   Class = "effect"
	ClassBad      Class = "bad"
)

// A Part is a piece of a source with its class. It may have several lines.
type Part struct {
	Class Class
	Text  string
}

// Parts splits a source in the text form into what is coloured alike. The parts together
// are the source, byte for byte, whether it can be read or not; it must be valid UTF-8.
func Parts(src string) []Part {
	toks, _ := lex(src)
	var parts []Part
	add := func(c Class, text string) {
		switch n := len(parts); {
		case text == "":
		case n > 0 && parts[n-1].Class == c:
			parts[n-1].Text += text
		default:
			parts = append(parts, Part{c, text})
		}
	}
	from := 0
	for _, t := range toks {
		for gap := src[from:t.off]; gap != ""; {
			comment, rest := strings.Index(gap, "//"), ""
			if comment < 0 {
				comment = len(gap)
			}
			add(ClassNone, gap[:comment])
			gap = gap[comment:]
			if end := strings.IndexByte(gap, '\n'); end >= 0 {
				gap, rest = gap[:end], gap[end:]
			}
			add(ClassComment, gap)
			gap = rest
		}
		add(t.kind.class(), src[t.off:t.end])
		from = int(t.end)
	}
	add(ClassNone, src[from:])
	return parts
}

// class is what a token of a kind is.
func (k tokKind) class() Class {
	switch {
	case k == tokBad:
		return ClassBad
	case k == tokInt || k == tokDec:
		return ClassNumber
	case k == tokString || k == tokTemplate || k == tokTemplateEnd || k == tokChunk:
		return ClassString
	case k == tokTool:
		return ClassTool
	case k == tokEffect:
		return ClassEffect
	case k >= tokLet:
		return ClassKeyword
	case k == tokArrow || k == tokBind || k >= tokPipe:
		return ClassOperator
	}
	return ClassNone
}
