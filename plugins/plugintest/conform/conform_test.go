package conform

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/fetch"
	"github.com/mcp-pif/mcp-pif/plugins/fs"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// The programs of the tests are this test binary, by a word as its argument.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if act, ok := roles[os.Args[1]]; ok {
			act()
			os.Exit(0)
		}
		switch os.Args[1] {
		case "fs":
			sdk.Serve(fs.Plugin())
		case "fetch":
			sdk.Serve(fetch.Plugin())
		}
	}
	os.Exit(m.Run())
}

func program(t *testing.T, role string) host.Source {
	t.Helper()
	exe, err := os.Executable()
	must.NoError(t, err)
	return host.Source{Path: exe, Args: []string{role}}
}

// run makes the checks, and waits as long as a busy machine may take.
func run(t *testing.T, o Options) *Report {
	t.Helper()
	if o.Patience = 4 * time.Minute; o.Grace == 0 {
		o.Grace = o.Patience
	}
	r, err := Run(t.Context(), o)
	must.NoError(t, err)
	return r
}

// The plugins that ship, and a toy without a defect, pass every check, in this process and
// as programs. Those of fs in a process of tests are in its own tests.
func TestHonestPluginsPass(t *testing.T) {
	toy, web := honest(), fetch.Plugin()
	slow := Fixtures{Calls: []Call{{Operation: "toy.wait", Arguments: Arguments("for", 3600), Slow: true}}}
	for name, o := range map[string]Options{
		"toy": {Plugin: &toy, Fixtures: slow}, "fetch": {Plugin: &web},
		"toy's program": {Source: program(t, "honest"), Fixtures: slow},
		"fs's program":  {Source: program(t, "fs")}, "fetch's program": {Source: program(t, "fetch")},
		"a program without certificates": {Source: program(t, "plain"), Fixtures: slow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, o)
			if !r.Passed() || len(r.Checks) != len(checks) {
				t.Fatalf("\n%s", r)
			}
			for _, c := range r.Checks {
				wanted := c.Status == OK || o.Plugin != nil && strings.Contains("handshake crash stdout", c.Name) ||
					r.Kind == "toy" && strings.Contains("flags denials", c.Name) || r.Kind != "fetch" && c.Name == "secrets"
				if !wanted {
					t.Errorf("%s was %s: %s", c.Name, c.Status, c.Detail)
				}
			}
		})
	}
}

// A plugin that takes a secret as it should passes.
func TestSecretsAreTaken(t *testing.T) {
	p := signer(honestly)
	r := run(t, Options{Plugin: &p, only: []string{"results", "arguments", "secrets", "hostile", "concurrency"}})
	if got, _ := r.Check("secrets"); !r.Passed() || got.Status != OK || got.Detail != "1 places" {
		t.Errorf("\n%s", r)
	}
}

// An operation of which a slow call is known goes on with guessed arguments, too, until it is told to end.
func TestSlowPasses(t *testing.T) {
	p := and(sdk.Op("watch", "waits for what never comes", reads, func(ctx context.Context, _ any, _ named) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}))
	slow := Fixtures{Calls: []Call{{Operation: "toy.watch", Arguments: Arguments("name", "a"), Slow: true}}}
	if r := run(t, Options{Plugin: &p, Grace: 100 * time.Millisecond, Fixtures: slow, only: []string{"results", "hostile", "concurrency", "progress"}}); !r.Passed() {
		t.Errorf("\n%s", r)
	}
}

// Calls whose values are drawn by chance pass, also where a few of them in a row happen to be alike.
func TestChancePasses(t *testing.T) {
	var calls atomic.Int64
	p := honest()
	p.Operations[0] = sdk.Op("draw", "draws a coin", sdk.Flags{ReadOnly: true}, func(context.Context, any, named) (string, error) {
		if calls.Add(1)%4 == 0 {
			return "tails", nil
		}
		return "heads", nil
	})
	if r := run(t, Options{Plugin: &p, only: []string{"concurrency"}}); !r.Passed() {
		t.Errorf("\n%s", r)
	}
}

