package conform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// checkHandshake starts the plugin for the first time, and learns its manifest.
func checkHandshake(ctx context.Context, t *trial) {
	p, err := t.start(ctx, nil)
	if errors.Is(err, host.ErrPlain) {
		t.o.Source.Plain = true
		p, err = t.start(ctx, nil)
	}
	if err != nil {
		t.stop("%v", err)
	}
	defer t.retire(p)
	if p.probe == nil {
		t.skipped = "it runs in this process"
	} else {
		certificates, sandbox := "with certificates", "no sandbox"
		if t.o.Source.Plain {
			certificates = "without certificates"
		}
		if t.o.Sandbox != "" {
			sandbox = "sandbox " + p.probe.Layers().String()
		}
		t.note("%s, %s", certificates, sandbox)
	}
	said, err := describe(ctx, t, p)
	if err != nil {
		t.stop("it doesn't describe itself: %v", err)
	}
	if said.GetProtocol() != wire.Protocol {
		t.stop("it speaks protocol %d, and this is %d", said.GetProtocol(), wire.Protocol)
	}
	m, err := wire.FromManifest(said.GetManifest())
	if err != nil {
		t.stop("its manifest is refused: %v", err)
	}
	t.manifest, t.features, t.o.Source.Manifest = m, said.GetFeatures(), m
}

func describe(ctx context.Context, t *trial, p *peer) (*pluginv1.DescribeResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, t.o.Patience)
	defer cancel()
	return p.Describe(ctx, &pluginv1.DescribeRequest{Protocol: wire.Protocol, Features: wire.Features})
}

// checkDescribe asks twice, and a second process, and as a later host would.
func checkDescribe(ctx context.Context, t *trial) {
	again, err := t.start(ctx, t.world)
	if err != nil {
		t.stop("it doesn't start a second time beside the first: %v", err)
	}
	defer t.retire(again)
	var first []byte
	for i, ask := range []struct {
		where   string
		peer    *peer
		request *pluginv1.DescribeRequest
	}{
		{"at first", t.peer, &pluginv1.DescribeRequest{Protocol: wire.Protocol, Features: wire.Features}},
		{"a second time", t.peer, &pluginv1.DescribeRequest{Protocol: wire.Protocol, Features: wire.Features}},
		{"in another process", again, &pluginv1.DescribeRequest{Protocol: wire.Protocol, Features: wire.Features}},
		{"to a host with a feature it doesn't know", t.peer, &pluginv1.DescribeRequest{Protocol: wire.Protocol, Features: append(slices.Clone(wire.Features), "telepathy")}},
	} {
		limited, cancel := context.WithTimeout(ctx, t.o.Patience)
		said, err := ask.peer.Describe(limited, ask.request)
		cancel()
		if err != nil {
			t.stop("%s it doesn't describe itself: %v", ask.where, err)
		}
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(said)
		if err != nil {
			t.stop("%s: %v", ask.where, err)
		}
		if i == 0 {
			first = b
		} else if !bytes.Equal(b, first) {
			t.fail("%s it says something else of itself", ask.where)
		}
	}
	t.note("%s %s", t.manifest.Kind, t.manifest.Version)
}

// checkOpen opens capabilities in the ways a host does.
func checkOpen(ctx context.Context, t *trial) {
	seen := map[uint64]bool{}
	for range 3 {
		h, err := t.open(ctx, t.world.request("", nil))
		if err != nil {
			hint := ""
			if t.o.Fixtures.Scope == "" && t.world.root == nil && t.world.web == nil {
				hint = "; if it takes only some scopes, name one in the fixtures"
			}
			t.stop("the capability %s can't be opened: %v%s", t.world.text(""), err, hint)
		}
		if seen[h] {
			t.fail("it gave the handle %d twice", h)
		}
		seen[h] = true
	}
	narrow := t.world.request("", nil)
	narrow.Capability.Verbs = []string{t.manifest.Verbs[0].Name}
	if _, err := t.open(ctx, narrow); err != nil {
		t.fail("a capability with the verb %s alone can't be opened: %v", t.manifest.Verbs[0].Name, err)
	}
	if t.manifest.Algebra == caps.Path {
		if _, err := t.open(ctx, t.world.request("sub", nil)); err != nil {
			t.fail("a part of the directory can't be opened: %v", err)
		}
	}
	t.note("%s", t.world.text(""))
}

// checkResults calls every operation, and holds what comes against the manifest.
func checkResults(ctx context.Context, t *trial) {
	h := t.handle(ctx)
	gave := map[string]bool{}
	for _, r := range t.requests(nil) {
		a := t.call(ctx, h, r.operation.Name, r.args)
		switch {
		case a.err != nil:
			t.fail("%s answered with %s", r.operation.Name, a)
			if status.Code(a.err) == codes.Unavailable {
				return
			}
		case a.failure != nil:
			if why := judgeFailure(a.failure); why != "" {
				t.fail("%s gave %s", r.operation.Name, why)
			}
			if r.fixture {
				t.fail("the fixtures' call of %s gave %s", r.operation.Name, a)
			}
		default:
			gave[r.operation.Name] = true
			if why := shapeOf(r.operation.Result).judge(a.value); why != "" {
				t.fail("%s gave %s (its result is %q)", r.operation.Name, why, r.operation.Result)
			}
			if typ := r.operation.Type; typ != nil {
				if why := typ.Misfit(a.value); why != "" {
					t.fail("%s gave %s (its type is %s)", r.operation.Name, why, typ)
				}
			}
		}
	}
	for _, c := range t.o.Fixtures.Calls {
		if _, known := t.manifest.Operation(c.Operation); !known {
			t.fail("the fixtures call %s, which isn't one of its operations", c.Operation)
		}
	}
	if len(gave) == 0 && len(t.failures) == 0 {
		t.skip("no operation gave a value for generated arguments: give calls in the fixtures")
	}
	t.note("%s", counted(len(gave), len(t.manifest.Operations), "gave a value"))
}

func counted(n, of int, what string) string {
	if of == 1 && n == 1 {
		return "the operation " + what
	}
	return fmt.Sprintf("%d of %d operations %s", n, of, what)
}
