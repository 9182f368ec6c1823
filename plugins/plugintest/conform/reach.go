package conform

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// checkFlags calls what says that it only reads, and looks for what it changed.
func checkFlags(ctx context.Context, t *trial) {
	reads := func(o *caps.Operation) bool { v, _ := t.manifest.Verb(o.Verb); return v.ReadOnly }
	requests := t.requests(reads)
	switch {
	case len(requests) == 0:
		t.skip("no operation says that it only reads")
	case t.world.root == nil && t.world.web == nil:
		t.skip("what an operation changes can't be seen here, where scopes are of %s", t.manifest.Algebra)
	}
	h := t.handle(ctx)
	for _, r := range requests {
		before := t.world.snapshot(t.world.granted)
		a := t.call(ctx, h, r.operation.Name, r.args)
		if t.world.web != nil {
			for _, heard := range t.world.web.drain() {
				if m, _, _ := strings.Cut(heard, " "); m != "GET" && m != "HEAD" && m != "OPTIONS" {
					t.fail("%s says that it only reads, and made the request %s", r.operation.Name, heard)
				}
			}
			continue
		}
		for _, d := range differences(before, t.world.snapshot(t.world.granted)) {
			t.fail("%s says that it only reads, and with %s %s", r.operation.Name, a, d)
		}
	}
}

// checkScope designates what is outside, and gives it to arguments that designate
// nothing.
func checkScope(ctx context.Context, t *trial) {
	h := t.handle(ctx)
	plugin, host, tried := 0, 0, 0
	for i := range t.manifest.Operations {
		o := &t.manifest.Operations[i]
		for j := range o.Params {
			p := &o.Params[j]
			if p.Type != "string" && p.Type != "any" || p.Name == o.VerbParam || len(p.Enum) > 0 {
				continue
			}
			for _, all := range []bool{false, true} {
				if all && p.Designates {
					continue
				}
				for _, outer := range t.world.outer {
					a := t.call(ctx, h, o.Name, with(t.world.arguments(o, 0, all), p.Name, value.Str(outer)))
					t.leaked(o, p, outer, a)
					if !p.Designates {
						continue
					}
					tried++
					hosts := t.world.hostRefuses(outer)
					switch {
					case a.value == nil:
						plugin++
					case t.world.root != nil || t.world.web != nil:
						t.fail("%s took %s=%s, which is outside its scope", o.Name, p.Name, outer)
					case !hosts:
						t.fail("%s took %s=%s, and the host would, too", o.Name, p.Name, outer)
					}
					if hosts {
						host++
					}
				}
			}
		}
	}
	t.redirects(ctx, h, []string{"/in/away", "/in/out"})
	if t.world.root != nil {
		t.links(ctx, h)
		t.narrowed(ctx)
	}
	if t.world.web != nil {
		for _, hit := range t.world.web.hits() {
			t.fail("%s", hit)
		}
	}
	for _, c := range t.world.changes() {
		t.fail("%s", c)
	}
	switch {
	case len(t.failures) > 0:
	case tried == 0:
		t.note("none of its arguments designates")
	default:
		t.note("of %d arguments outside the plugin refuses %d, the host %d", tried, plugin, host)
	}
}

// leaked fails where an answer has what only stands outside.
func (t *trial) leaked(o *caps.Operation, p *caps.Param, arg string, a answer) {
	if a.value == nil || !leaks(a.value, t.world.secret) {
		return
	}
	why := ""
	if !p.Designates {
		why = ", which isn't marked as designating"
	}
	t.fail("%s gave what stands outside its scope, by %s=%s%s", o.Name, p.Name, arg, why)
}

// hostRefuses reports whether a host lets no such argument through.
func (w *world) hostRefuses(arg string) bool {
	scope := w.scope
	if w.root != nil {
		scope = "."
	}
	return w.manifest.Algebra.Covers(scope, arg) != nil
}

// designating calls each operation with each argument that designates set to a
// text, and gives the answers.
func (t *trial) designating(ctx context.Context, h uint64, arg string, see func(o *caps.Operation, a answer)) {
	for i := range t.manifest.Operations {
		o := &t.manifest.Operations[i]
		for _, p := range o.Params {
			if !p.Designates {
				continue
			}
			for _, all := range []bool{false, true} {
				args := with(t.world.arguments(o, 1, all), p.Name, value.Str(arg))
				if all { // recursive, or whatever there is
					for _, q := range o.Params {
						if q.Type == "bool" {
							args = with(args, q.Name, value.Bool(true))
						}
					}
				}
				see(o, t.call(ctx, h, o.Name, args))
			}
		}
	}
}