// Every defect is found, by the check that is for it and in words that say what.
func TestDefectsAreFound(t *testing.T) {
	plugin := func(p sdk.Plugin) Options { return Options{Plugin: &p} }
	behind := func(p *proxy) Options { return Options{server: p.serve} }
	deaf := and(sdk.Op("sleep", "sleeps whatever it is told", reads, func(context.Context, any, struct{}) (string, error) {
		<-t.Context().Done() // the end of all of these tests
		return "slept", nil
	}))
	timely := and(sdk.Op("sleep", "sleeps until its time is over", reads, func(ctx context.Context, _ any, _ struct{}) (string, error) {
		over := t.Context()
		if end, ok := ctx.Deadline(); ok {
			var stop context.CancelFunc
			over, stop = context.WithDeadline(over, end)
			defer stop()
		}
		<-over.Done()
		return "slept", nil
	}))
	sleeps := func(p *sdk.Plugin) Options {
		return Options{Plugin: p, Grace: 500 * time.Millisecond, Fixtures: Fixtures{Calls: []Call{{Operation: "toy.sleep", Slow: true}}}}
	}
	handles := &pluginv1.OpenResponse_Handle{Handle: 1}
	for _, c := range []struct {
		defect, check, says string
		o                   Options
	}{
		{"an int where a string was said", "results", "int where string was said", plugin(and(sdk.Op("count", "counts", reads,
			func(context.Context, any, struct{}) (int, error) { return 3, nil }, sdk.Result("string"))))},
		{"a member that wasn't said", "results", "a record with b, which wasn't said", plugin(and(sdk.Op("both", "gives two", reads,
			func(context.Context, any, struct{}) (map[string]int, error) {
				return map[string]int{"a": 1, "b": 2}, nil
			}, sdk.Result("record: a"))))},
		{"a member that isn't there", "results", "a record without c", plugin(and(sdk.Op("both", "gives two", reads,
			func(context.Context, any, struct{}) ([]map[string]int, error) { return []map[string]int{{"a": 1}}, nil }, sdk.Result("list of records: a, c"))))},
		{"what isn't of the type that was said", "results", "list where string was said (its type is string)", plugin(and(sdk.Op("any", "gives a list", reads,
			func(context.Context, any, struct{}) (value.Value, error) { return value.Nil{}, nil }, sdk.Type("string"))))},
		{"a part that isn't of the type", "results", "item 1: b: unit where int was said (its type is list[{b?: int}])", plugin(and(sdk.Op("any", "gives a list", reads,
			func(context.Context, any, struct{}) (value.Value, error) {
				field := func(v value.Value) value.Value { return &value.Record{Fields: []value.Field{{Key: "b", Value: v}}} }
				return value.FromSlice([]value.Value{field(value.NewInt(1)), field(value.Unit{})}), nil
			}, sdk.Type("list[{b?: int}]"), sdk.Result("value"))))},
		{"another type than the process gives", "results", "string where int was said (its type is int)", behind(&proxy{describe: func(r *pluginv1.DescribeResponse) {
			r.Manifest.Operations[0].Type = "int"
		}})},
		{"a type that is none", "handshake", "the type of its answer", behind(&proxy{describe: func(r *pluginv1.DescribeResponse) {
			r.Manifest.Operations[0].Type = "strin"
		}})},
		{"a failure of a code of its own", "results", `the code "oops"`, behind(&proxy{answer: func(r *pluginv1.InvokeResponse) {
			r.Outcome = &pluginv1.InvokeResponse_Failure{Failure: &pluginv1.Failure{Code: "oops", Message: "it went wrong"}}
		}})},
		{"an answer without an outcome", "results", "without an outcome", behind(&proxy{answer: func(r *pluginv1.InvokeResponse) { r.Outcome = nil }})},
		{"a fixture's call that fails", "results", "the fixtures' call of toy.say", Options{Plugin: plugin(honest()).Plugin,
			Fixtures: Fixtures{Calls: []Call{{Operation: "toy.say", Arguments: Arguments("nobody", 1)}}}}},
		{"a type that isn't checked", "arguments", "with v of the type int answered with a value", func() Options {
			p := and(sdk.Op("echo", "gives it back", reads, func(_ context.Context, _ any, a struct {
				V value.Value `pif:"v,main"`
			}) (value.Value, error) {
				return a.V, nil
			}))
			return Options{server: func(root *os.File) (*grpc.Server, error) {
				return (&proxy{describe: func(r *pluginv1.DescribeResponse) { r.Manifest.Operations[2].Params[0].Type = "string" }}).serveOf(p, root)
			}}
		}()},
		{"an unknown argument that is dropped", "arguments", "with an argument that it doesn't have", behind(&proxy{ask: func(r *pluginv1.InvokeRequest) error {
			return withoutArgument(r, "no_such_argument")
		}})},
		{"an unknown operation that is performed", "arguments", `the operation "toy.no_such_operation"`, behind(&proxy{ask: func(r *pluginv1.InvokeRequest) error {
			if r.Operation == "toy.no_such_operation" {
				r.Operation, r.Arguments = "toy.say", mustEncode(Arguments("name", "x"))
			}
			return nil
		}})},
		{"a reader that writes", "flags", "seen.log was made", plugin(folder{scribe: true}.plugin())},
		{"a reader that posts", "flags", "made the request POST", plugin(browser(true, true))},
		{"paths that lead up", "scope", "gave what stands outside its scope, by path=../outside/canary.txt", plugin(folder{}.plugin())},
		{"links that are followed", "scope", "followed the link out.txt", plugin(folder{lexical: true}.plugin())},
		{"a part that isn't a part", "scope", "gave what stands above the part that was opened", plugin(folder{within: true, scribe: false}.plugin())},
		{"an argument that designates unmarked", "scope", "template", plugin(folder{hidden: true}.plugin())},
		{"redirects that are followed", "scope", "another origin was asked for", plugin(browser(false, true))},
		{"another origin", "scope", "took url=", plugin(browser(false, false))},
		{"denials that are ignored", "denials", "gave what is denied", plugin(folder{within: true}.plugin())},
		{"redirects to what is denied", "denials", "followed a redirect to what is denied", plugin(browser(false, false))},
		{"a secret that comes back", "secrets", "toy.sign with a secret gives it back", plugin(signer(func(v string, _ error) (string, error) { return "signed with " + v, nil }))},
		{"a secret in a failure", "secrets", "gives it back", func() Options {
			var given atomic.Value
			given.Store("")
			p := &proxy{ask: func(r *pluginv1.InvokeRequest) error {
				for _, s := range r.Secrets {
					given.Store(s.Value)
				}
				return nil
			}, answer: func(r *pluginv1.InvokeResponse) {
				r.Outcome = &pluginv1.InvokeResponse_Failure{Failure: &pluginv1.Failure{Code: "failed", Message: "not " + given.Load().(string)}}
			}}
			return Options{server: func(root *os.File) (*grpc.Server, error) { return p.serveOf(signer(honestly), root) }}
		}()},
		{"a secret that isn't missed", "secrets", "names a secret that it wasn't given", plugin(signer(func(string, error) (string, error) { return "signed", nil }))},
		{"a secret without the feature", "secrets", "doesn't have the feature", Options{server: func(root *os.File) (*grpc.Server, error) {
			return (&proxy{describe: func(r *pluginv1.DescribeResponse) { r.Features = nil }}).serveOf(signer(honestly), root)
		}}},
		{"a secret that is taken along", "secrets", "followed a redirect to /in/landed", plugin(bearer())},
		{"handles that live on", "handles", "a handle that was closed", behind(&proxy{close: true})},
		{"any number as a handle", "handles", "which it never gave", behind(&proxy{ask: func(r *pluginv1.InvokeRequest) error { r.Handle = 1; return nil }})},
		{"one handle for all", "open", "the handle 1 twice", behind(&proxy{open: func(_ *pluginv1.OpenRequest, r *pluginv1.OpenResponse) error { r.Outcome = handles; return nil }})},
		{"a scope that isn't taken", "open", "name one in the fixtures", behind(&proxy{open: func(*pluginv1.OpenRequest, *pluginv1.OpenResponse) error {
			return status.Error(codes.InvalidArgument, "only rome")
		}})},
		{"cancellation that isn't heard", "cancel", "toy.sleep goes on", sleeps(&deaf)},
		{"cancellation that isn't heard before the call's time is over", "cancel", "toy.sleep goes on", sleeps(&timely)},
		{"a deadline that isn't heard", "deadline", "toy.sleep goes on", sleeps(&deaf)},
		{"a stream of two outcomes", "progress", "goes on after its outcome", behind(&proxy{stream: func(s grpc.ServerStreamingServer[pluginv1.InvokeStreamResponse]) error {
			_ = s.Send(outcome())
			return s.Send(outcome())
		}})},
		{"a stream of none", "progress", "gave 0 outcomes", behind(&proxy{stream: func(grpc.ServerStreamingServer[pluginv1.InvokeStreamResponse]) error { return nil }})},
		{"an outcome that is too large", "sizes", "bytes where", behind(&proxy{ask: func(r *pluginv1.InvokeRequest) error { r.MaxOutcomeBytes = 0; return nil }})},
		{"fields that aren't known", "unknown fields", "toy.say with unknown fields answered with the status Internal", behind(&proxy{ask: func(r *pluginv1.InvokeRequest) error {
			if len(r.ProtoReflect().GetUnknown()) > 0 {
				return status.Error(codes.Internal, "what is field 1000?")
			}
			return nil
		}})},
		{"a capability with fields that aren't known", "unknown fields", "can't be opened", behind(&proxy{open: func(r *pluginv1.OpenRequest, _ *pluginv1.OpenResponse) error {
			if len(r.Capability.ProtoReflect().GetUnknown()) > 0 {
				return status.Error(codes.Internal, "what is field 1000?")
			}
			return nil
		}})},
		{"calls that mix their arguments", "concurrency", "gave another value than alone", plugin(mixing())},
		{"another manifest each time", "describe", "a second time it says something else", behind(&proxy{describe: func() func(*pluginv1.DescribeResponse) {
			n := 0
			return func(r *pluginv1.DescribeResponse) { n++; r.Manifest.Doc = strings.Repeat("x", n) }
		}()})},
		{"a manifest of twice the same", "handshake", "its manifest is refused", behind(&proxy{describe: func(r *pluginv1.DescribeResponse) {
			r.Manifest.Operations = append(r.Manifest.Operations, r.Manifest.Operations[0])
		}})},
		{"another protocol", "handshake", "it speaks protocol 2", behind(&proxy{describe: func(r *pluginv1.DescribeResponse) { r.Protocol = 2 }})},

		{"a program that talks first", "handshake", `is not a handshake of a plugin: "starting the toy"`, Options{Source: program(t, "chatty")}},
		{"a program that says nothing", "handshake", "wrote no handshake", Options{Source: program(t, "silent")}},
		{"a program of a later version", "handshake", "use an mcp-pif that speaks it, or a build of the plugin for 1", Options{Source: program(t, "later")}},
		{"a program with a mistaken plugin", "handshake", "wrote no handshake", Options{Source: program(t, "bad")}},
		{"a program that isn't there", "handshake", "can't be started", Options{Source: host.Source{Path: "/nowhere/at/all"}}},
		{"a program that is another each time", "describe", "in another process it says something else", Options{Source: program(t, "shifty")}},
		{"a program that falls", "hostile", "a NUL as name ended the process", Options{Source: program(t, "fragile")}},
		{"a program that starts once", "crash", "doesn't start again", Options{Source: program(t, "once")}},
		{"a program that talks on", "stdout", "hum", Options{Source: program(t, "noisy")}},
		{"a program that tells a secret", "secrets", "it wrote a secret to standard output", Options{Source: program(t, "teller")}},
		{"a program that writes at home", "writes", "home/.toy was made", Options{Source: program(t, "scribbler")}},
		{"a program that writes beside its folder", "writes", "it wrote neighbour", Options{Source: program(t, "neighbour")}},
	} {
		t.Run(c.defect, func(t *testing.T) {
			t.Parallel()
			c.o.only = []string{c.check}
			if c.check == "stdout" || c.check == "writes" {
				c.o.only = append(c.o.only, "results", "concurrency")
			}
			r := run(t, c.o)
			if got, made := r.Check(c.check); !made || got.Status != Failed || !strings.Contains(strings.Join(got.Evidence, "\n"), c.says) {
				t.Fatalf("want %s to fail with %q\n%s", c.check, c.says, r)
			}
			if r.Passed() || !strings.Contains(r.String(), "FAILED   "+c.check) {
				t.Errorf("the report doesn't tell:\n%s", r)
			}
			var back Report
			if b, err := json.Marshal(r); err != nil || json.Unmarshal(b, &back) != nil || back.String() != r.String() {
				t.Error("the report as JSON isn't the report")
			}
		})
	}
}

