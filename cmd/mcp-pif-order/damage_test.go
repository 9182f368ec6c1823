//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/journal/order/ordertest"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// A kept is what an order has.
type kept struct {
	identity string
	places   []ordertest.Place
}

// keeps proposes some, and gives what there is then.
func keeps(t *testing.T, ctx context.Context, o order.Order) (k kept) {
	t.Helper()
	last := []byte("last")
	for n := range 30 {
		_, err := ordertest.Propose(ctx, o, fmt.Appendf(nil, "%d %s", n, strings.Repeat("x", n*20)))
		must.NoError(t, err)
	}
	_, err := ordertest.Propose(ctx, o, last)
	must.NoError(t, err)
	k.places, err = ordertest.Until(ctx, o, 1, last)
	must.NoError(t, err)
	k.identity, err = o.Identity(ctx)
	must.NoError(t, err)
	return k
}

// stands makes sure that an order whose engine was harmed has all that it kept, or is said to have lost something, or to be
// another one, or acknowledges nothing until ctx ends. It gives which.
func (k kept) stands(t *testing.T, ctx context.Context, o order.Order) string {
	t.Helper()
	again := []byte("again")
	_, err := ordertest.Propose(ctx, o, again)
	if errors.Is(err, order.ErrEnds) || errors.Is(err, order.ErrOther) {
		return err.Error()
	} else if ctx.Err() != nil {
		return "it stands still"
	}
	must.NoError(t, err)
	identity, err := o.Identity(ctx)
	must.NoError(t, err)
	if identity != k.identity {
		return "it is another one"
	}
	places, err := ordertest.Until(ctx, o, 1, again)
	if errors.Is(err, order.ErrEnds) {
		return err.Error()
	}
	must.NoError(t, err)
	if len(places) <= len(k.places) {
		t.Errorf("of %d places it has %d", len(k.places), len(places)-1)
	} else if diff := ordertest.Equal(k.places, places[:len(k.places)]); diff != "" {
		t.Error(diff)
	}
	return "it has all"
}

// TestFlips: whichever file of the engine has a byte that is another one, the order has all that it acknowledged, or says that
// it hasn't.
func TestFlips(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
	defer cancel()
	p, dir := alone(t)
	p.start()
	o := open(t, []*process{p}, 0)
	before := keeps(t, ctx, o)
	must.NoError(t, o.Close())
	p.kill()
	whole := dir + ".whole"
	must.NoError(t, os.Rename(dir, whole))
	files := 0
	must.NoError(t, filepath.WalkDir(filepath.Join(whole, "jetstream"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		must.NoError(t, errors.Join(os.RemoveAll(dir), exec.Command("cp", "-a", whole, dir).Run()))
		name, err := filepath.Rel(whole, path)
		must.NoError(t, err)
		data, err := os.ReadFile(path)
		must.NoError(t, err)
		if len(data) == 0 {
			return nil
		}
		files++
		data[len(data)/2] ^= 1
		must.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		p.start()
		o := open(t, []*process{p}, 0)
		t.Logf("%s, of %d bytes: %s", name, len(data), before.stands(t, ctx, o))
		must.NoError(t, o.Close())
		p.kill()
		return nil
	}))
	if files < 3 {
		t.Errorf("%d files", files)
	}
}

// TestFlipsOfThree: where one of three processes has files of the engine's agreement, its logs or snapshots among them, or of
// the stream, in which a byte is another one, the order has all at each process, or says that it hasn't; a process that doesn't
// start says so, and takes all from the others when its folder is gone.
func TestFlipsOfThree(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
	defer cancel()
	all := three(t)
	o := open(t, all, 0)
	for n := range 20 {
		_, err := ordertest.Propose(ctx, o, fmt.Appendf(nil, "before %d", n))
		must.NoError(t, err)
	}
	for _, p := range all { // who is ended makes snapshots
		p.signal(syscall.SIGTERM)
		_ = p.cmd.Wait()
	}
	for _, p := range all {
		p.start()
	}
	before := keeps(t, ctx, o)
	must.NoError(t, o.Close())
	var whole []string
	for i, p := range all {
		p.kill()
		whole = append(whole, filepath.Join(t.TempDir(), fmt.Sprint(i)))
		must.NoError(t, exec.Command("cp", "-a", p.args[3], whole[i]).Run())
	}
	for what, names := range map[string]string{"logs": `/_js_/.*\.blk$`, "snapshots": `/_js_/.*/snap\.`, "rest": `/_js_/.*\.(idx|inf|sum|db)$`, "stream": `/streams/`} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
			defer cancel()
			var files []string
			must.NoError(t, filepath.WalkDir(whole[0], func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() && regexp.MustCompile(names).MatchString(path) {
					files = append(files, path[len(whole[0]):])
				}
				return err
			}))
			if len(files) < 2 {
				t.Fatalf("only %q", files)
			}
			all, cases := three(t), [][]string{files}
			if must.Full(0, 1) > 0 {
				for _, file := range files {
					cases = append(cases, []string{file})
				}
			}
			for _, files := range cases {
				for i, p := range all {
					p.kill()
					must.NoError(t, errors.Join(os.RemoveAll(p.args[3]), exec.Command("cp", "-a", whole[i], p.args[3]).Run()))
				}
				for _, file := range files {
					path := filepath.Join(all[0].args[3], file)
					data, err := os.ReadFile(path)
					must.NoError(t, err)
					data[len(data)/2] ^= 1
					must.NoError(t, os.WriteFile(path, data, 0o600))
				}
				for _, p := range all {
					p.start()
				}
				serves := func(p *process) bool { return strings.Contains(p.log.String(), "serving the order") }
				repaired := ""
				wait.Until(t, "it serves, or says why it doesn't", func() bool {
					if strings.Contains(all[0].log.String(), "move that folder away") && serves(all[1]) && serves(all[2]) {
						all[0].kill()
						must.NoError(t, os.RemoveAll(all[0].args[3]))
						all[0].start()
						repaired = ", once it was without its folder"
					}
					return serves(all[0])
				})
				for i := range all {
					o := open(t, all[i:i+1], 0)
					got := before.stands(t, ctx, o)
					if t.Logf("%q: at process %d %s%s", files, i, got, repaired); ctx.Err() != nil {
						t.Fatal("one of three is enough that it stands still")
					}
					must.NoError(t, o.Close())
				}
			}
		})
	}
}

// TestWiped: of three processes one whose folder is gone takes all from the others; where two have lost theirs the order
// has all, says that it hasn't, or stands still.
func TestWiped(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
			defer cancel()
			all := three(t)
			o := open(t, all, 0)
			defer o.Close()
			before := keeps(t, ctx, o)
			for _, p := range all[:n+1] {
				p.kill()
			}
			for _, p := range all[:n+1] {
				must.NoError(t, os.RemoveAll(p.args[3]))
				p.start()
			}
			go func() {
				for ctx.Err() == nil && !strings.Contains(all[2].log.String(), "has NO quorum, stalled") {
					time.Sleep(100 * time.Millisecond)
				}
				cancel()
			}()
			got := before.stands(t, ctx, o)
			if t.Log(got); n == 0 && got != "it has all" {
				t.Error("one of three is enough to lose something")
			}
		})
	}
}