// redirects asks the granted server for what leads elsewhere.
func (t *trial) redirects(ctx context.Context, h uint64, paths []string) {
	if t.world.web == nil {
		return
	}
	for _, path := range paths {
		t.designating(ctx, h, t.world.web.granted.URL+path, func(o *caps.Operation, a answer) {
			if a.value != nil && leaks(a.value, t.world.secret) {
				t.fail("%s followed a redirect out of its scope", o.Name)
			}
		})
	}
}

// links uses links that lead out.
func (t *trial) links(ctx context.Context, h uint64) {
	for _, link := range []string{"out.txt", "absolute.txt", "out/canary.txt", "out", "."} {
		t.designating(ctx, h, link, func(o *caps.Operation, a answer) {
			if a.value != nil && leaks(a.value, t.world.secret) {
				t.fail("%s followed the link %s out of its directory", o.Name, link)
			}
		})
	}
}

// narrowed opens a part of the directory, and looks for what is above.
func (t *trial) narrowed(ctx context.Context) {
	if err := put(filepath.Join(t.world.granted, "a.txt"), t.world.above); err != nil {
		t.stop("%v", err)
	}
	if err := put(filepath.Join(t.world.granted, "sub", "b.txt"), "below"); err != nil {
		t.stop("%v", err)
	}
	h, err := t.open(ctx, t.world.request("sub", nil))
	if err != nil {
		t.stop("a part of the directory can't be opened: %v", err)
	}
	for _, up := range []string{"a.txt", "../a.txt", "up.txt", "..", "../", "./../a.txt", "b.txt/../../a.txt"} {
		t.designating(ctx, h, up, func(o *caps.Operation, a answer) {
			if a.value != nil && leaks(a.value, t.world.above) {
				t.fail("%s with %s gave what stands above the part that was opened", o.Name, up)
			}
		})
	}
	if is := t.world.snapshot(t.world.granted)["granted/a.txt"]; !strings.Contains(is, t.world.above) {
		t.fail("what stands above the part that was opened was changed")
	}
}

// checkDenials opens a scope of which a part is denied.
func checkDenials(ctx context.Context, t *trial) {
	switch {
	case t.world.root != nil:
		t.deniedFiles(ctx)
	case t.world.web != nil:
		t.deniedURLs(ctx)
	default:
		t.skip("what is denied of %s is the host's to decide", t.manifest.Algebra)
	}
}

func (t *trial) deniedFiles(ctx context.Context) {
	h, err := t.open(ctx, t.world.request("", []string{deniedDir}))
	if err != nil {
		t.stop("a capability with a denial can't be opened: %v", err)
	}
	dir := filepath.Join(t.world.granted, filepath.FromSlash(deniedDir))
	before := t.world.snapshot(dir)
	fileName := filepath.Base(deniedFile)
	for _, arg := range []string{
		deniedFile, "to-denied.txt", "keep/../" + deniedFile, strings.ToUpper(deniedFile), deniedDir, "keep/private/new.txt", ".", "keep", "**", "keep/**",
	} {
		t.designating(ctx, h, arg, func(o *caps.Operation, a answer) {
			named := a.value != nil && arg != deniedFile && contains(a.value, func(s string) bool { return strings.HasSuffix(s, fileName) })
			if named || a.value != nil && leaks(a.value, t.world.denied) {
				t.fail("%s with %s gave what is denied", o.Name, arg)
			}
		})
		for _, d := range differences(before, t.world.snapshot(dir)) {
			t.fail("with %s, what is denied was reached: %s", arg, d)
			before = t.world.snapshot(dir)
		}
	}
	t.note("./%s denied of ./", deniedDir)
}

func (t *trial) deniedURLs(ctx context.Context) {
	at := t.world.web.granted.URL
	h, err := t.open(ctx, t.world.request("", []string{at + "/in/denied/**"}))
	if err != nil {
		t.stop("a capability with a denial can't be opened: %v", err)
	}
	t.world.web.drain()
	t.redirects(ctx, h, []string{"/in/to-denied"})
	for _, heard := range t.world.web.drain() {
		if strings.Contains(heard, "/in/denied") {
			t.fail("it followed a redirect to what is denied: %s", heard)
		}
	}
	t.note("%s denied of %s", "/in/denied/**", fmt.Sprint(t.world.scope))
}
