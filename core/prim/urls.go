package prim

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// maxURL is the bytes of a URL: reading one can't be stopped.
const maxURL = 64 << 10

// urls is the rows of URLs. This file alone imports net/url, whose rules for what may
// stand where in one are not worth a second copy; it only splits and joins text.
var urls = []Row{
	{
		Name: "parse_url", Group: "formats", Shape: Unary, Params: oneString, Result: KindRecord,
		Doc: "takes a URL of at most 64 KiB apart: scheme, user, host, port (an integer, or null), path, query (a record of strings, of a key that comes twice the last) and fragment, decoded.",
		Examples: []Example{
			{
				Code:  `{"parse_url":"https://example.com:8080/a%20b?q=x&n=1#top"}`,
				Want:  `{"fragment":"top","host":"example.com","path":"/a b","port":8080,"query":{"n":"1","q":"x"},"scheme":"https","user":""}`,
				Steps: 2,
			},
			{Code: `{"get":[{"try":{"parse_url":"http://a:b"}},"ok","no URL"]}`, Want: `"no URL"`},
			{Code: `{"parse_url":null}`, Fault: fault.TypeError},
		},
		Gives: &Type{Kinds: KindRecord, Fields: []Field{
			{Key: "fragment", Type: typeString}, {Key: "host", Type: typeString}, {Key: "path", Type: typeString}, {Key: "port", Type: &Type{Kinds: KindInt | KindUnit}},
			{Key: "query", Type: &Type{Kinds: KindRecord, Rest: typeString}}, {Key: "scheme", Type: typeString}, {Key: "user", Type: typeString},
		}},
		Grows: &Growth{Bytes: Bound{some(1, bytesOf(0))}, Items: Bound{some(1, bytesOf(0)), some(7)}, Value: Bound{some(1 << 16)}, Words: Bound{some(1)}, Steps: Bound{some(2)}},
		Also:  []string{"urlparse", "url_parse", "url", "urlsplit", "new_url", "url_search_params", "urlsearchparams"},
		Cost: func(args []value.Value) uint64 {
			s := string(args[0].(value.Str))
			return stringCost(args) + ItemsCost(strings.Count(s, "&"))
		},
		Size: func(args []value.Value) int64 { return 1024 + 65*int64(min(len(args[0].(value.Str)), maxURL)) },
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			s := string(args[0].(value.Str))
			if len(s) > maxURL {
				return nil, badURL("parse_url", s, "it is longer than 64 KiB")
			}
			return parseURL(s)
		},
	},
	{
		Name: "to_url", Group: "formats", Shape: Unary, Params: oneRecord, Result: KindString,
		Doc: "makes a URL of a record as parse_url gives it, encoded; what it doesn't have is left out, and query is a record of strings or numbers.",
		Examples: []Example{
			{Code: `{"to_url":{"record":{"scheme":"https","host":"example.com","path":"/a b","query":{"record":{"q":"x y","n":1}}}}}`, Want: `"https://example.com/a%20b?n=1&q=x+y"`, Steps: 9},
			{Code: `{"to_url":{"record":{"host":1}}}`, Fault: fault.OutOfRange},
			{Code: `{"to_url":"https://example.com"}`, Fault: fault.TypeError},
		},
		Also: []string{"url_build", "build_url", "urlunparse", "url_format", "format_url", "make_url"},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			s, f := toURL(args[0].(*value.Record))
			if f == nil {
				f = m.take(1+BytesCost(len(s)), int64(len(s)))
			}
			return value.Str(s), f
		},
	},
}

func parseURL(s string) (value.Value, *fault.Fault) {
	u, err := url.Parse(s)
	if err != nil {
		if bad, ok := err.(*url.Error); ok {
			err = bad.Err
		}
		return nil, badURL("parse_url", s, err.Error())
	}
	var port value.Value = value.Unit{}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return nil, badURL("parse_url", s, "the port is from 0 to 65535")
		}
		port = value.NewInt(int64(n))
	}
	q, err := url.ParseQuery(strings.ReplaceAll(u.RawQuery, ";", "%3B")) // which refuses a ;
	if err != nil {
		return nil, badURL("parse_url", s, err.Error())
	}
	var query []value.Field
	for key, all := range q {
		if !utf8.ValidString(key) {
			return nil, badURL("parse_url", s, "a key of its query is no UTF-8")
		}
		query = append(query, value.Field{Key: key, Value: value.Str(all[len(all)-1])})
	}
	user := ""
	if u.User != nil {
		user, _ = url.PathUnescape(u.User.String())
	}
	path := u.Path
	if u.Opaque != "" {
		path = u.Opaque
	}
	text := func(key, s string) value.Field {
		return value.Field{Key: key, Value: value.Str(strings.ToValidUTF8(s, "\ufffd"))}
	}
	for i := range query {
		query[i] = text(query[i].Key, string(query[i].Value.(value.Str)))
	}
	return &value.Record{Fields: []value.Field{
		text("fragment", u.Fragment), text("host", u.Hostname()), text("path", path), {Key: "port", Value: port},
		{Key: "query", Value: recordOf(query, nil)}, text("scheme", u.Scheme), text("user", user),
	}}, nil
}

