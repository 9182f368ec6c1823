//go:build linux

package host

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

const (
	theKey   = `sk-live-4f9Q+z/7&"x`
	otherKey = "the-other-secret-value"
)

// leaky is a plugin that gives back whatever it gets, in every way it has.
func leaky() sdk.Plugin {
	type arguments struct {
		Place string     `pif:"place,designates" doc:"where"`
		Key   sdk.Secret `pif:"key,optional" doc:"a secret"`
		Mark  string     `pif:"mark,optional" doc:"a file"`
	}
	var mu sync.Mutex
	kept := ""
	op := func(name string, act func(ctx context.Context, a arguments, key string) (value.Value, error)) sdk.Operation {
		return sdk.Op(name, "leaks", sdk.Flags{ReadOnly: true}, func(ctx context.Context, _ any, a arguments) (value.Value, error) {
			key := ""
			if a.Key.Name() != "" {
				var err error
				if key, err = a.Key.Reveal(ctx); err != nil {
					return nil, err
				}
			}
			return act(ctx, a, key)
		})
	}
	return sdk.Plugin{
		Kind: "leak", Version: "1.0.0", Doc: "Gives back what it gets.", Scope: sdk.Segments,
		Operations: []sdk.Operation{
			op("give", func(_ context.Context, _ arguments, key string) (value.Value, error) {
				j, err := json.Marshal(map[string]string{"key": key})
				if err != nil {
					return nil, err
				}
				return value.FromSlice([]value.Value{
					value.Str("Bearer " + key), value.Str(j), value.Str(url.QueryEscape(key)),
					value.Str(base64.StdEncoding.EncodeToString([]byte("me:" + key))),
				}), nil
			}),
			op("key", func(_ context.Context, _ arguments, key string) (value.Value, error) {
				return &value.Record{Fields: []value.Field{{Key: key, Value: value.Unit{}}}}, nil
			}),
			op("size", func(_ context.Context, _ arguments, key string) (value.Value, error) {
				return value.NewInt(int64(len(key))), nil
			}),
			op("print", func(_ context.Context, a arguments, _ string) (value.Value, error) {
				return value.Str(fmt.Sprintf("%v %+v %#v %s", a, a, a, a.Key)), nil
			}),
			op("fail", func(_ context.Context, _ arguments, key string) (value.Value, error) {
				return nil, sdk.Fail("failed", "it was %s", key).WithHint("Use " + key + ".")
			}),
			op("cut", func(_ context.Context, _ arguments, key string) (value.Value, error) {
				return nil, sdk.Fail("failed", "%s%s", strings.Repeat("x", 990), key)
			}),
			op("half", func(_ context.Context, _ arguments, key string) (value.Value, error) {
				return nil, sdk.Fail("failed", "it begins with %s", key[:len(key)-3])
			}),
			op("invisible", func(_ context.Context, _ arguments, key string) (value.Value, error) {
				return nil, sdk.Fail("failed", "it was %s", strings.Join(strings.Split(key, ""), "\u200b"))
			}),
			op("tell", func(ctx context.Context, _ arguments, key string) (value.Value, error) {
				sdk.Progress(ctx, "using %s", key)
				return value.Str("told"), nil
			}),
			op("shout", func(_ context.Context, _ arguments, key string) (value.Value, error) {
				fmt.Fprintf(os.Stderr, "using %s\n", key)
				fmt.Fprintf(os.Stdout, "%s%s\n", strings.Repeat("y", lineBytes-8), key)
				hclog.New(&hclog.LoggerOptions{Output: os.Stderr, JSONFormat: true}).Warn("with " + key)
				fmt.Fprintln(os.Stderr, "shouted")
				return value.Str("shouted"), nil
			}),
			op("panic", func(_ context.Context, _ arguments, key string) (value.Value, error) { panic("with " + key) }),
			op("keep", func(_ context.Context, _ arguments, key string) (value.Value, error) {
				mu.Lock()
				defer mu.Unlock()
				if key != "" {
					kept = key
				}
				return value.Str("kept " + kept), nil
			}),
			op("crash", func(_ context.Context, a arguments, key string) (value.Value, error) {
				crash(a.Mark)
				return value.NewInt(int64(len(key))), nil
			}),
			op("inherited", func(context.Context, arguments, string) (value.Value, error) {
				in, err := inherit()
				return value.Str(fmt.Sprint(in)), err
			}),
		},
	}
}

// An unable plugin says that it takes secrets, in its manifest, and doesn't have
// the feature.
type unable struct{ raw }

