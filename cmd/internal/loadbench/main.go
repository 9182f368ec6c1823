// Loadbench attacks a server as whoever wants to keep others out of it, or to have it take more
// than it may, and prints what that came to: the most memory of the server and
// its children, how long an innocent principal waited for 1 + 1 meanwhile, the largest
// store, and how long after its time a run ended.
//
// It builds the server, or takes others to compare with, starts one anew for each attack
// in a folder of its own, and speaks to it on loopback addresses only. Every attack ends
// by itself after some seconds, and a server that takes over 2 GiB is killed.
//
//	go run ./cmd/internal/loadbench
//	go run ./cmd/internal/loadbench --before OLD --only streams,pool
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	if os.Getenv(pluginEnv) != "" {
		litter()
	}
	before := flag.String("before", "", "attack this `BINARY`, too, in a column of its own")
	server := flag.String("server", "", "attack this `BINARY`; without it the server of this repository is built")
	only := flag.String("only", "", "the `NAMES` of attacks, with commas; without it all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	if err := measure(ctx, *before, *server, *only); err != nil {
		fmt.Fprintln(os.Stderr, "loadbench:", err)
		os.Exit(1)
	}
}

// The aims.
const (
	mostMemory = 256 << 20
	mostWait   = time.Second
	mostLate   = 200 * time.Millisecond
	mostStore  = 125 // percent of the limit
)

func measure(ctx context.Context, before, server, only string) error {
	dir, err := os.MkdirTemp("", "loadbench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if server == "" {
		server = filepath.Join(dir, "mcp-pif")
		build := exec.CommandContext(ctx, "go", "build", "-o", server, "github.com/mcp-pif/mcp-pif/cmd/mcp-pif")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building the server: %w\n%s", err, out)
		}
	}
	fmt.Println("| attack | memory | 1 + 1 of another | after its time | besides |\n|---|---|---|---|---|")
	for _, a := range attacks {
		if only != "" && !slices.Contains(strings.Split(only, ","), a.name) {
			continue
		}
		columns := [4][]string{}
		for _, binary := range []string{before, server} {
			if binary == "" {
				continue
			}
			f, err := a.on(ctx, binary, dir)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				f.besides = append(f.besides, err.Error())
			}
			for i, text := range f.columns() {
				columns[i] = append(columns[i], text)
			}
		}
		fmt.Printf("| %s", a.doc)
		for _, c := range columns {
			fmt.Printf(" | %s", strings.TrimSuffix(strings.TrimPrefix(strings.Join(c, " → "), " → "), " → "))
		}
		fmt.Println(" |")
	}
	return nil
}

// A figures is what an attack came to.
type figures struct {
	memory  int64
	killed  bool          // for its memory
	wait    time.Duration // −1: nobody else was there
	failed  int           // of the calls of another
	late    time.Duration // −1: nothing had a time
	cut     bool          // it didn't end before the attack did
	besides []string
}

// columns is the cells of the table; what misses its aim is bold.
func (f *figures) columns() [4]string {
	mark := func(text string, missed bool) string {
		if missed {
			return "**" + text + "**"
		}
		return text
	}
	memory := fmt.Sprintf("%d MiB", f.memory>>20)
	if f.killed {
		memory = "over " + memory
	}
	cells := [4]string{mark(memory, f.memory > mostMemory || f.killed), "", "", strings.Join(f.besides, "; ")}
	if f.wait >= 0 {
		text := round(f.wait)
		if f.failed > 0 {
			text += fmt.Sprintf(", %d failed", f.failed)
		}
		cells[1] = mark(text, f.wait > mostWait || f.failed > 0)
	}
	if f.late >= 0 {
		text := round(f.late)
		if f.cut {
			text = "over " + text
		}
		cells[2] = mark(text, f.late > mostLate)
	}
	return cells
}

func round(d time.Duration) string {
	if d > time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}