func mustEncode(v value.Value) []byte {
	b, err := encodeSmall(v)
	if err != nil {
		panic(err)
	}
	return b
}

// What a hostile plugin writes can't act on the terminal of who reads the report.
func TestReportIsPlain(t *testing.T) {
	r := run(t, Options{only: []string{"results"}, server: (&proxy{answer: func(r *pluginv1.InvokeResponse) {
		r.Outcome = &pluginv1.InvokeResponse_Failure{Failure: &pluginv1.Failure{Code: "\x1b[2J\u202e", Message: strings.Repeat("x", 1<<20)}}
	}}).serve})
	if text := r.String(); strings.ContainsAny(text, "\x1b\u202e") || len(text) > 10_000 || r.Passed() {
		t.Errorf("%d bytes: %.500q", len(text), text)
	}
}

func TestFixturesAreRead(t *testing.T) {
	f, err := ParseFixtures([]byte(`{"scope":"rome/**","inside":["rome/a"],"outside":["oslo"],"options":{"o":"v"},"files":{"a":"b"},
		"calls":[{"operation":"toy.say","arguments":{"n":12345678901234567890,"d":1.50,"l":[true,null]},"slow":true}]}`))
	must.NoError(t, err)
	if f.Scope != "rome/**" || f.Inside[0] != "rome/a" || f.Outside[0] != "oslo" || f.Options["o"] != "v" || f.Files["a"] != "b" {
		t.Errorf("%+v", f)
	}
	args := f.Calls[0].record()
	if !f.Calls[0].Slow || len(args.Fields) != 3 || args.Fields[2].Value.(value.Int).Big().String() != "12345678901234567890" || args.Fields[0].Value.Type() != "dec" {
		t.Errorf("%+v", args)
	}
	for _, bad := range []string{``, `{}{}`, `{}}`, `{"scopes":"a"}`, `{"calls":[{"arguments":{"n":1e9}}]}`, `[]`} {
		if _, err := ParseFixtures([]byte(bad)); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func TestShapes(t *testing.T) {
	str, num := value.Str("a"), value.NewInt(1)
	list := func(v ...value.Value) value.Value { return value.FromSlice(v) }
	for _, c := range []struct {
		words string
		v     value.Value
		ok    bool
	}{
		{"string", str, true}, {"string", num, false}, {"int", num, true}, {"bool", num, false}, {"value", num, true}, {"any", str, true},
		{"string, or null", value.Unit{}, true}, {"string", value.Unit{}, false}, {"number", num, true},
		{"list of strings", list(str, str), true}, {"list of strings", list(str, num), false}, {"list of strings", list(), true},
		{"record: a, b?", Arguments("a", 1), true}, {"record: a, b?", Arguments("b", 1), false}, {"record: a", Arguments("a", 1, "c", 2), false},
		{"record: a, b (where, or when, it is)", Arguments("a", 1), true}, {"record", Arguments("x", 1), true}, {"record", str, false},
		{"list of records: a", list(Arguments("a", 1)), true}, {"list of records: a", list(Arguments("z", 1)), false},
		{"whatever there is", str, true}, {"record: the first, then others", Arguments("q", 1), true},
	} {
		if why := shapeOf(c.words).judge(c.v); (why == "") != c.ok {
			t.Errorf("%q and %v: %q", c.words, c.v, why)
		}
	}
}