func beUnable() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: wire.Handshake, Plugins: plugin.PluginSet{wire.Service: &unable{}}, GRPCServer: plugin.DefaultGRPCServer,
		Logger: hclog.NewNullLogger(),
	})
}

func (u *unable) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	pluginv1.RegisterPluginServer(s, u)
	return nil
}

func (u *unable) Describe(context.Context, *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	m, err := leaky().Manifest()
	return &pluginv1.DescribeResponse{Protocol: wire.Protocol, Manifest: wire.ToManifest(m), Features: []string{wire.FeatureCancel}}, err
}

func (u *unable) Invoke(_ context.Context, q *pluginv1.InvokeRequest) (*pluginv1.InvokeResponse, error) {
	return &pluginv1.InvokeResponse{Outcome: &pluginv1.InvokeResponse_Failure{
		Failure: &pluginv1.Failure{Code: "failed", Message: fmt.Sprintf("%d secrets", len(q.Secrets))},
	}}, nil
}

// secretWorld is a world with the leaky plugin, and two secrets bound.
func secretWorld(t *testing.T, role string) (w *world, h *caps.Held) {
	t.Helper()
	exe, err := os.Executable()
	must.NoError(t, err)
	m, err := leaky().Manifest()
	must.NoError(t, err)
	kinds, err := caps.NewKinds(m)
	must.NoError(t, err)
	w = &world{policy: caps.NewPolicy(kinds, nil), kinds: kinds, log: &wait.Log{}, dir: t.TempDir()}
	if w.Host, err = New(Options{
		Sandbox: unboxed, RuntimeDir: w.dir, Secrets: w.policy.Secrets(),
		Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}); err != nil {
		t.Fatal(err)
	}
	w.patient()
	must.NoError(t, w.Add(Source{Manifest: m, Path: exe, Args: []string{role}}))
	t.Cleanup(func() {
		if err := w.Host.Close(); err != nil {
			t.Error(err)
		}
		for _, v := range []string{theKey, otherKey, theKey[:8], url.QueryEscape(theKey)} {
			if log := w.log.String(); strings.Contains(log, v) {
				t.Errorf("the log has %q:\n%.10000s", v, log)
			}
		}
	})
	w.policy.Secrets().Replace([]*caps.Secret{w.secret(t, "key", theKey), w.secret(t, "other", otherKey)})
	return w, w.grant(t, "leak:**")
}

func (w *world) secret(t *testing.T, name, v string) *caps.Secret {
	t.Helper()
	b, err := caps.ParseBinding(name+"=leak:safe/**,file=-", w.kinds)
	must.NoError(t, err)
	s, err := caps.NewSecret(b, v)
	must.NoError(t, err)
	return s
}

// using is an act as the broker makes it: permitted, with the secrets that its
// arguments name.
func (w *world) using(t *testing.T, h *caps.Held, name string, fields ...value.Field) run.Act {
	t.Helper()
	fields = append(fields, arg("place", value.Str("safe/a")))
	r := &value.Record{Fields: []value.Field{}}
	for _, key := range []string{"key", "mark", "place"} {
		for _, f := range fields {
			if f.Key == key {
				r.Fields = append(r.Fields, f)
			}
		}
	}
	p, f := w.policy.Permit(caps.NewLedger(), []*caps.Held{h}, caps.Request{Operation: "leak." + name, Arg: r, Tool: "t"})
	must.NoFault(t, f)
	a := act(t, h, name)
	a.Args, a.Secrets = p.Args, p.Secrets
	return a
}

var aKey = arg("key", &value.Record{Fields: []value.Field{{Key: "secret", Value: value.Str("key")}}})

