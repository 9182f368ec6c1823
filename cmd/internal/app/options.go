package app

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
)

// LimitOptions are the flags about what runs may take.
type LimitOptions struct {
	steps   uint64
	memory  Size
	depth   int
	Pool    Size
	timeout time.Duration
	Task    time.Duration
	result  Size
	trace   bool
}

func (o *LimitOptions) Register(f *pflag.FlagSet) {
	o.memory, o.Pool, o.result = core.DefaultMemory, 128<<20, 16<<10
	f.Uint64Var(&o.steps, "max-steps", 1_000_000_000, "let a run ask for at most `N` steps")
	f.Var(&o.memory, "max-memory", "let a run ask for at most this `SIZE` of memory")
	f.IntVar(&o.depth, "max-depth", core.DefaultDepth, "let at most `N` calls of a run be pending")
	f.Var(&o.Pool, "pool", "let all runs together use this `SIZE` of memory")
	f.DurationVar(&o.timeout, "timeout", 60*time.Second, "end a run after this `TIME`")
	f.Var(&o.result, "max-result", "show at most this `SIZE` of a result at once; of a larger one a preview, and the call that reads on")
	f.BoolVar(&o.trace, "trace", os.Getenv("MCP_DEBUG") == "1", "log every evaluation to standard error (or MCP_DEBUG=1)")
}

// Limits reads the flags, and sets the pool, which is the process's.
func (o *LimitOptions) Limits() (engine.Limits, error) {
	switch {
	case o.steps == 0:
		return engine.Limits{}, fmt.Errorf("--max-steps must be at least 1")
	case o.memory < 1<<20:
		return engine.Limits{}, fmt.Errorf("--max-memory must be at least 1MiB")
	case o.depth < 1:
		return engine.Limits{}, fmt.Errorf("--max-depth must be at least 1")
	case o.Pool < o.memory:
		return engine.Limits{}, fmt.Errorf("--pool (%s) must be at least --max-memory (%s): a run could never have it", &o.Pool, &o.memory)
	case o.timeout <= 0:
		return engine.Limits{}, fmt.Errorf("--timeout must be positive")
	case o.result < 1<<10 || o.result > 1<<30:
		return engine.Limits{}, fmt.Errorf("--max-result must be between 1KiB and 1GiB")
	}
	core.SetPool(int64(o.Pool))
	return engine.Limits{
		MaxSteps:  o.steps,
		MaxMemory: int64(o.memory),
		MaxDepth:  o.depth,
		Timeout:   o.timeout,
		Task:      o.Task,
		Result:    int(o.result),
	}, nil
}

// Tracer is where evaluations are logged, or nil.
func (o *LimitOptions) Tracer(errs io.Writer) *slog.Logger {
	if !o.trace {
		return nil
	}
	return slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{} // a trace is of steps, not of time
			}
			return a
		},
	}))
}

// Size is a number of bytes that can be written as 64MiB.
type Size int64

var Units = []struct {
	Name  string
	Bytes Size
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1},
}

func (s *Size) Type() string { return "size" }

func (s *Size) String() string {
	for _, u := range Units {
		if *s != 0 && *s%u.Bytes == 0 {
			return strconv.FormatInt(int64(*s/u.Bytes), 10) + u.Name
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

func (s *Size) Set(text string) error {
	number, unit := strings.TrimSpace(text), Size(1)
	for _, u := range Units {
		if n, ok := strings.CutSuffix(number, u.Name); ok {
			number, unit = strings.TrimSpace(n), u.Bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/int64(unit) {
		return fmt.Errorf("a size is a number of bytes such as 67108864 or 64MiB")
	}
	*s = Size(n) * unit
	return nil
}

// PrintLayers writes a line for each layer.
func PrintLayers(out io.Writer, layers host.Layers) {
	for _, l := range layers.Layers {
		need := ""
		if l.Required {
			need = " (required)"
		}
		fmt.Fprintf(out, "  %-3s %-12s%s %s\n", OnOrOff(l.On), l.Name, need, l.Detail)
	}
}

func OnOrOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// DescribeOption is the flag that says how the system holds a plugin while it
// describes itself.
func DescribeOption(cmd *cobra.Command, mode *string) {
	cmd.Flags().StringVar(mode, "sandbox", string(host.Require), "`MODE` of the sandbox while it describes itself: require, best-effort or off")
}

// ModeOf reads such a flag.
func ModeOf(text string) (host.Mode, error) {
	switch mode := host.Mode(text); mode {
	case host.Require, host.BestEffort, host.Off:
		return mode, nil
	}
	return "", fmt.Errorf("--sandbox is require, best-effort or off, not %s", lock.Shown(text, 40))
}
