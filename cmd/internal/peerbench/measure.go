package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"runtime"
	"slices"
	"time"
)

// row is one line of the table: a program run hot, or from source text.
type row struct {
	name string
	prog *program
	cold bool
}

// options are the command line's.
type options struct {
	rounds  int
	minTime time.Duration
}

// entry is a cell of the table: what one contestant did with one row.
type entry struct {
	// Ns is the median over the rounds of the time per run, in nanoseconds.
	Ns float64 `json:"ns,omitempty"`

	// Fails is why the contestant has no time here, or empty.
	Fails string `json:"fails,omitempty"`
}

// ok reports whether there is a time.
func (e *entry) ok() bool { return e != nil && e.Fails == "" }

// runner is a contestant that has prepared a row's program.
type runner struct {
	name    string
	job     job
	timed   timedJob
	want    int64
	n       int // runs per sample, so that a sample lasts minTime
	samples []float64
	failed  error
}

// measure runs one row on every contestant that can. Contestants take turns,
// round by round, so that a machine that slows down for a while slows all of
// them; each begins a round one place later, so that none always follows the
// same neighbour.
func measure(r row, cs []*contestant, opt options) map[string]*entry {
	var rs []*runner
	for _, c := range cs {
		prepare := c.hot
		if r.cold {
			prepare = c.cold
		}
		x := &runner{name: c.name, want: r.prog.Expect}
		switch {
		case prepare != nil:
			x.prepare(prepare, r.prog)
		case c.timed != nil && !r.cold:
			x.timed, x.failed = c.timed(r.prog)
		default:
			continue
		}
		if errors.Is(x.failed, fs.ErrNotExist) {
			continue // not written in this language
		}
		if x.failed == nil {
			x.calibrate(opt.minTime)
		}
		rs = append(rs, x)
	}
	for round := range opt.rounds {
		for i := range rs {
			x := rs[(i+round)%len(rs)]
			if x.failed != nil {
				continue
			}
			// Garbage is paid for by whoever made it.
			runtime.GC()
			d := x.time(x.n)
			x.samples = append(x.samples, float64(d.Nanoseconds())/float64(x.n))
		}
	}
	out := make(map[string]*entry)
	for _, x := range rs {
		if x.failed != nil {
			out[x.name] = &entry{Fails: x.failed.Error()}
			continue
		}
		out[x.name] = &entry{Ns: median(x.samples)}
	}
	return out
}

// prepare compiles the program; a compiler that panics fails like one that
// returns an error.
func (x *runner) prepare(compile func(*program) (job, error), p *program) {
	defer x.catch()
	x.job, x.failed = compile(p)
}

// catch, deferred, takes a panic as the contestant's failure.
func (x *runner) catch() {
	if p := recover(); p != nil {
		x.failed = fmt.Errorf("panic: %v", p)
	}
}

// calibrate finds how many runs last minTime. Its runs are the warm-up.
func (x *runner) calibrate(minTime time.Duration) {
	for n := 1; ; n *= 2 {
		d := x.time(n)
		if x.failed != nil {
			return
		}
		if d >= minTime/2 {
			x.n = max(1, int(float64(n)*float64(minTime)/float64(max(d, 1))))
			return
		}
	}
}

// time runs the job n times, checking every result. A failure, a wrong result
// and a panic all stop the contestant for this row.
func (x *runner) time(n int) (d time.Duration) {
	defer x.catch()
	if x.timed != nil {
		d, got, err := x.timed(n)
		if err == nil && got != x.want {
			err = fmt.Errorf("wrong result %d, expected %d", got, x.want)
		}
		x.failed = err
		return d
	}
	start := time.Now()
	for range n {
		got, err := x.job()
		if err != nil {
			x.failed = err
			return 0
		}
		if got != x.want {
			x.failed = fmt.Errorf("wrong result %d, expected %d", got, x.want)
			return 0
		}
	}
	return time.Since(start)
}