// TestSecretsDontComeBack: whatever a plugin does with a secret that it was given,
// neither the outcome nor the log has it.
func TestSecretsDontComeBack(t *testing.T) {
	w, h := secretWorld(t, "leaky")
	perform := func(a run.Act) (string, *fault.Fault) {
		v, _, f := w.Perform(context.Background(), a)
		return shown(v), f
	}
	if got, f := perform(w.using(t, h, "size", aKey)); f != nil || got != fmt.Sprint(len(theKey)) {
		t.Fatalf("the plugin got %s, %v", got, f)
	}
	for name, want := range map[string]string{
		"give":  `[Bearer [secret key] {"key":"[secret key]"} [secret key] ` + base64.StdEncoding.EncodeToString([]byte("me:")) + `[secret key]==]`,
		"key":   "{[secret key]:{}}",
		"keep":  "kept [secret key]",
		"shout": "shouted",
	} {
		if got, f := perform(w.using(t, h, name, aKey)); f != nil || got != want {
			t.Errorf("%s gives %s, %v; expected %s", name, got, f, want)
		}
	}
	if got, f := perform(w.using(t, h, "print", aKey)); f != nil || strings.Count(got, "[secret key]") != 4 {
		t.Errorf("printed it is %s, %v", got, f)
	}
	for name, want := range map[string]string{
		"fail": "it was [secret key]", "cut": "x[secret", "half": "it begins with [secret key]…", "invisible": "it was [secret key]", "panic": "has a defect",
	} {
		_, f := perform(w.using(t, h, name, aKey))
		if f == nil || !strings.Contains(f.Message, want) {
			t.Errorf("%s fails with %.1200v, expected %q", name, f, want)
			continue
		}
		for err := error(f); err != nil; {
			if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, theKey[:8]) {
				t.Errorf("%s: the fault has it: %s", name, text)
			}
			u, ok := err.(interface{ Unwrap() error })
			if !ok {
				break
			}
			err = u.Unwrap()
		}
	}
	// What it kept of one request it can't give back in another.
	if got, f := perform(w.using(t, h, "keep")); f != nil || got != "kept [secret key]" {
		t.Errorf("later: %s, %v", got, f)
	}
	var news []string
	a := w.using(t, h, "tell", aKey)
	a.Progress = func(message string) { news = append(news, message) }
	if _, f := perform(a); f != nil || len(news) != 1 || news[0] != "using [secret key]" {
		t.Errorf("progress: %q, %v", news, f)
	}
	if got, f := perform(w.using(t, h, "inherited", aKey)); f != nil || strings.Contains(got, "sk-live") || !strings.Contains(got, "MCP_PIF_PLUGIN") {
		t.Errorf("the process has %s, %v", got, f)
	}
	wait.Until(t, "the log has what the plugin wrote", func() bool {
		log := w.log.String()
		return strings.Contains(log, "using [secret key]") && strings.Contains(log, "msg=shouted") && strings.Contains(log, "with [secret key]")
	})
}

// TestSecretsAreForTheirRequest: a process that died gets them anew, a request that
// names none gets none, what is rotated takes effect with the next request, and a
// revoked grant ends all.
func TestSecretsAreForTheirRequest(t *testing.T) {
	w, h := secretWorld(t, "leaky")
	mark := arg("mark", value.Str(w.dir+"/mark"))
	v, _, f := w.Perform(context.Background(), w.using(t, h, "crash", aKey, mark))
	if f != nil || shown(v) != fmt.Sprint(len(theKey)) || w.Status()[0].Starts != 2 {
		t.Errorf("after a crash: %v, %v, %+v", v, f, w.Status())
	}
	if v, _, f := w.Perform(context.Background(), w.using(t, h, "size")); f != nil || shown(v) != "0" {
		t.Errorf("a request without a secret: %v, %v", v, f)
	}
	// Nothing is given for a name alone.
	a := w.using(t, h, "size", aKey)
	a.Secrets = nil
	w.fails(t, a, fault.Denied, "without the secret key")
	w.policy.Secrets().Replace([]*caps.Secret{w.secret(t, "key", otherKey)})
	if v, _, f := w.Perform(context.Background(), w.using(t, h, "size", aKey)); f != nil || shown(v) != fmt.Sprint(len(otherKey)) {
		t.Errorf("after a rotation: %v, %v", v, f)
	}
	a = w.using(t, h, "give", aKey)
	w.policy.Revoke(h.Grant.ID)
	w.fails(t, a, fault.Denied, "was revoked by the operator")
}

// A plugin without the feature never gets one.
func TestSecretsNeedTheFeature(t *testing.T) {
	w, h := secretWorld(t, "unable")
	w.fails(t, w.using(t, h, "give", aKey), fault.EffectFailed, "can't take any")
	w.fails(t, w.using(t, h, "give"), fault.EffectFailed, "0 secrets")
}

// shown is a value as text.
func shown(v value.Value) string {
	switch v := v.(type) {
	case *value.Cons:
		items, _ := value.Slice(v)
		var all []string
		for _, item := range items {
			all = append(all, shown(item))
		}
		return "[" + strings.Join(all, " ") + "]"
	case *value.Record:
		var all []string
		for _, f := range v.Fields {
			all = append(all, f.Key+":"+shown(f.Value))
		}
		return "{" + strings.Join(all, " ") + "}"
	}
	return fmt.Sprint(v)
}
