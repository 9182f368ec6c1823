package prim

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// encodings is the rows that write a text's bytes in other letters, read them back, and
// sum them up. A text is its UTF-8; there are no other bytes here, so what is read back
// must be UTF-8 again.
var encodings = []Row{
	encodingRow("url_encode", "writes a string for a part of a URL: every byte that is no letter, digit, -, ., _ or ~ as % and two digits.", 3, urlEncode,
		[]string{"encodeuricomponent", "encodeuri", "urlencode", "quote_url", "percent_encode", "uri_encode", "escape_url"},
		Example{Code: `{"url_encode":"a b&c=é"}`, Want: `"a%20b%26c%3D%C3%A9"`, Steps: 2},
		Example{Code: `{"url_encode":{"record":{"a":1}}}`, Fault: fault.TypeError}),
	encodingRow("url_decode", "reads the bytes written as % and two digits in a string; a + stays.", 1, urlDecode,
		[]string{"decodeuricomponent", "decodeuri", "urldecode", "unquote_url", "percent_decode", "uri_decode", "unescape_url"},
		Example{Code: `{"url_decode":"a%20b%26c%3D%C3%A9"}`, Want: `"a b&c=é"`, Steps: 2},
		Example{Code: `{"get":[{"try":{"url_decode":"100%"}},"ok","no URL"]}`, Want: `"no URL"`},
		Example{Code: `{"url_decode":20}`, Fault: fault.TypeError}),
	encodingRow("base64_encode", "writes the UTF-8 of a string in base64, with = at the end.", 2, base64Encode,
		[]string{"base64.b64encode", "btoa", "to_base64", "base64", "b64encode", "b64_encode", "encode_base64"},
		Example{Code: `{"base64_encode":"añb?"}`, Want: `"YcOxYj8="`, Steps: 2},
		Example{Code: `{"base64_encode":["a"]}`, Fault: fault.TypeError}),
	encodingRow("base64_decode", "reads base64, in its alphabet for URLs too and with = at the end or not, as a string.", 1, base64Decode,
		[]string{"base64.b64decode", "atob", "from_base64", "b64decode", "b64_decode", "decode_base64"},
		Example{Code: `{"base64_decode":"YcOxYj8="}`, Want: `"añb?"`, Steps: 2},
		Example{Code: `{"get":[{"try":{"base64_decode":"a*b"}},"ok","no base64"]}`, Want: `"no base64"`},
		Example{Code: `{"base64_decode":null}`, Fault: fault.TypeError}),
	encodingRow("hex_encode", "writes the UTF-8 of a string in hexadecimal digits, two for a byte.", 2, hexEncode,
		[]string{"to_hex", "hexlify", "hex"},
		Example{Code: `{"hex_encode":"añb"}`, Want: `"61c3b162"`, Steps: 2},
		Example{Code: `{"hex_encode":255}`, Fault: fault.TypeError}),
	encodingRow("hex_decode", "reads hexadecimal digits, two for a byte, as a string.", 1, hexDecode,
		[]string{"from_hex", "unhexlify", "unhex"},
		Example{Code: `{"hex_decode":"61c3b162"}`, Want: `"añb"`, Steps: 2},
		Example{Code: `{"get":[{"try":{"hex_decode":"6g"}},"ok","not hexadecimal"]}`, Want: `"not hexadecimal"`},
		Example{Code: `{"hex_decode":61}`, Fault: fault.TypeError}),
	{
		Name: "sha256", Group: "formats", Shape: Unary, Params: oneString, Result: KindString,
		Doc:   "gives the SHA-256 of a string's UTF-8 in 64 hexadecimal digits.",
		Total: true, Grows: hashGrowth, Cost: hashCost, Also: []string{"hashlib.sha256", "sha", "sha2", "sha_256", "digest", "hash_sha256"},
		Examples: []Example{
			{Code: `{"sha256":"abc"}`, Want: `"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"`, Steps: 2},
			{Code: `{"sha256":123}`, Fault: fault.TypeError},
		},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			return value.Str(digest(sha256.New(), string(args[0].(value.Str)), m)), nil
		},
	},
	{
		Name: "hmac_sha256", Group: "formats", Shape: Array, Params: []Param{{"s", KindString}, {"key", KindString}}, Result: KindString,
		Doc:   "gives the HMAC with SHA-256 of a string under a key in 64 hexadecimal digits.",
		Total: true, Grows: hashGrowth, Cost: hashCost, Also: []string{"hmac", "hmacsha256", "hmac_sha_256", "sign_hmac"},
		Examples: []Example{
			{Code: `{"hmac_sha256":["what do ya want for nothing?","Jefe"]}`, Want: `"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"`, Steps: 3},
			{Code: `{"hmac_sha256":["abc",null]}`, Fault: fault.TypeError},
		},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			key := string(args[1].(value.Str))
			if len(key) > sha256.BlockSize {
				// As hmac.New does it, but in pieces.
				h := sha256.New()
				feed(h, key, m)
				key = string(h.Sum(nil))
			}
			return value.Str(digest(hmac.New(sha256.New, []byte(key)), string(args[0].(value.Str)), m)), nil
		},
	},
	{
		Name: "crc32", Group: "formats", Shape: Unary, Params: oneString, Result: KindInt,
		Doc:   "gives the CRC-32 (IEEE) of a string's UTF-8 as an integer.",
		Total: true, Grows: &Growth{Value: Bound{some(1 << 32)}, Words: Bound{some(1)}, Steps: Bound{some(1)}}, Cost: stringCost, Also: []string{"crc", "checksum", "crc_32"},
		Examples: []Example{
			{Code: `{"crc32":"abc"}`, Want: `891568578`, Steps: 2},
			{Code: `{"crc32":true}`, Fault: fault.TypeError},
		},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			h := crc32.NewIEEE()
			feed(h, string(args[0].(value.Str)), m)
			return value.NewInt(int64(h.Sum32())), nil
		},
	},
}

