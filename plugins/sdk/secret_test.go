package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

const theKey = "sk-live-4f9Q"

// mailer is a plugin with a place for a secret of every kind.
func mailer() sdk.Plugin {
	type account struct {
		User string
		Key  sdk.Secret
	}
	type arguments struct {
		To      string                 `pif:"to,main,designates" doc:"whom"`
		Key     sdk.Secret             `doc:"the account's"`
		Other   *sdk.Secret            `doc:"another"`
		List    []sdk.Secret           `pif:"list,optional"`
		Named   map[string]sdk.Secret  `pif:"named,optional"`
		Account *account               `pif:"account,optional"`
		Any     map[string]value.Value `pif:"any,optional,secrets"`
		Data    value.Value            `pif:"data,optional"`
	}
	return sdk.Plugin{
		Kind: "mail", Version: "1.0.0", Doc: "sends", Scope: sdk.Segments,
		Operations: []sdk.Operation{sdk.Op("send", "sends", sdk.Flags{}, func(ctx context.Context, _ any, a arguments) ([]string, error) {
			var got []string
			reveal := func(s sdk.Secret) error {
				v, err := s.Reveal(ctx)
				got = append(got, s.Name()+"="+v)
				return err
			}
			all := append([]sdk.Secret{a.Key}, a.List...)
			if a.Other != nil {
				all = append(all, *a.Other)
			}
			if a.Account != nil {
				all = append(all, a.Account.Key)
			}
			if s, ok := a.Named["x"]; ok {
				all = append(all, s)
			}
			if s, more, ok := sdk.SecretIn(a.Any["x"]); ok && len(more) == 1 {
				all = append(all, s)
			}
			for _, s := range all {
				if err := reveal(s); err != nil {
					return nil, err
				}
			}
			within, verbs, _ := a.Key.Bound(ctx)
			return append(got, within, strings.Join(verbs, " ")), nil
		})},
	}
}

func record(fields ...value.Field) *value.Record {
	slices.SortFunc(fields, func(a, b value.Field) int { return strings.Compare(a.Key, b.Key) })
	return &value.Record{Fields: fields}
}

func with(key string, v value.Value) value.Field { return value.Field{Key: key, Value: v} }

func naming(name string, more ...value.Field) value.Value {
	return record(append(more, with("secret", value.Str(name)))...)
}

// TestSecretArguments: each place is marked in the manifest, and gives the value of
// the secret that is named there.
func TestSecretArguments(t *testing.T) {
	m, err := mailer().Manifest()
	must.NoError(t, err)
	marked := map[string]string{}
	for _, p := range m.Operations[0].Params {
		if p.Secrets {
			marked[p.Name] = p.Type
		}
	}
	if got := fmt.Sprint(marked); got != "map[account:record any:record key:any list:list named:record other:any]" {
		t.Errorf("marked are %s", got)
	}
	ctx := sdk.WithSecret(sdk.WithSecret(t.Context(), "a", theKey, "acme/**", "send"), "b", "another-value", "acme/**")
	h, err := sdk.Direct(ctx, mailer(), sdk.Capability{Within: "acme/**"})
	must.NoError(t, err)
	to := with("to", value.Str("acme/x"))
	v, err := h.Invoke(ctx, "mail.send", record(to, with("key", naming("a")), with("other", naming("b")),
		with("list", value.FromSlice([]value.Value{naming("b")})), with("named", record(with("x", naming("a")))),
		with("account", record(with("user", value.Str("me")), with("key", naming("b")))),
		with("any", record(with("x", naming("a", with("prefix", value.Str("p"))))))))
	must.NoError(t, err)
	items, _ := value.Slice(v)
	if got := fmt.Sprint(items); got != "[a="+theKey+" b=another-value b=another-value b=another-value a="+theKey+" a="+theKey+" acme/** send]" {
		t.Errorf("got %s", got)
	}
	for says, args := range map[string]*value.Record{
		"without the secret c":       record(to, with("key", naming("c"))),
		`such as {"secret": "NAME"}`: record(to, with("key", value.Str("a"))),
		"names a secret":             record(to, with("key", naming("a", with("prefix", value.Str("p"))))),
		"key must be a record":       record(to, with("key", record(with("secret", value.NewInt(1))))),
		"list[0] must be a record":   record(to, with("key", naming("a")), with("list", value.FromSlice([]value.Value{value.Str("a")}))),
		"key is missing":             record(to),
	} {
		_, err := h.Invoke(ctx, "mail.send", args)
		if f, ok := errors.AsType[sdk.Failure](err); !ok || !strings.Contains(f.Message, says) {
			t.Errorf("expected %q: %v", says, err)
		}
	}
	// In a context of no request there is none.
	if _, err := h.Invoke(context.Background(), "mail.send", record(to, with("key", naming("a")))); err == nil {
		t.Error("a secret without a request was given")
	}
}

// TestSecretPrints: an argument shows its name, however it is printed.
func TestSecretPrints(t *testing.T) {
	s, _, ok := sdk.SecretIn(naming("a"))
	if !ok {
		t.Fatal("not read")
	}
	type holder struct {
		Key  sdk.Secret
		Keys map[string]sdk.Secret
	}
	h := holder{s, map[string]sdk.Secret{"x": s}}
	b, err := json.Marshal(h)
	must.NoError(t, err)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", s)
	for _, text := range []string{fmt.Sprintf("%v", s), fmt.Sprintf("%+v", h), fmt.Sprintf("%#v", h), fmt.Sprintf("%s %q %d", s, s, s), string(b), log.String()} {
		if !strings.Contains(text, "[secret a]") {
			t.Errorf("printed it is %s", text)
		}
	}
}

// TestSecretMistakes: types by which a secret would be where the host doesn't
// look, or would be given back.
func TestSecretMistakes(t *testing.T) {
	plugin := func(o sdk.Operation) sdk.Plugin {
		return sdk.Plugin{Kind: "mail", Version: "1.0.0", Doc: "sends", Scope: sdk.Segments, Operations: []sdk.Operation{o}}
	}
	for name, c := range map[string]struct {
		o    sdk.Operation
		says string
	}{
		"deep": {sdk.Op("a", "a", sdk.Flags{}, func(context.Context, any, struct {
			Deep []map[string]sdk.Secret
		}) (string, error) {
			return "", nil
		}), "nothing deeper"},
		"deeper": {sdk.Op("a", "a", sdk.Flags{}, func(context.Context, any, struct {
			Deep struct{ A struct{ Key sdk.Secret } }
		}) (string, error) {
			return "", nil
		}), "nothing deeper"},
		"a string": {sdk.Op("a", "a", sdk.Flags{}, func(context.Context, any, struct {
			Key string `pif:"key,secrets"`
		}) (string, error) {
			return "", nil
		}), "what takes secrets"},
		"given back": {sdk.Op("a", "a", sdk.Flags{}, func(context.Context, any, struct{}) ([]sdk.Secret, error) {
			return nil, nil
		}), "never given back"},
	} {
		if _, err := plugin(c.o).Manifest(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
