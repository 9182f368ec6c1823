package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// pluginEnv is what a host sets for its plugins: this program is one, too.
const pluginEnv = "MCP_PIF_PLUGIN"

// litterCount is how many files the plugin makes where it can.
const litterCount = 400_000

type littering struct {
	Scope string `pif:"scope,main,designates" doc:"all"`
}

type littered struct{ Made int }

// litter is a plugin without privileges that makes empty files in its own folders.
func litter() {
	sdk.Serve(sdk.Plugin{
		Kind: "litter", Version: "1.0.0", Doc: "makes empty files", Scope: sdk.Segments,
		Operations: []sdk.Operation{sdk.Op("make", "makes empty files", sdk.Flags{},
			func(ctx context.Context, _ any, _ littering) (l littered, _ error) {
				for _, dir := range []string{".", os.TempDir(), os.Getenv("PLUGIN_UNIX_SOCKET_DIR")} {
					for i := 0; i < litterCount && ctx.Err() == nil; i++ {
						f, err := os.Create(filepath.Join(dir, "litter"+strconv.Itoa(i)))
						if err != nil {
							break
						}
						f.Close()
						l.Made++
					}
				}
				return l, nil
			})},
	})
}

// addLitter puts the plugin in a lock.
func addLitter(ctx context.Context, binary, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"add", self}, {"accept", "litter"}} {
		add := exec.CommandContext(ctx, binary, append([]string{"plugin"}, append(args, "--plugin-lock", filepath.Join(dir, "lock.json"))...)...)
		if out, err := add.CombinedOutput(); err != nil {
			return fmt.Errorf("plugin %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

// litters has the plugin make files, and notes how many it made and how long the server's end takes then.
func litters(ctx context.Context, s *server) error {
	if _, err := s.call(ctx, "p0", "evolve", object{"name": "litter", "code": `n => !litter.make("all")`, "capabilities": []string{"litter:all"}}); err != nil {
		return err
	}
	text, err := s.call(ctx, "p0", "run", object{"tool": "litter"})
	if err != nil {
		return err
	}
	files := count(filepath.Join(s.dir, "tmp"))
	began := time.Now()
	s.stop()
	took, left := time.Since(began), count(filepath.Join(s.dir, "tmp"))
	said := fmt.Sprintf("files: %d, left: %d; the end took %s", files, left, round(took))
	if files > 100 || left > 0 || took > 5*time.Second {
		said = "**" + said + "**"
	}
	s.say("%s", said)
	if os.Getenv("LOADBENCH_DEBUG") != "" {
		fmt.Fprintln(os.Stderr, text)
	}
	return nil
}

// count is how many files and folders are in a folder.
func count(dir string) (n int) {
	_ = filepath.WalkDir(dir, func(string, os.DirEntry, error) error { n++; return nil })
	return n - 1
}
