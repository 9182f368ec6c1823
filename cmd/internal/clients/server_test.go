package clients

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// binary is the server, built by itself.
var binary = sync.OnceValues(func() (string, error) {
	name := "mcp-pif"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return build(filepath.Join("..", "..", "mcp-pif"), name)
})

// built is where programs are that the tests build; it goes with them.
var built string

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "mcp-pif-clients-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(built)
	os.Exit(code)
}

func build(dir, name string) (string, error) {
	path := filepath.Join(built, name)
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build in %s: %w: %s", dir, err, out)
	}
	return path, nil
}

// token is that of the one who may come in over HTTP.
const token = "0f8c2e6b9d41a7735c20"

// A place is where a server is: a command to start it, or an URL.
type place struct {
	dir     string   // with the granted folder, sandbox, in it
	env     []string // of the server
	command []string
	url     string // "" over stdio
}

// grant is what the servers of these tests grant.
var grant = []string{"--cap", "fs:./sandbox", "--log-level", "error"}

// newPlace makes a folder for a server, and over HTTP starts it.
func newPlace(t *testing.T, http bool) *place {
	t.Helper()
	if must.Racing() {
		t.Skip("the race detector would see the tests only: the server is another process")
	}
	server, err := binary()
	must.NoError(t, err)
	p := &place{dir: t.TempDir()}
	sandbox := filepath.Join(p.dir, "sandbox")
	must.NoError(t, os.Mkdir(sandbox, 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(sandbox, "numbers.txt"), []byte("3\n1\n2\n"), 0o600))
	state := filepath.Join(p.dir, "state")
	p.env = append(os.Environ(), "XDG_STATE_HOME="+state, "LocalAppData="+state)
	if !http {
		p.command = append([]string{server, "--store", filepath.Join(p.dir, "tools.db")}, grant...)
		return p
	}
	tokens := filepath.Join(p.dir, "tokens")
	must.NoError(t, os.WriteFile(tokens, []byte("ann "+token+"\n"), 0o600))
	p.listen(t, append([]string{server, "serve", "--http", "127.0.0.1:0", "--http-tokens", tokens}, grant...))
	return p
}

// listen starts a server over HTTP, which says where it is.
func (p *place) listen(t *testing.T, command []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env = p.dir, p.env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	log, err := cmd.StderrPipe()
	must.NoError(t, err)
	var out strings.Builder
	cmd.Stdout = &out
	must.NoError(t, wait.Start(cmd))
	ended := make(chan struct{})
	url := make(chan string, 1)
	go func() {
		defer close(ended)
		defer close(url)
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			if _, at, ok := strings.Cut(lines.Text(), "serves MCP at "); ok {
				url <- strings.TrimSpace(at)
				continue
			}
			t.Logf("server: %s", lines.Text())
		}
	}()
	t.Cleanup(func() {
		cancel()
		wait.For(t, ended, "the end of its log")
		_ = cmd.Wait()
		if out.Len() > 0 {
			t.Errorf("a server over HTTP wrote to its standard output: %.200s", out.String())
		}
	})
	if p.url = wait.For(t, url, "its address"); p.url == "" {
		t.Fatal("the server didn't say where it is")
	}
}