// hashCost returns the steps of a hash, which does more for a byte than a copy.
func hashCost(args []value.Value) uint64 { return 4 * stringCost(args) }

var hashGrowth = &Growth{Bytes: Bound{some(64)}, Steps: Bound{per(128, bytesOf(0)), per(128, bytesOf(1)), some(2)}}

// encodingRow returns a row that makes a text of a text, of at most times as many
// bytes.
func encodingRow(name, doc string, times uint64, of func(s string, m *Meter) (string, *fault.Fault), also []string, examples ...Example) Row {
	return Row{
		Name: name, Group: "formats", Shape: Unary, Params: oneString, Result: KindString,
		Doc: doc, Also: also, Examples: examples, Total: strings.HasSuffix(name, "_encode"),
		Grows: &Growth{Bytes: Bound{some(times, bytesOf(0)), some(8)}},
		Cost:  stringCost,
		Size:  func(args []value.Value) int64 { return int64(times)*int64(len(args[0].(value.Str))) + 8 },
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			s, f := of(string(args[0].(value.Str)), m)
			if f == nil && times == 1 && !utf8.ValidString(s) {
				f = badEncoding(name, "the bytes", 0, "are no UTF-8, so there is no string for them")
			}
			return value.Str(s), f
		},
	}
}

// feed gives a text to a hash.
func feed(h hash.Hash, s string, m *Meter) {
	for len(s) > 0 {
		n := min(searchPiece, len(s))
		m.look(n / bytesPerPart)
		h.Write([]byte(s[:n]))
		s = s[n:]
	}
}

func digest(h hash.Hash, s string, m *Meter) string {
	feed(h, s, m)
	return hex.EncodeToString(h.Sum(nil))
}

// inPieces makes a text of pieces of a multiple of unit bytes, of at most times as many.
func inPieces(s string, unit, times int, m *Meter, of func(piece string, out *strings.Builder, at int) *fault.Fault) (string, *fault.Fault) {
	var out strings.Builder
	out.Grow(times*len(s) + 8)
	for at, step := 0, searchPiece/unit*unit; at < len(s); at += step {
		m.look(step / bytesPerPart)
		if f := of(s[at:min(at+step, len(s))], &out, at); f != nil {
			return "", f
		}
	}
	return out.String(), nil
}

