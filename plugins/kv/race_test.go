package kv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// apart opens a capability on a store of its own, as another process has.
func apart(t testing.TB, dir, pattern string) holder {
	t.Helper()
	s, err := openStore(filepath.Join(dir, fileName))
	must.NoError(t, err)
	p := Plugin()
	p.Open = func(context.Context, sdk.Capability) (any, error) {
		return &scope{store: s, release: s.close, pattern: pattern, value: maxValueBytes, size: defaultSize, count: defaultCount}, nil
	}
	h, err := sdk.Direct(t.Context(), p, sdk.Capability{})
	must.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	return holder{t, h}
}

// busy makes a request again as long as others keep the store from it: on a slow disk
// that may be longer than a request waits. It has changed nothing then.
func (h holder) busy(operation string, args ...any) (value.Value, error) {
	for {
		v, err := h.try(operation, args...)
		if f, ok := errors.AsType[sdk.Failure](err); !ok || f.Code != "conflict" || !f.Retryable {
			return v, err
		}
	}
}

// TestNoUpdateIsLost: 16 writers on four stores count together, by versions and by
// values.
func TestNoUpdateIsLost(t *testing.T) {
	const writers, each = 16, 10
	dir := t.TempDir()
	stores := []holder{apart(t, dir, "n/**"), apart(t, dir, "n/**"), apart(t, dir, "n/**"), apart(t, dir, "n/**")}
	var all sync.WaitGroup
	for w := range writers {
		h := stores[w%len(stores)]
		all.Go(func() {
			for done := 0; done < each; {
				e, err := h.busy("entry", "key", "n/count")
				if err != nil {
					t.Error(err)
					return
				}
				n, args := int64(0), []any{"version", member(e, "version")}
				if v := member(e, "value"); v != nil {
					n = number(t, v)
					if w%2 == 0 {
						args = []any{"expect", v}
					}
				}
				r, err := h.busy("cas", append([]any{"key", "n/count", "value", int(n) + 1}, args...)...)
				if err != nil {
					t.Error(err)
					return
				}
				if member(r, "swapped") == value.Bool(true) {
					done++
				}
			}
		})
	}
	all.Wait()
	if got := number(t, stores[0].does("get", "key", "n/count")); got != writers*each {
		t.Errorf("%d writers counted to %d, not %d", writers, got, writers*each)
	}
}

// TestOnlyOneMakesIt: of many that make a key at once one does.
func TestOnlyOneMakesIt(t *testing.T) {
	dir := t.TempDir()
	stores := []holder{apart(t, dir, "n/**"), apart(t, dir, "n/**")}
	made := make(chan int, 16)
	var all sync.WaitGroup
	for w := range 16 {
		all.Go(func() {
			if _, err := stores[w%2].busy("put", "key", "n/lock", "value", w, "create", "only"); err == nil {
				made <- w
			}
		})
	}
	all.Wait()
	close(made)
	winner, ok := <-made
	if _, second := <-made; !ok || second {
		t.Fatal("not exactly one made it")
	}
	if got := number(t, stores[0].does("get", "key", "n/lock")); got != int64(winner) {
		t.Errorf("%d made it, and it has %d", winner, got)
	}
}

// TestLocked: a request that waits for another process ends when it is told to, and
// has then changed nothing.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	h, other := apart(t, dir, "n/**"), sharedStore(t, dir)
	tx, err := other.writer.Begin() // holds the lock
	must.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = h.Invoke(ctx, "kv.put", plugintest.Arguments("key", "n/x", "value", 1))
	if f, ok := errors.AsType[sdk.Failure](err); !ok || f.Code != "timeout" && f.Code != "conflict" {
		t.Errorf("%v", err)
	}
	must.NoError(t, tx.Rollback())
	h.fails("not_found", "get", "key", "n/x")
	h.does("put", "key", "n/x", "value", 1)
}

// writerEnv makes the test binary a process that puts: the folder.
const writerEnv = "PIF_KV_WRITER"

// writerKeys is how many keys a writer puts to, one after the other.
const writerKeys = 20

// putUntilKilled puts numbers that grow, and writes each that was acknowledged.
func putUntilKilled(dir string) error {
	h, err := sdk.Direct(context.Background(), Plugin(), sdk.Capability{Within: "n/**", State: dir})
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		v := value.FromSlice([]value.Value{value.NewInt(int64(n)), value.Str(strings.Repeat("x", n*7919%20_000))})
		if _, err := h.Invoke(context.Background(), "kv.put", plugintest.Arguments("key", fmt.Sprintf("n/%d", n%writerKeys), "value", v)); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// TestKilled: what was acknowledged is there after kill -9, and nothing in part.
func TestKilled(t *testing.T) {
	for round := range 4 {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerEnv+"="+dir)
		out, err := cmd.StdoutPipe()
		must.NoError(t, err)
		must.NoError(t, cmd.Start())
		enough, last := 25+13*round, -1
		late := time.AfterFunc(4*time.Minute, func() { cmd.Process.Kill() })
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
				t.Fatal(lines.Text())
			}
			if last == enough {
				cmd.Process.Kill() // it goes on putting until that comes
			}
		}
		late.Stop()
		_ = cmd.Wait() // killed
		if last < enough {
			t.Fatalf("the writer stopped at %d", last)
		}
		h := hold(t, dir, "n/**")
		checkCounts(t, sharedStore(t, dir))
		for n := last; n > last-writerKeys; n-- {
			items, _ := value.Slice(h.does("get", "key", fmt.Sprintf("n/%d", n%writerKeys)))
			got := number(t, items[0])
			if got < int64(n) || (got-int64(n))%writerKeys != 0 || len(items[1].(value.Str)) != int(got)*7919%20_000 {
				t.Errorf("%d was acknowledged, and %d is there with %d bytes", n, got, len(items[1].(value.Str)))
			}
		}
	}
}
