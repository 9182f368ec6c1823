package conform

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// secretName is what the checks call a secret where no fixture names one.
const secretName = "conform"

// aSecret names it.
var aSecret = record(value.Field{Key: "secret", Value: value.Str(secretName)})

// give puts secrets of one value into a request, to a plugin that has the feature.
func (t *trial) give(q *pluginv1.InvokeRequest, names []string, v, within string) {
	q.Secrets = nil
	if !slices.Contains(t.features, wire.FeatureSecrets) {
		return
	}
	for _, name := range names {
		q.Secrets = append(q.Secrets, &pluginv1.Secret{Name: name, Value: v, Within: within})
	}
}

// secretive is requests that name secrets: one for each place that the manifest
// marks, and those of the fixtures that do. What is within a record can't be
// guessed, so that the first may be refused.
func (t *trial) secretive() []request {
	var all []request
	for i := range t.manifest.Operations {
		o := &t.manifest.Operations[i]
		for _, p := range o.Params {
			if !p.Secrets {
				continue
			}
			place := value.Value(aSecret)
			switch p.Type {
			case "list":
				place = value.FromSlice([]value.Value{aSecret})
			case "record":
				place = record(value.Field{Key: "x", Value: aSecret})
			}
			all = append(all, request{operation: o, args: with(t.world.arguments(o, 0, false), p.Name, place)})
		}
	}
	for _, c := range t.o.Fixtures.Calls {
		o, known := t.manifest.Operation(c.Operation)
		args, _ := c.Arguments.(*value.Record)
		if known && args != nil && !c.Slow && len(caps.SecretsIn(o, args)) > 0 {
			all = append(all, request{operation: o, args: args, fixture: true})
		}
	}
	return all
}

// checkSecrets gives secrets, and looks for them where they have no place.
func checkSecrets(ctx context.Context, t *trial) {
	has, requests := slices.Contains(t.features, wire.FeatureSecrets), t.secretive()
	switch {
	case len(requests) == 0:
		t.skip("no argument takes secrets")
	case !has:
		t.stop("its manifest has arguments that take secrets, and it doesn't have the feature %s: it would never be given one", wire.FeatureSecrets)
	}
	h := t.handle(ctx)
	canary, taken := token(), 0
	t.canary = canary
	if t.world.web != nil {
		t.world.web.mu.Lock()
		t.world.web.canary = canary
		t.world.web.mu.Unlock()
	}
	give := func(names ...string) func(*pluginv1.InvokeRequest) {
		return func(q *pluginv1.InvokeRequest) { t.give(q, names, canary, t.world.scope) }
	}
	for _, r := range requests {
		names := caps.SecretsIn(r.operation, r.args)
		a := t.call(ctx, h, r.operation.Name, r.args, give(names...))
		t.tells(r.operation.Name+" with a secret", a, canary)
		if a.err != nil {
			t.fail("%s with a secret answered with %s", r.operation.Name, a)
		}
		if a.value == nil {
			if r.fixture {
				t.fail("%s, a call of the fixtures, with a secret answered with %s", r.operation.Name, a)
			}
			continue
		}
		taken++
		if a := t.call(ctx, h, r.operation.Name, r.args, func(q *pluginv1.InvokeRequest) { q.Secrets = nil }); !a.refused() {
			t.fail("%s names a secret that it wasn't given, and answered with %s", r.operation.Name, a)
		}
		plain := t.world.arguments(r.operation, 0, false)
		t.tells(r.operation.Name+" with a secret beside those that its arguments name", t.call(ctx, h, r.operation.Name, plain, give(secretName, "another")), canary)
		t.redirected(ctx, h, r, canary)
	}
	if t.peer.probe != nil {
		for _, name := range holding(t.peer.probe.Work(), canary) {
			t.fail("it wrote a secret to its file %s", name)
		}
	}
	if taken == 0 {
		t.skip("no call with a secret succeeded: name one in a call of the fixtures")
	}
	t.note("%d places", taken)
}

// tells fails where an answer has the secret. The host would take it out; a plugin
// that gives it back may give back what was made of it, too.
func (t *trial) tells(what string, a answer, canary string) {
	failure := a.failure.GetMessage() + a.failure.GetHint()
	if a.value != nil && leaks(a.value, canary) || strings.Contains(failure, canary) || a.err != nil && strings.Contains(a.err.Error(), canary) {
		t.fail("%s gives it back", what)
	}
}

// redirected makes a request of URLs with a secret that is bound to one path, and
// sees that what the path redirects to doesn't get it.
func (t *trial) redirected(ctx context.Context, h uint64, r request, canary string) {
	i := slices.IndexFunc(r.operation.Params, func(p caps.Param) bool { return p.Designates })
	if t.world.web == nil || i < 0 {
		return
	}
	at := t.world.web.granted.URL
	args := with(r.args, r.operation.Params[i].Name, value.Str(at+"/in/on"))
	a := t.call(ctx, h, r.operation.Name, args, func(q *pluginv1.InvokeRequest) {
		t.give(q, caps.SecretsIn(r.operation, args), canary, at+"/in/on")
	})
	t.tells(r.operation.Name+", redirected,", a, canary)
	for _, path := range t.world.web.told() {
		if strings.HasPrefix(path, "/in/landed") || !strings.HasPrefix(path, "/in/") {
			t.fail("%s followed a redirect to %s, and took along a secret that isn't for it", r.operation.Name, path)
		}
	}
}

// holding is the files below a folder that have a text in them.
func holding(dir, text string) (found []string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), text) {
				found = append(found, d.Name())
			}
		}
		return nil
	})
	return found
}