func urlEncode(s string, m *Meter) (string, *fault.Fault) {
	return inPieces(s, 1, 3, m, func(piece string, out *strings.Builder, _ int) *fault.Fault {
		for i := range len(piece) {
			switch c := piece[i]; {
			case c-'0' <= 9, c|0x20-'a' < 26, c == '-', c == '.', c == '_', c == '~':
				out.WriteByte(c)
			default:
				const hex = "0123456789ABCDEF"
				out.WriteByte('%')
				out.WriteByte(hex[c>>4])
				out.WriteByte(hex[c&15])
			}
		}
		return nil
	})
}

func urlDecode(s string, m *Meter) (string, *fault.Fault) {
	skip := 0 // digits that were read in the piece before
	return inPieces(s, 1, 1, m, func(piece string, out *strings.Builder, at int) *fault.Fault {
		i := skip
		for i < len(piece) {
			if piece[i] != '%' {
				out.WriteByte(piece[i])
				i++
				continue
			}
			digits := s[at+i+1 : min(at+i+3, len(s))]
			b, err := hex.DecodeString(digits)
			if err != nil || len(b) == 0 {
				return badEncoding("url_decode", quoted("%"+digits), at+i, "isn't % and two hexadecimal digits")
			}
			out.WriteByte(b[0])
			i += 3
		}
		skip = i - len(piece)
		return nil
	})
}

func base64Encode(s string, m *Meter) (string, *fault.Fault) {
	return inPieces(s, 3, 2, m, func(piece string, out *strings.Builder, _ int) *fault.Fault {
		out.WriteString(base64.StdEncoding.EncodeToString([]byte(piece)))
		return nil
	})
}

var urlAlphabet = strings.NewReplacer("-", "+", "_", "/")

func base64Decode(s string, m *Meter) (string, *fault.Fault) {
	s = strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	return inPieces(s, 4, 1, m, func(piece string, out *strings.Builder, at int) *fault.Fault {
		for i := range len(piece) {
			if c := piece[i]; c-'0' > 9 && c|0x20-'a' >= 26 && strings.IndexByte("+/-_", c) < 0 {
				r, _ := utf8.DecodeRuneInString(piece[i:])
				return badEncoding("base64_decode", quoted(string(r)), at+i, "is no letter of base64")
			}
		}
		b, err := base64.RawStdEncoding.DecodeString(urlAlphabet.Replace(piece))
		if err != nil {
			return badEncoding("base64_decode", "the text", at+len(piece), "ends in the middle of a byte")
		}
		out.Write(b)
		return nil
	})
}

func hexEncode(s string, m *Meter) (string, *fault.Fault) {
	return inPieces(s, 1, 2, m, func(piece string, out *strings.Builder, _ int) *fault.Fault {
		out.WriteString(hex.EncodeToString([]byte(piece)))
		return nil
	})
}

func hexDecode(s string, m *Meter) (string, *fault.Fault) {
	return inPieces(s, 2, 1, m, func(piece string, out *strings.Builder, at int) *fault.Fault {
		b, err := hex.DecodeString(piece)
		if err != nil {
			for i, c := range piece {
				if !strings.ContainsRune("0123456789abcdefABCDEF", c) {
					return badEncoding("hex_decode", quoted(string(c)), at+i, "is no hexadecimal digit")
				}
			}
			return badEncoding("hex_decode", "the text", at+len(piece), "has an odd number of digits")
		}
		out.Write(b)
		return nil
	})
}

// badEncoding returns the fault of a text that isn't written so. at is where, in
// bytes.
func badEncoding(row, got string, at int, problem string) *fault.Fault {
	f := &fault.Fault{
		Kind: fault.ParseError, Message: fmt.Sprintf("%s: at byte %d: %s %s", row, at+1, got, problem), Expected: "what " + strings.Replace(row, "decode", "encode", 1) + " writes", Got: got,
		Hint: `Catch the failure if it may be there: {"try":{"` + row + `":S}}.`,
	}
	if strings.HasPrefix(got, "the bytes") {
		f.Message = row + ": " + got + " " + problem
	}
	return f
}
