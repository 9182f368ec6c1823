package fetch

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/jsonvalue"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

const (
	// defaultMax is how many bytes a body may have where the capability says
	// nothing.
	defaultMax = 16 << 20
	// smallBody is how much of a body is read without knowing how much there is.
	smallBody = 64 << 10
	// maxJSON is how many bytes of JSON are given as a value beside the text:
	// a value takes many times the memory of its text.
	maxJSON = 1 << 20
)

// requestBody reads the body of a program and its content type, "" where the
// program is to name it. A nil body is none.
func requestBody(args arguments, max int64) (body []byte, contentType string, err error) {
	switch {
	case args.JSON != nil && (args.Body != nil || args.Encoding != ""):
		return nil, "", invalid("json and body are two ways to give a body; give one")
	case args.JSON != nil:
		text, err := jsonvalue.Write(args.JSON)
		if err != nil {
			return nil, "", invalid("%s", err)
		}
		body, contentType = []byte(text), "application/json"
	case args.Body == nil:
		return nil, "", nil
	case args.Encoding == "base64":
		if body, err = base64.StdEncoding.Strict().DecodeString(*args.Body); err != nil {
			return nil, "", invalid("body is not base64 (the standard alphabet, with padding)")
		}
	default:
		body = []byte(*args.Body)
	}
	if int64(len(body)) > max {
		return nil, "", failf(codeTooLarge, "the body has %d bytes, the capability allows %d", len(body), max)
	}
	return body, contentType, nil
}

// checkOverride refuses a request that asks the server to take another method for its own, as
// frameworks for browsers let a query or a form do.
func (c call) checkOverride() error {
	types := c.headers.Values("Content-Type")
	if c.contentType != "" && len(types) == 0 {
		types = []string{c.contentType}
	}
	for _, s := range c.secrets {
		if s.header == "Content-Type" {
			types = append(types, s.prefix)
		}
	}
	if overridden(strings.TrimPrefix(c.target.query, "?"), c.method) || overriddenBy(string(c.body), types, c.method) {
		return invalid("the request asks for another method than its own by _method; give the method as method")
	}
	return nil
}

// unfold has what continues a line of a header on that line.
var unfold = strings.NewReplacer("\r\n ", " ", "\r\n\t", " ", "\n ", " ", "\n\t", " ")