func badURL(row, s, problem string) *fault.Fault {
	return &fault.Fault{
		Kind: fault.ParseError, Message: fmt.Sprintf("%s: %s is no URL: %s", row, quoted(s), problem), Expected: "a URL", Got: quoted(s),
		Hint: `Encode what stands in one part of it, {"url_encode":S}, or catch the failure: {"try":{"parse_url":S}}.`,
	}
}

func toURL(r *value.Record) (string, *fault.Fault) {
	total := 0
	text := func(key string, v value.Value) (string, *fault.Fault) {
		s, ok := "", true
		switch v := value.Force(v).(type) {
		case value.Str:
			s = string(v)
		case value.Unit:
		case value.Int:
			if ok = v.Words() < free; ok {
				s = v.String()
			}
		case value.Dec:
			if ok = v.Words() < free; ok {
				s = v.String()
			}
		default:
			ok = false
		}
		if total += len(s) + len(key); !ok || total > maxURL {
			got := Describe(v)
			if ok {
				got = "longer than 64 KiB"
			}
			return "", outOfRange(fmt.Sprintf("to_url: %s is %s", quoted(key), got), "strings of at most 64 KiB together, a number as the port, a record as the query", got,
				`Write it as in {"to_url":{"record":{"scheme":"https","host":"example.com","path":"/a","query":{"record":{"q":"x"}}}}}.`)
		}
		return s, nil
	}
	var u url.URL
	var port string
	parts := map[string]*string{"scheme": &u.Scheme, "host": &u.Host, "port": &port, "path": &u.Path, "fragment": &u.Fragment, "user": new(string)}
	for _, field := range r.Fields {
		v := value.Force(field.Value)
		if q, isRecord := v.(*value.Record); field.Key == "query" && isRecord {
			query := url.Values{}
			for _, p := range q.Fields {
				s, f := text(p.Key, p.Value)
				if f != nil {
					return "", f
				}
				query.Set(p.Key, s)
			}
			u.RawQuery = query.Encode()
			continue
		}
		to := parts[field.Key]
		_, isString := v.(value.Str)
		if to == nil || !isString && v != (value.Unit{}) && field.Key != "port" {
			names := []string{"scheme", "user", "host", "port", "path", "query", "fragment"}
			f := outOfRange(fmt.Sprintf("to_url: %s is %s", quoted(field.Key), Describe(v)), "a record of "+strings.Join(names, ", "), quoted(field.Key),
				`Write it as in {"to_url":{"record":{"scheme":"https","host":"example.com","path":"/a","query":{"record":{"q":"x"}}}}}.`)
			if to == nil && field.Key != "query" {
				f.Near = Closest(field.Key, names)
				f.Message = "to_url: a URL has no part " + quoted(field.Key)
			}
			return "", f
		}
		s, f := text(field.Key, v)
		if f != nil {
			return "", f
		}
		*to = s
	}
	if colons := strings.Count(u.Host, ":"); colons > 0 && u.Host[0] != '[' {
		if colons == 1 {
			f := badURL("to_url", u.Host, "the host has a colon")
			f.Hint = `Give the port as "port": {"to_url":{"record":{"scheme":"https","host":"example.com","port":8080}}}.`
			return "", f
		}
		u.Host = "[" + u.Host + "]"
	}
	if port != "" {
		u.Host += ":" + port
	}
	if user := *parts["user"]; user != "" {
		name, password, has := strings.Cut(user, ":")
		if u.User = url.User(name); has {
			u.User = url.UserPassword(name, password)
		}
	}
	switch {
	case u.Path == "" || u.Path[0] == '/':
	case u.Scheme != "" && u.Host == "" && u.User == nil: // mailto:a@b
		u.Opaque, u.Path = strings.NewReplacer("?", "%3F", "#", "%23", " ", "%20").Replace(u.Path), ""
	case u.Host != "" || u.User != nil:
		u.Path = "/" + u.Path
	}
	s := u.String()
	back, err := url.Parse(s)
	if err != nil {
		return "", badURL("to_url", s, "a part has what can't stand there")
	}
	for _, part := range [][3]string{
		{"scheme", back.Scheme, strings.ToLower(u.Scheme)}, {"host", back.Host, u.Host}, {"path", back.Opaque + strings.TrimPrefix(back.Path, "./"), u.Opaque + strings.TrimPrefix(u.Path, "./")},
		{"fragment", back.Fragment, u.Fragment},
	} {
		if part[1] != part[2] {
			return "", badURL("to_url", s, "a part spills over: its "+part[0]+" would be "+quoted(part[1]))
		}
	}
	return s, nil
}
