package mcplock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// How deep a definition may be nested, and the file, in which its schemas stand four levels deeper.
const (
	maxLevels  = 64
	fileLevels = maxLevels + 4
)

// Canonical returns the one text of a JSON document: RFC 8785, except that a number that no
// double holds exactly keeps its digits, so that two documents of different worth never have
// the same text. It refuses duplicate keys, text that isn't Unicode, and deep nesting.
func Canonical(raw []byte) ([]byte, error) {
	if err := checkUnicode(raw); err != nil {
		return nil, err
	}
	if err := statefile.UniqueKeys(raw, false, maxLevels); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF { // More is false at a closing bracket
		return nil, errors.New("there is something after the document")
	}
	return appendCanonical(nil, v)
}

// hash returns the SHA-256 of a document's canonical text, as "sha256:HEX".
func hash(raw []byte) (string, error) {
	canonical, err := Canonical(raw)
	if err != nil {
		return "", err
	}
	return sumOf(canonical), nil
}

// sumOf returns a SHA-256 as the file has it.
func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return sumPrefix + hex.EncodeToString(sum[:])
}

func appendCanonical(b []byte, v any) (_ []byte, err error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case string:
		return text.AppendString(b, v), nil
	case json.Number:
		return appendNumber(b, string(v))
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendCanonical(b, item); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case map[string]any:
		b = append(b, '{')
		for i, key := range slices.SortedFunc(maps.Keys(v), func(a, b string) int { // by UTF-16 code units
			return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		}) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(text.AppendString(b, key), ':')
			if b, err = appendCanonical(b, v[key]); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	}
	return nil, fmt.Errorf("%T has no JSON", v)
}

// appendNumber writes a number by its exact worth in the layout of ECMAScript, section
// 6.1.6.1.20, which RFC 8785 takes over for doubles.
func appendNumber(b []byte, number string) ([]byte, error) {
	rest, negative := strings.CutPrefix(number, "-")
	mantissa, exponent := rest, "0"
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa, exponent = rest[:i], rest[i+1:]
	}
	e, err := strconv.ParseInt(exponent, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("the exponent of %s is too large", number[:min(len(number), 40)])
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	point := int(e) + len(whole) - (len(whole+fraction) - len(digits)) // the worth is 0.digits * 10^point
	if digits = strings.TrimRight(digits, "0"); digits == "" {
		return append(b, '0'), nil
	}
	if negative {
		b = append(b, '-')
	}
	switch n := len(digits); {
	case n <= point && point <= 21:
		return append(append(b, digits...), strings.Repeat("0", point-n)...), nil
	case 0 < point && point <= 21:
		return fmt.Appendf(b, "%s.%s", digits[:point], digits[point:]), nil
	case -6 < point && point <= 0:
		return fmt.Appendf(b, "0.%s%s", strings.Repeat("0", -point), digits), nil
	case n == 1:
		return fmt.Appendf(b, "%se%+d", digits, point-1), nil
	}
	return fmt.Appendf(b, "%s.%se%+d", digits[:1], digits[1:], point-1), nil
}

// checkUnicode refuses bytes that aren't UTF-8 and escapes of half a character, which
// decoding would make equal to others.
func checkUnicode(raw []byte) error {
	if !utf8.Valid(raw) {
		return errors.New("it isn't UTF-8")
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		first := escaped(raw[i:])
		switch {
		case utf16.IsSurrogate(first):
			if utf16.DecodeRune(first, escaped(raw[i+6:])) == utf8.RuneError {
				return errors.New("it has half of a character")
			}
			i += 11
		default:
			i++
		}
	}
	return nil
}

// escaped returns the code unit of an escape \uXXXX that raw begins with, or -1.
func escaped(raw []byte) rune {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
