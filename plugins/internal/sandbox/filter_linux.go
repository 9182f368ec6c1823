//go:build linux

package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Where the parts of struct seccomp_data are (linux/seccomp.h), little-endian.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

// A surrounding is what a filter is made from, besides the architecture.
type surrounding struct {
	network Network
	fork    bool
	writes  bool // some files may be written
	// terminals is set where terminals may be made.
	terminals bool
	scoped    bool // Landlock holds signals, too
	pid       int  // the launcher's, which is the plugin's
	exe       int  // the descriptor that the launcher executes
}

// A condition is on one argument of a system call: its bits in mask are want. The
// kernel takes most arguments as 32 bits, so the upper half isn't looked at.
type condition struct {
	arg        int
	mask, want uint32
	not        bool // they are something else
	pointer    bool // the upper half is 0, too
}

// A decision is about one system call. With neither list it is refused. With allow
// it is refused unless all conditions of one of its entries hold; with refuse it
// is refused if they do.
type decision struct {
	number        int
	allow, refuse [][]condition
	errno         unix.Errno // EPERM where 0
}

// is tests that an argument's lower half has a value.
func is(arg int, want uint32) condition { return condition{arg: arg, mask: ^uint32(0), want: want} }

// isNot tests that it hasn't.
func isNot(arg int, want uint32) condition {
	return condition{arg: arg, mask: ^uint32(0), want: want, not: true}
}

// bits tests some bits of an argument.
func bits(arg int, mask, want uint32) condition { return condition{arg: arg, mask: mask, want: want} }

// null tests that a pointer is none.
func null(arg int) condition { return condition{arg: arg, mask: ^uint32(0), pointer: true} }

// refuseAll makes decisions that refuse each of the calls.
func refuseAll(errno unix.Errno, numbers ...int) []decision {
	all := make([]decision, 0, len(numbers))
	for _, n := range numbers {
		all = append(all, decision{number: n, errno: errno})
	}
	return all
}

func answer(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

var allow = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}

// assemble makes the filter: another architecture's calls (32-bit ones on the
// same kernel) and calls newer than newest, x32's among them, don't exist; the
// decisions hold for theirs; all else is allowed.
func assemble(arch uint32, newest int, decisions []decision) ([]bpf.RawInstruction, error) {
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		answer(unix.ENOSYS),
		bpf.LoadAbsolute{Off: dataNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: uint32(newest), SkipTrue: 1},
		answer(unix.ENOSYS),
	}
	for _, d := range decisions {
		body := d.body()
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(d.number), SkipTrue: uint8(len(body))})
		program = append(program, body...)
	}
	return bpf.Assemble(append(program, allow))
}

// body is a decision's instructions, the last of which returns. They are fewer
// than 256, which a jump can skip: a test assembles every filter there is.
func (d decision) body() []bpf.Instruction {
	errno := cmp.Or(d.errno, unix.EPERM)
	hit, miss, entries := bpf.Instruction(allow), answer(errno), d.allow
	if d.refuse != nil {
		hit, miss, entries = miss, hit, d.refuse
	}
	var body []bpf.Instruction
	for _, conditions := range entries {
		body = append(body, entry(conditions, hit)...)
	}
	return append(body, miss)
}

// entry is the instructions of one entry: hit where all conditions hold, else
// on to what follows.
func entry(conditions []condition, hit bpf.Instruction) []bpf.Instruction {
	code := []bpf.Instruction{hit}
	for i := len(conditions) - 1; i >= 0; i-- {
		c := conditions[i]
		off := uint32(dataArgs + 8*c.arg)
		if c.pointer {
			code = append([]bpf.Instruction{
				bpf.LoadAbsolute{Off: off + 4, Size: 4},
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: uint8(len(code))},
			}, code...)
		}
		fails := bpf.JumpNotEqual
		if c.not {
			fails = bpf.JumpEqual
		}
		code = append([]bpf.Instruction{
			bpf.LoadAbsolute{Off: off, Size: 4},
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: c.mask},
			bpf.JumpIf{Cond: fails, Val: c.want, SkipTrue: uint8(len(code))},
		}, code...)
	}
	return code
}

// System says which layers this system could hold a plugin with that listens
// only, without starting anything. It is for an operator to read; what holds a
// plugin is in the report of its start.
func System() Report {
	version, landlock := landlockVersion()
	seccomp := reason(canFilter())
	h := held{version: version, landlock: landlock, seccomp: seccomp, order: &order{}}
	byLandlock := fmt.Sprintf("Landlock %d", version)
	r := Report{Mode: Require, Landlock: version}
	r.add(LayerDescriptors, "closed, all but the listed ones", "")
	r.add(LayerLimits, "set, and can't be raised", "")
	r.add(LayerCapabilities, "given up", "")
	r.add(LayerNoNewPrivs, "set", "")
	r.add(LayerFiles, byLandlock, h.files())
	r.add(LayerNetwork, networkDetail(h.order), seccomp)
	r.add(LayerSyscalls, "filtered for "+runtime.GOARCH, seccomp)
	r.add(LayerSignals, "only to itself", h.signals())
	r.add(LayerSockets, "only its own", h.sockets())
	return r
}

// canFilter asks whether the kernel knows the action that the filters use.
func canFilter() error {
	if _, err := filter(surrounding{pid: os.Getpid()}); err != nil {
		return err
	}
	action := uint32(unix.SECCOMP_RET_ERRNO)
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))); errno != 0 {
		return fmt.Errorf("this kernel doesn't filter system calls (CONFIG_SECCOMP_FILTER): %w", errno)
	}
	return nil
}
