package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

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
