package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal/order/ordertest"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// What strace prints of a sync: all of it, or its beginning, or its end.
var (
	syncLine    = regexp.MustCompile(`^(\d+) +([\d.]+) f(?:data)?sync\(\d+<(.*)>(?:\) += 0 <([\d.]+)>| <unfinished \.\.\.>)`)
	resumedLine = regexp.MustCompile(`^(\d+) +([\d.]+) <\.\.\. f(?:data)?sync resumed>\) += 0 `)
)

// syncs gives when files of the engine were on the disk.
func syncs(trace string) (all []float64) {
	begun := map[string]string{} // by the thread
	at := func(m []string, path string) {
		if !strings.Contains(path, "/jetstream/") {
			return
		}
		end, _ := strconv.ParseFloat(m[2], 64)
		if len(m) > 4 {
			took, _ := strconv.ParseFloat(m[4], 64)
			end += took
		}
		all = append(all, end)
	}
	for line := range strings.Lines(trace) {
		if m := syncLine.FindStringSubmatch(line); m != nil && m[4] != "" {
			at(m, m[3])
		} else if m != nil {
			begun[m[1]] = m[3]
		} else if m = resumedLine.FindStringSubmatch(line); m != nil {
			at(m, begun[m[1]])
		}
	}
	return all
}

// TestSyncs: between a proposal and its acknowledgement the disks of two of three processes have it, as strace sees it.
func TestSyncs(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("that files are synced is seen by strace, which isn't there")
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
	defer cancel()
	all := three(t)
	o := open(t, all, 0)
	defer o.Close()
	_, err = ordertest.Propose(ctx, o, []byte("first"))
	must.NoError(t, err)
	var logs []string
	var tracers []*exec.Cmd
	var ended []chan error
	for i, p := range all {
		p.complete()
		out := filepath.Join(t.TempDir(), fmt.Sprint(i))
		c := exec.Command(strace, "-f", "-y", "-ttt", "-T", "-e", "trace=fsync,fdatasync", "-o", out, "-p", strconv.Itoa(p.cmd.Process.Pid))
		var said wait.Log
		c.Stderr = &said
		must.NoError(t, wait.Start(c))
		end := make(chan error, 1)
		go func() { end <- c.Wait() }()
		t.Cleanup(func() { _ = c.Process.Kill() })
		wait.Until(t, "a process is traced", func() bool {
			select {
			case err := <-end:
				t.Skipf("strace may not look: %v: %s", err, said.String())
			default:
			}
			return strings.Contains(said.String(), "attached")
		})
		logs, tracers, ended = append(logs, out), append(tracers, c), append(ended, end)
	}
	type span struct{ from, to float64 }
	now := func() float64 { return float64(time.Now().UnixMicro()) / 1e6 }
	var proposals []span
	for n := range 100 {
		begun := now()
		_, err := ordertest.Propose(ctx, o, fmt.Append(nil, n))
		must.NoError(t, err)
		proposals = append(proposals, span{begun, now()})
	}
	var disks [][]float64
	for i, c := range tracers {
		must.NoError(t, c.Process.Signal(syscall.SIGINT))
		wait.For(t, ended[i], "the end of strace")
		text, err := os.ReadFile(logs[i])
		must.NoError(t, err)
		disks = append(disks, syncs(string(text)))
	}
	for n, p := range proposals {
		has := 0
		for _, times := range disks {
			if slices.ContainsFunc(times, func(at float64) bool { return p.from <= at && at <= p.to }) {
				has++
			}
		}
		if has < 2 {
			t.Errorf("proposal %d was acknowledged and on %d disks", n, has)
		}
	}
}
