package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MaxContentBytes is how many bytes of JSON the content items of an answer may have: more
// than is shown of other results, since clients show an image as one.
const MaxContentBytes = 4 << 20

// A contentItem is a content item as programs give it, in the protocol's own form.
type contentItem struct {
	Type     string           `json:"type"`
	Text     *string          `json:"text"`
	Data     *string          `json:"data"` // in base64
	MIMEType string           `json:"mimeType"`
	Resource *resourceContent `json:"resource"`
}

// A resourceContent is what is at an address, as programs give it.
type resourceContent struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     *string `json:"blob"` // in base64
}

// ReadStrictly reads JSON that has no other keys than those of v.
func ReadStrictly(src []byte, v any) bool {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.DisallowUnknownFields()
	return dec.Decode(v) == nil
}

// Contents is the content items that a result says it is: {content: [item, …]}; nil: it
// is a result as any other.
func Contents(result []byte) []mcp.Content {
	var said struct {
		Content []contentItem `json:"content"`
	}
	if !bytes.HasPrefix(result, []byte(`{"content":[`)) || !ReadStrictly(result, &said) {
		return nil
	}
	var items []mcp.Content
	for i := range said.Content {
		item := said.Content[i].content()
		if item == nil {
			return nil
		}
		items = append(items, item)
	}
	return items
}

// content is the item as the protocol has it; nil: it isn't one.
func (c *contentItem) content() mcp.Content {
	is := func(typ string, all ...bool) bool { return c.Type == typ && !slices.Contains(all, false) }
	var data []byte
	if c.Data != nil {
		var err error
		if data, err = base64.StdEncoding.DecodeString(*c.Data); err != nil {
			return nil
		}
	}
	noData, noText, noResource, noMIME := c.Data == nil, c.Text == nil, c.Resource == nil, c.MIMEType == ""
	switch {
	case is("text", !noText, noData, noResource, noMIME):
		return &mcp.TextContent{Text: *c.Text}
	case is("image", !noData, noText, noResource, strings.HasPrefix(c.MIMEType, "image/")):
		return &mcp.ImageContent{Data: data, MIMEType: c.MIMEType}
	case is("audio", !noData, noText, noResource, strings.HasPrefix(c.MIMEType, "audio/")):
		return &mcp.AudioContent{Data: data, MIMEType: c.MIMEType}
	case is("resource", noData, noText, !noResource, noMIME):
		if r := c.Resource.contents(); r != nil && r.URI != "" {
			return &mcp.EmbeddedResource{Resource: r}
		}
	}
	return nil
}

// contents is the content as the protocol has it; nil: it isn't one.
func (r *resourceContent) contents() *mcp.ResourceContents {
	c := &mcp.ResourceContents{URI: r.URI, MIMEType: r.MIMEType}
	switch {
	case (r.Text == nil) == (r.Blob == nil):
		return nil
	case r.Text != nil:
		c.Text = *r.Text
		return c
	}
	var err error
	if c.Blob, err = base64.StdEncoding.DecodeString(*r.Blob); err != nil {
		return nil
	}
	return c
}

// ResourceContents is the contents that the result of a resource says it is, of which one
// may stand alone: {mimeType, text} or {mimeType, blob}, with a uri or without, or
// {contents: [these, …]}; nil: it is a result as any other.
func ResourceContents(result []byte) []*mcp.ResourceContents {
	var said struct {
		Contents []resourceContent `json:"contents"`
	}
	var one resourceContent
	switch {
	case bytes.HasPrefix(result, []byte(`{"contents":[`)) && ReadStrictly(result, &said):
	case ReadStrictly(result, &one) && one.MIMEType != "":
		said.Contents = append(said.Contents, one)
	}
	var list []*mcp.ResourceContents
	for i := range said.Contents {
		c := said.Contents[i].contents()
		if c == nil {
			return nil
		}
		list = append(list, c)
	}
	return list
}