// median of a list that has at least one element; it sorts the list.
func median(xs []float64) float64 {
	slices.Sort(xs)
	h := len(xs) / 2
	if len(xs)%2 == 1 {
		return xs[h]
	}
	return (xs[h-1] + xs[h]) / 2
}

// Compilers that aren't Go run in a process each, which is kept: it reads a line with a
// program's file, how often to run it, and its arguments, and answers with the seconds
// that took, and the result. They take part where they are installed.

const v8Driver = `
const fs = require("fs"), loaded = {};
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const [file, n, ...args] = line.split(" "), xs = args.map(Number);
  try {
    const f = (loaded[file] ??= (0, eval)(fs.readFileSync(file + ".js", "utf8")));
    const start = process.hrtime.bigint();
    let got;
    for (let i = 0; i < +n; i++) got = f(...xs);
    console.log("%s %s", Number(process.hrtime.bigint() - start) / 1e9, BigInt(got));
  } catch (e) { console.log("fails " + String(e).split("\n")[0]); }
});`

const luaJITDriver = `
local loaded = {}
for line in io.lines() do
  local words = {}
  for w in line:gmatch("%S+") do words[#words + 1] = w end
  local a, b = tonumber(words[3]), tonumber(words[4])
  local ok, message = pcall(function()
    local f = loaded[words[1]] or assert(loadfile(words[1] .. ".lua"))()
    loaded[words[1]] = f
    local got
    local start = os.clock()
    for i = 1, tonumber(words[2]) do got = f(a, b) end
    print(string.format("%.9f %.0f", os.clock() - start, got))
  end)
  if not ok then print("fails " .. tostring(message)) end
  io.flush()
end`

// processes returns those that are installed.
func processes() []*contestant {
	var cs []*contestant
	for _, p := range []struct{ name, ext, command, flag, driver string }{
		{nameV8, "js", "node", "--stack-size=7600", v8Driver},
		{nameLuaJIT, "lua", "luajit", "-O3", luaJITDriver},
	} {
		file, err := exec.LookPath(p.command)
		if err != nil {
			continue
		}
		x := &process{args: []string{file, p.flag, "-e", p.driver}}
		cs = append(cs, &contestant{name: p.name, timed: func(prog *program) (timedJob, error) {
			if _, err := prog.source(p.ext); err != nil {
				return nil, err
			}
			args, err := prog.args()
			return func(n int) (time.Duration, int64, error) { return x.run(prog.ID, n, args) }, err
		}})
	}
	return cs
}

// process is begun with its first program and ends with this one, when its input does.
type process struct {
	args []string
	in   io.Writer
	out  *bufio.Reader
}

func (x *process) run(name string, n int, args []int64) (time.Duration, int64, error) {
	if x.in == nil {
		cmd := exec.Command(x.args[0], x.args[1:]...)
		cmd.Dir = "peers"
		in, err1 := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		if err := errors.Join(err1, err2, cmd.Start()); err != nil {
			return 0, 0, err
		}
		x.in, x.out = in, bufio.NewReader(out)
	}
	line := fmt.Sprintf("%s %d", name, n)
	for _, a := range args {
		line += fmt.Sprintf(" %d", a)
	}
	if _, err := fmt.Fprintln(x.in, line); err != nil {
		return 0, 0, err
	}
	answer, err := x.out.ReadBytes('\n')
	if err != nil {
		x.in = nil
		return 0, 0, fmt.Errorf("the process ended: %w", err)
	}
	if reason, ok := bytes.CutPrefix(answer, []byte("fails ")); ok {
		return 0, 0, errors.New(string(reason))
	}
	var seconds float64
	var got int64
	if _, err := fmt.Sscan(string(answer), &seconds, &got); err != nil {
		return 0, 0, fmt.Errorf("answer %q: %w", answer, err)
	}
	return time.Duration(seconds * 1e9), got, nil
}