// overriddenBy is overridden of a body. Without one content type that can be read a server may take it for any form.
func overriddenBy(body string, types []string, method string) bool {
	kind := ""
	if len(types) == 1 {
		if read, _, err := mime.ParseMediaType(types[0]); err == nil {
			kind = read
		}
	}
	if kind == "" || kind == "multipart/form-data" {
		for line := range strings.Lines(unfold.Replace(body)) {
			name, disposition, _ := strings.Cut(line, ":")
			if !strings.EqualFold(strings.TrimSpace(name), "content-disposition") {
				continue
			}
			_, params, err := mime.ParseMediaType(disposition)
			if err != nil || overridden(strings.ReplaceAll(params["name"], `\`, "")+"=", method) {
				return true
			}
		}
	}
	return (kind == "" || kind == "application/x-www-form-urlencoded") && overridden(body, method)
}

// overridden reports whether a form has a member that asks for another method. Old servers part members at semicolons, too, and
// PHP has an underscore for what no name of its has.
func overridden(form, method string) bool {
	for pair := range strings.FieldsFuncSeq(form, func(c rune) bool { return c == '&' || c == ';' }) {
		name, v, ok := strings.Cut(pair, "=")
		name, _ = unescape(strings.ReplaceAll(name, "+", " "))
		name, _, _ = strings.Cut(name, "\x00") // to which PHP reads it
		seen := seenName(name)
		if !ok || !strings.HasPrefix(seen, "x-http-method") && (seen != "method" || strings.HasPrefix(strings.ToLower(name), "m")) {
			continue
		}
		if v, err := url.QueryUnescape(v); err != nil || !strings.EqualFold(v, method) {
			return true
		}
	}
	return false
}

// errTooLarge is what reading beyond the limit gives.
var errTooLarge = errors.New("too large")

// readBody reads the body of an answer, decompressed where it is gzip, and drops
// the headers that were true of the compressed one. It is bounded by max in the
// decompressed bytes and, since a compressed stream may give none, in the bytes
// that came.
func readBody(ctx context.Context, resp *http.Response, max int64) (string, error) {
	if resp.ContentLength > max && resp.Request.Method != http.MethodHead {
		return "", errTooLarge
	}
	var body io.Reader = &bounded{from: resp.Body, left: max + max/64 + 4096}
	size := resp.ContentLength
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(resp.Header.Values("Content-Encoding"), ",")))
	// A part of a compressed body can't be read by itself.
	if (encoding == "gzip" || encoding == "x-gzip") && resp.StatusCode != http.StatusPartialContent {
		unzipped, err := gzip.NewReader(body)
		switch {
		case err == io.EOF: // there is no body
			return "", nil
		case err != nil:
			return "", err
		}
		body, size = unzipped, -1
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
	}
	body = sdk.Reading(ctx, &bounded{from: body, left: max}, size)
	var text strings.Builder
	buffer := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buffer)
	step := int64(smallBody)
	if size > 0 && size <= step {
		text.Grow(int(size))
	}
	for {
		n, err := io.CopyBuffer(&text, io.LimitReader(body, step), buffer[:])
		if err != nil || n < step {
			return text.String(), err
		}
		// One more waits until there is room for the rest, which nothing is taken for before.
		if n, err = io.CopyN(&text, body, 1); n == 0 {
			return text.String(), ended(err)
		}
		if step = 3 * int64(text.Len()); size >= int64(text.Len()) {
			step = size - int64(text.Len()) + 1
		}
		text.Grow(int(step))
	}
}

// ended is nil where a reader's error is that there is no more.
func ended(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// A bounded reader gives errTooLarge where more is left than may be read.
type bounded struct {
	from io.Reader
	left int64
}

// Read reads, one byte further than is left.
func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.from.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// bodyFields returns the members of the result that tell a body: the text, or base64
// where it is none, and what it says where it is JSON. The same again as a value
// is left out where both would be over the limit.
func bodyFields(body string, headers http.Header, max int64) []value.Field {
	if text, ok := latin(body, headers); ok {
		body = text
	}
	if !utf8.ValidString(body) {
		return []value.Field{
			{Key: "body", Value: value.Str(base64.StdEncoding.EncodeToString([]byte(body)))},
			{Key: "encoding", Value: value.Str("base64")},
		}
	}
	fields := []value.Field{{Key: "body", Value: value.Str(body)}}
	if int64(len(body)) <= min(maxJSON, max/2) && isJSON(headers.Get("Content-Type")) {
		if v, ok := jsonvalue.Read(body); ok {
			fields = append(fields, value.Field{Key: "json", Value: v})
		}
	}
	return fields
}

// latin decodes a body that isn't UTF-8 and says that it is ISO-8859-1 or windows-1252, which
// readers take for the same (WHATWG Encoding, section 4.2). What would be longer than in base64
// is no text.
func latin(body string, headers http.Header) (text string, ok bool) {
	_, params, err := mime.ParseMediaType(headers.Get("Content-Type"))
	switch strings.ToLower(params["charset"]) {
	case "iso-8859-1", "latin1", "windows-1252", "cp1252":
	default:
		return "", false
	}
	if err != nil || utf8.ValidString(body) || headers.Get("Content-Encoding") != "" {
		return "", false
	}
	text, err = charmap.Windows1252.NewDecoder().String(body)
	return text, err == nil && len(text) <= base64.StdEncoding.EncodedLen(len(body))
}

// isJSON reports whether a content type is JSON's, or one with the suffix +json
// (RFC 6839 section 3.1).
func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json"))
}
