package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// The end of the context ends the session and what is in flight, though the
// client holds the input open.
func TestContext(t *testing.T) {
	s := start(t, nil).initialized()
	s.send(callLine("1", "hold", "one"))
	s.reached("one")
	s.cancel()
	s.reached("cancelled one")
	if err := s.ended(); err != context.Canceled {
		t.Errorf("Run: %v", err)
	}
}

// As it does while the end of input is waiting for a call.
func TestContextWhileDraining(t *testing.T) {
	s := start(t, nil).initialized()
	s.send(callLine("1", "hold", "one"))
	s.in.Close()
	s.reached("one")
	s.cancel()
	s.reached("cancelled one")
	if err := s.ended(); err != context.Canceled {
		t.Errorf("Run: %v", err)
	}
}

// A client that no longer reads, but still writes, ends the session without
// harm, and what was in flight is cancelled.
func TestHalfClosed(t *testing.T) {
	s := start(t, nil).initialized()
	s.send(callLine("1", "hold", "one"))
	s.reached("one")
	s.raw.Close()
	io.WriteString(s.in, callLine("2", "echo", "x")+"\n")
	s.reached("cancelled one")
	if err := s.ended(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// An output that fails otherwise is reported.
func TestWriteFailure(t *testing.T) {
	full := errors.New("disk full")
	err := noopServer().Run(t.Context(), &Transport{
		In:  strings.NewReader(initializeLine + "\n" + pingLine("1") + "\n"),
		Out: writerFunc(func(p []byte) (int, error) { return 0, full }),
	})
	if !errors.Is(err, full) {
		t.Errorf("Run: %v", err)
	}
	err = noopServer().Run(t.Context(), &Transport{
		In:  strings.NewReader(initializeLine + "\n"),
		Out: writerFunc(func(p []byte) (int, error) { return len(p) / 2, nil }),
	})
	if !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Run: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// As is an input that fails, once what came before has been answered.
func TestReadFailure(t *testing.T) {
	var out strings.Builder
	torn := errors.New("torn")
	err := noopServer().Run(t.Context(), &Transport{
		In:  io.MultiReader(strings.NewReader(initializeLine+"\n"+pingLine("1")), readerFunc(func([]byte) (int, error) { return 0, torn })),
		Out: &out,
	})
	if !errors.Is(err, torn) || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("Run: %v after %q", err, out.String())
	}
	err = noopServer().Run(t.Context(), &Transport{
		In:  readerFunc(func([]byte) (int, error) { return 0, nil }),
		Out: &out,
	})
	if !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("Run: %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestConnectTwice(t *testing.T) {
	if _, err := new(Transport).Connect(t.Context()); err == nil {
		t.Error("connected to nothing")
	}
	tr := &Transport{In: strings.NewReader(""), Out: io.Discard}
	for i := range 2 {
		conn, err := tr.Connect(t.Context())
		if (err == nil) != (i == 0) {
			t.Errorf("Connect: %v", err)
		}
		if err == nil {
			conn.Close()
			conn.Close()
			if m, err := conn.Read(t.Context()); err != io.EOF {
				t.Errorf("Read: %v, %v", m, err)
			}
		}
	}
}

// The SDK's own client gets along with it, from the handshake to the end.
func TestSDKClient(t *testing.T) {
	in, clientIn := pipe(t)
	clientOut, out := pipe(t)
	end := make(chan error, 1)
	go func() {
		err := noopServer().Run(t.Context(), &Transport{In: in, Out: out})
		out.Close()
		end <- err
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: clientOut, Writer: clientIn}, nil)
	must.NoError(t, err)
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "noop"})
	if err != nil || res.Content[0].(*mcp.TextContent).Text != "49" {
		t.Errorf("%v, %v", res, err)
	}
	cs.Close()
	if err := wait.For(t, end, "the end of the session"); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// mcp-pif < requests.jsonl: a process with a file for its standard input, and
// more calls in it than may be in flight, prints every answer and exits 0.
func TestProcessFile(t *testing.T) {
	const n = 2 * DefaultMaxCalls
	path := filepath.Join(t.TempDir(), "requests.jsonl")
	var b strings.Builder
	fmt.Fprintln(&b, initializeLine)
	fmt.Fprintln(&b, initializedLine)
	for i := range n {
		fmt.Fprintln(&b, callLine(fmt.Sprint(i), "noop", "x"))
	}
	must.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	f, err := os.Open(path)
	must.NoError(t, err)
	defer f.Close()
	cmd := process()
	cmd.Stdin = f
	out, err := cmd.Output()
	must.NoError(t, err)
	seen := map[string]bool{}
	for l := range strings.Lines(string(out)) {
		m := decode(t, []byte(l))
		if m.Error != nil {
			t.Fatal(m.Error)
		}
		seen[string(m.ID)] = true
	}
	if len(seen) != n+1 {
		t.Errorf("%d answers, want %d", len(seen), n+1)
	}
}

// A client that closes the pipe doesn't kill the process by SIGPIPE.
func TestProcessSIGPIPE(t *testing.T) {
	cmd := process()
	in, err := cmd.StdinPipe()
	must.NoError(t, err)
	out, err := cmd.StdoutPipe()
	must.NoError(t, err)
	must.NoError(t, cmd.Start())
	defer time.AfterFunc(wait.Limit(t), func() { _ = cmd.Process.Kill() }).Stop()
	out.Close()
	fmt.Fprintln(in, initializeLine)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the process ended by %v", err)
	}
	in.Close()
}

func process() *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"=ours")
	cmd.Stderr = os.Stderr
	return cmd
}
