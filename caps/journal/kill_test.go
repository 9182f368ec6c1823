package journal_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// helper in the environment makes the test binary another program: its value
// names one of helpers.
const helper = "PIF_JOURNAL_HELPER"

var helpers = map[string]func(args []string) error{"write": writeUntilKilled, "open": openAndSay, "read": readAndSay, "change": changeTogether}

func TestMain(m *testing.M) {
	name := os.Getenv(helper)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := helpers[name](os.Args[1:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func start(t testing.TB, name string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), helper+"="+name)
	stderr := new(bytes.Buffer)
	cmd.Stderr = stderr
	return cmd, stderr
}

// writeUntilKilled appends to the store args[0] as args[1] and writes a line for
// each event that is acknowledged. Where args[2] is "drop", it also drops old
// events that aren't of evolved tools.
func writeUntilKilled(args []string) error {
	s, err := journal.Open(args[0], journal.Options{Busy: time.Minute})
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		kind, stage := journal.EffectRequested, journal.Written
		switch {
		case n%10 == 3:
			kind, stage = journal.ToolEvolved, journal.Synced
		case n%3 == 0:
			kind, stage = journal.RunStarted, journal.Noted
		}
		pad := strings.Repeat("x", n*7919%5000)
		var seq uint64
		if kind == journal.ToolEvolved {
			seq, err = changeOnce(s, fmt.Appendf(nil, `{"tool":%q,"n":%d,"pad":%q}`, args[1], n, pad))
		} else {
			seq, err = s.Append(stage, kind, args[1], "", fmt.Appendf(nil, `{"n":%d,"pad":%q}`, n, pad))
		}
		if err != nil {
			return err
		}
		if stage != journal.Noted {
			fmt.Printf("%d %d %s\n", seq, n, kind) // one write, unbuffered
		}
		if args[2] == "drop" && n%10 == 9 {
			_, err := s.Retain(context.Background(), journal.RetainOptions{
				MaxBytes: 20_000, Keep: func(e *journal.Event) bool { return e.Kind == journal.ToolEvolved },
			})
			if err != nil {
				return err
			}
		}
	}
}

// changeOnce evolves a tool, however often others are faster.
func changeOnce(s *journal.Store, data []byte) (seq uint64, err error) {
	for {
		after, err := s.Changed()
		if err != nil {
			return 0, err
		}
		if seq, err = s.Change(after, journal.ToolEvolved, data); !errors.Is(err, journal.ErrBehind) {
			return seq, err
		}
	}
}

// A victim is a process that writes until it is killed.
type victim struct {
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	acks   []string // whole lines
	// reached is closed when it has acknowledged so many events that it may be
	// killed, or has ended.
	reached, ended chan struct{}
}

func startVictim(t *testing.T, after int, args ...string) *victim {
	t.Helper()
	v := &victim{reached: make(chan struct{}), ended: make(chan struct{})}
	v.cmd, v.stderr = start(t, "write", args...)
	out, err := v.cmd.StdoutPipe()
	if err == nil {
		err = wait.Start(v.cmd)
	}
	must.NoError(t, err)
	go func() {
		defer close(v.ended)
		reached := sync.OnceFunc(func() { close(v.reached) })
		defer reached()
		in := bufio.NewReader(out)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return // what has no end was not acknowledged
			}
			if v.acks = append(v.acks, strings.TrimSuffix(line, "\n")); len(v.acks) > after {
				reached()
			}
		}
	}()
	return v
}

// full is a in `go test`, b where the full counts are asked for; less than a with
// the race detector.
func full(a, b int) int {
	if must.Racing() {
		return a / 4
	}
	return must.Full(a, b)
}

// Three processes write one file, one of them also drops old events; all are
// killed at a random point. Whatever one of them was told is there.
func TestKilledProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	const together = 3
	path := ""
	for round := range full(5, 120) {
		if round%6 == 0 {
			path = filepath.Join(t.TempDir(), "j.db") // so that making it is cut short, too
		}
		var victims []*victim
		for i := range together {
			args, after := []string{path, fmt.Sprintf("%d-%d", round, i), "keep"}, rand.IntN(100)-20
			if i == 0 && round%2 == 1 {
				args[2], after = "drop", 20+rand.IntN(80)
			}
			victims = append(victims, startVictim(t, after, args...))
		}
		for _, v := range victims {
			wait.For(t, v.reached, "it writes")
			time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond) // the point
			if err := v.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
		}
		acks := 0
		for i, v := range victims {
			wait.For(t, v.ended, "it ended")
			if err := v.cmd.Wait(); err == nil || v.cmd.ProcessState.Exited() {
				t.Fatalf("it ended by itself: %v, %s, %s", err, v.acks[max(0, len(v.acks)-3):], v.stderr)
			}
			acks += len(v.acks)
			checkAcks(t, path, fmt.Sprintf("%d-%d", round, i), v.acks)
		}
		s := openStore(t, path, journal.Options{})
		if r := verified(t, s); r.Cut == nil && round%2 == 1 {
			t.Error("nothing was dropped")
		}
		must.NoError(t, s.Close())
		if t.Failed() {
			t.Fatalf("in round %d, after %d acknowledged events", round, acks)
		}
	}
}

// checkAcks checks that what a process was told is there, unless it was dropped.
func checkAcks(t *testing.T, path, run string, acks []string) {
	t.Helper()
	s := openStore(t, path, journal.Options{})
	defer s.Close()
	dropped := uint64(0)
	for _, e := range all(t, s, journal.Query{Kind: journal.Checkpoint}) {
		dropped = e.Seq
		if _, err := journal.ReadCut(&e); err != nil {
			t.Error(err)
		}
	}
	there := map[string]bool{}
	for _, q := range []journal.Query{{Run: run}, {Tool: run}} {
		next := 0
		for _, e := range all(t, s, q) {
			var data struct{ N int }
			if err := json.Unmarshal(e.Data, &data); err != nil || data.N < next {
				t.Errorf("event %d: %.40s follows %d, %v", e.Seq, e.Data, next, err)
			}
			next = data.N
			there[fmt.Sprintf("%d %d %s", e.Seq, next, e.Kind)] = true
		}
	}
	for _, ack := range acks {
		var seq uint64
		must.Succeed(t)(fmt.Sscan(ack, &seq))
		if !there[ack] && (seq > dropped || strings.HasSuffix(ack, string(journal.ToolEvolved))) {
			t.Errorf("run %s: %q was acknowledged and is not there", run, ack)
		}
	}
}

// openAndSay opens the store args[0], appends an event and says how that went.
func openAndSay(args []string) error {
	s, err := journal.Open(args[0], journal.Options{})
	if err != nil {
		return err
	}
	_, err = s.Append(journal.Written, journal.RunEnded, "", "", []byte("{}"))
	return errors.Join(err, s.Close())
}

// readAndSay opens the store args[0] to read it and says how many events it has.
func readAndSay(args []string) error {
	s, err := journal.Open(args[0], journal.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	events, _, err := s.Read(journal.Query{})
	if err != nil {
		return err
	}
	fmt.Println(len(events), "events")
	_, err = s.Verify(context.Background())
	return errors.Join(err, s.Close())
}
