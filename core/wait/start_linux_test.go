package wait

import (
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// roleOf says what a process is in place of the tests.
const roleOf = "PIF_WAIT_ROLE"

// started is this program in a role, whose standard input and output it has.
func started(role string, in io.Reader, out io.Writer) (*exec.Cmd, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = append(os.Environ(), roleOf+"="+role), in, out, os.Stderr
	return cmd, Start(cmd)
}

func TestMain(m *testing.M) {
	switch os.Getenv(roleOf) {
	case "":
		os.Exit(m.Run())
	case "test":
		if _, err := started("server", os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
	case "server":
		os.Stdout.WriteString("ready\n")
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the outermost ends
}

// TestStart: a server ends with the test that started it, also where that is killed.
func TestStart(t *testing.T) {
	keep, life, err := os.Pipe()
	must.NoError(t, err)
	defer life.Close()
	said, out, err := os.Pipe()
	must.NoError(t, err)
	defer said.Close()
	cmd, err := started("test", keep, out)
	must.NoError(t, err)
	keep.Close()
	out.Close()
	read := func(n int) string {
		text := make(chan string, 1)
		go func() {
			b := make([]byte, n)
			n, _ := io.ReadFull(said, b)
			text <- string(b[:n])
		}()
		return For(t, text, "what the server says")
	}
	if got := read(6); got != "ready\n" {
		t.Fatalf("the server: %q", got)
	}
	must.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	if got := read(1); got != "" {
		t.Errorf("the server: %q", got)
	}
}
