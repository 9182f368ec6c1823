// Package sandbox starts a plugin's executable inside what the operating system
// can hold it to, and says exactly which layers hold and which don't, and why.
//
// A program that should start plugins calls [Main] first thing in its own main:
// the launcher is the same binary, re-executed. [New] makes a [Launch] from a
// [Spec]; its Cmd is the caller's to wire (pipes, process group, death signal,
// credentials); [Launch.Start] returns once the plugin itself runs, with the
// [Report] of the launcher, or with the reason it doesn't. Under [Require] a
// plugin runs with every required layer or not at all.
//
// On Linux the launcher, on one thread, moves descriptors and marks the rest to
// be closed, lowers resource limits, gives up capabilities, sets no_new_privs,
// builds a Landlock domain from the rules and a seccomp filter from the network
// mode, reports, and executes the descriptor that the caller hashed: there is no
// path between the check and the execution. Landlock's version is asked from the
// kernel and each right is named, never "as good as it gets": what a version
// can't hold is off in the report. Elsewhere every layer is reported as missing.
//
// What it can't do: files that a plugin may read or write it may also fill, lock
// and watch for metadata; memory made read-only after it was written is not
// counted by [Limits.Memory]; a plugin with [Outgoing] may reach any address
// (the fetch plugin decides which) and, before Landlock 9, the sockets with a
// path that its user may.
//
// Package host wires it in; report.go has the layers, program.go the
// rules that executables need.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Mode says what happens where a layer is missing.
type Mode string

// The modes. The zero value is [Require].
const (
	// Require refuses to start the plugin where a required layer is missing.
	Require Mode = "require"
	// BestEffort starts the plugin with the layers there are.
	BestEffort Mode = "best-effort"
	// Off applies no layer. The environment is still clean, descriptors are
	// still closed, and the executable is still the descriptor that was hashed.
	Off Mode = "off"
)

// Access is what a [Rule] allows, as a set.
type Access uint8

// The kinds of access.
const (
	// Read is reading files and listing directories.
	Read Access = 1 << iota
	// Write is writing, creating, renaming and removing regular files and
	// directories. It doesn't include Read, nor making links, sockets, pipes or
	// devices.
	Write
	// Execute is reading and executing.
	Execute
	// Sockets is for a runtime directory: a plugin makes and removes its
	// listening sockets there, and reads and writes small files.
	Sockets
	// Terminals is for making terminals: reading, writing, and asking and setting
	// what terminals have. A plugin with it may give its processes one.
	Terminals
)

// A Rule allows access to a file, or to a directory and what is below it.
type Rule struct {
	// File is the file or directory, open; it is what was checked, so the rule
	// can't be raced. The caller closes it, after Start.
	File *os.File
	// Path is used where File is nil. It is opened by New, links followed.
	Path string
	// Access is what is allowed.
	Access Access
	// Optional rules are left out where Path doesn't exist.
	Optional bool
}

// Network is what a plugin may do with sockets.
type Network int

// The network modes.
const (
	// Listening is the zero value: unix stream sockets that the plugin makes,
	// and listens on (it needs one for its host to connect to). It may connect
	// to nothing and make no other socket.
	Listening Network = iota
	// Outgoing adds TCP and UDP over IPv4 and IPv6. Binding a TCP port by
	// number is refused from Landlock 4 on.
	Outgoing
	// Proxied is connections by TCP to the listed ports, and no other socket: for a
	// program in a network of its own (see [Spec.Isolate]).
	Proxied
)

// ProxyAddress is where a program in a network of its own finds the proxy that is its only way
// out. Nothing else is in that network.
const ProxyAddress = "127.0.0.1:3128"

// DefaultMemory and DefaultFiles are the limits where a [Limits] says nothing.
const (
	DefaultMemory = 1 << 30
	DefaultFiles  = 1024
)

// smallestMemory is what the launcher itself needs to get to its end.
const smallestMemory = 32 << 20

// Limits are what a plugin may use. A limit is never above what the host's
// process has itself. Core dumps are always off; CPU time isn't limited, since a
// plugin may live long: deadlines are the host's.
type Limits struct {
	// Memory is the bytes of private writable memory (RLIMIT_DATA), all
	// threads' stacks included. 0 is DefaultMemory. Shared anonymous memory is
	// refused by the filter, so it can't be used to get around it.
	Memory int64
	// Files is the number of descriptors. 0 is DefaultFiles.
	Files int
	// FileSize is the bytes of a file that is written. 0 is none at all where
	// no rule has Write, and no limit where one has.
	FileSize int64
	// Processes is RLIMIT_NPROC: a limit on all threads of the plugin's user, as
	// long as that isn't root. 0 is no limit. It is meant for users of their own.
	Processes int
	// AddressSpace is RLIMIT_AS; 0 is no limit. A Go program needs 1 GiB beside
	// its memory, others reserve far more. It bounds what Memory doesn't count.
	AddressSpace int64
}

// A Spec says what to start, and what it may do.
type Spec struct {
	// Executable is the program, open for reading, where the caller has checked
	// it: what was checked is what is executed. It must be a binary: a script is
	// started by its interpreter. The caller closes it, after Start.
	Executable *os.File
	// Path is used where Executable is nil.
	Path string
	// Args is the program's arguments, its name first; nil is the name alone.
	Args []string
	// Env is the whole environment.
	Env []string
	// Dir is where it starts; "" is the host's own directory.
	Dir string
	// ExtraFiles are passed as descriptors 3, 4, … as by exec.Cmd. They are
	// capabilities: no layer takes from what an open descriptor can do, but
	// opening below a directory needs a rule. The caller closes them.
	ExtraFiles []*os.File
	// Rules are the files. The executable, and the system's loader and libraries
	// where it is linked dynamically, need none.
	Rules []Rule
	// Network is what it may do with sockets.
	Network Network
	// Ports are the TCP ports that an Outgoing plugin may connect to; none is
	// all. It needs Landlock 4. Name resolution by TCP needs 53.
	Ports []uint16
	// Isolate has the plugin in a network of its own, with a listener at [ProxyAddress] that
	// is the caller's: see [Launch.Listener].
	Isolate bool
	// Fork is set for a plugin that starts processes; they inherit every layer.
	// What it starts needs rules with Execute: see [Program].
	Fork bool
	// Keep has a [Keeper] start it: whatever it starts is ended when it ends, when
	// [Launch.End] is called, and when the host is gone, however that came, whether
	// it leaves its group and session or not. The process of [Launch.Cmd] is the
	// keeper's then, which ends when nothing is left, as the plugin did.
	Keep bool
	// Limits are what it may use.
	Limits Limits
	// Mode says what happens where a layer is missing.
	Mode Mode
}

// startWithin is how long a launcher has to report and execute where the
// context sets no deadline.
const startWithin = time.Minute

// terminals reports whether any may be made.
func (s *Spec) terminals() bool {
	return slices.ContainsFunc(s.Rules, func(r Rule) bool { return r.Access&Terminals != 0 })
}

// writes reports whether anything may be written.
func (s *Spec) writes() bool {
	return slices.ContainsFunc(s.Rules, func(r Rule) bool { return r.Access&Write != 0 })
}

// commandFiles is what commands have a use for, and which tells nothing: devices
// that are files, the time zones, and what terminals can do.
var commandFiles = []string{
	"/dev/zero", "/dev/urandom", "/dev/random", "/etc/localtime", "/usr/share/zoneinfo",
	"/usr/share/terminfo", "/etc/terminfo", "/etc/inputrc",
}

// Command gives the rules of a program that a plugin starts: the program itself
// (see [Program]), the folder it runs in, what it may read, write and execute,
// and a few files of the system's. A plugin that starts it needs them, too.
func Command(path, dir string, read, write, execute []string) ([]Rule, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	script, err := shebang(f)
	f.Close()
	if err != nil || script != "" {
		return nil, fmt.Errorf("%s is a script: name its interpreter as the program, and let that read it", path)
	}
	rules, err := Program(path)
	if err != nil {
		return nil, err
	}
	for _, file := range commandFiles {
		rules = append(rules, Rule{Path: file, Access: Read, Optional: true})
	}
	for access, paths := range map[Access][]string{Read: append([]string{dir}, read...), Read | Write: write, Execute: execute} {
		for _, p := range paths {
			if p != "" {
				rules = append(rules, Rule{Path: p, Access: access})
			}
		}
	}
	for _, p := range execute {
		// A program needs its loader; those in a folder have the command's.
		if more, err := Program(p); err == nil {
			rules = append(rules, more[1:]...)
		}
	}
	return rules, nil
}

// resolverFiles is what resolving names reads.
var resolverFiles = []string{
	"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
}

// resolverFolders are those where services put the target of /etc/resolv.conf.
// They replace the file when the network changes, so the folder is what is read.
var resolverFolders = []string{"/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf", "/run/connman"}

// certificateFiles is where systems keep the certificates of authorities: files,
// and folders with nothing else in them. What links point to is among them.
var certificateFiles = []string{
	"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem",
	"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted", "/etc/ca-certificates/extracted", "/etc/certs",
	"/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/usr/share/pki/ca-trust-source",
	"/var/lib/ca-certificates", "/system/etc/security/cacerts",
}

// Resolver gives the rules of a plugin that speaks to servers by name and TLS:
// the system's resolver configuration and its certificate authorities, to be
// read. A spec with them has Network [Outgoing], or the rules are of no use.
// None of them is a folder that holds anything secret.
func Resolver() []Rule {
	var rules []Rule
	for _, name := range append(append([]string{}, resolverFiles...), certificateFiles...) {
		rules = append(rules, Rule{Path: name, Access: Read, Optional: true})
	}
	if target, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil {
		for _, dir := range resolverFolders {
			if strings.HasPrefix(target, dir+"/") {
				rules = append(rules, Rule{Path: dir, Access: Read, Optional: true})
			}
		}
	}
	return rules
}

// launcherArg is the argument that makes the host's binary the launcher.
const launcherArg = "__sandbox"

// networkArg makes it first the one that sets up a network of its own.
const networkArg = "__network"

// keeperArg makes it a plugin's keeper.
const keeperArg = "__keeper"

// launcherEnv is in the launcher's environment, and in no plugin's: a program
// that finds it when it starts plugins has been started as a launcher and didn't
// call [Main], and would start itself without end.
const launcherEnv = "MCP_PIF_LAUNCHER"

// check refuses specs that can't be meant.
func (s *Spec) check() error {
	switch s.Mode {
	case Require, BestEffort, Off:
	case "":
		s.Mode = Require
	default:
		return fmt.Errorf("the sandbox mode %q is none of require, best-effort and off", s.Mode)
	}
	switch {
	case os.Getenv(launcherEnv) != "":
		return errors.New("this program starts plugins and doesn't call the launcher in its main function")
	case s.Executable == nil && s.Path == "":
		return errors.New("there is no executable to start")
	case s.Network < Listening || s.Network > Proxied:
		return fmt.Errorf("the network mode %d is none", s.Network)
	case len(s.Ports) > 0 && s.Network == Listening:
		return errors.New("ports are for a plugin that may connect")
	case s.Limits.Memory < 0 || s.Limits.Files < 0 || s.Limits.FileSize < 0 || s.Limits.Processes < 0 || s.Limits.AddressSpace < 0:
		return errors.New("a limit is negative")
	case s.Limits.Memory > 0 && s.Limits.Memory < smallestMemory:
		return fmt.Errorf("a limit of %d bytes of memory is less than the %d that starting takes", s.Limits.Memory, smallestMemory)
	case s.Limits.Files > 0 && s.Limits.Files < 16:
		return fmt.Errorf("a limit of %d descriptors is less than the 16 that a plugin takes", s.Limits.Files)
	}
	for _, text := range slices.Concat(s.Args, s.Env) {
		if strings.ContainsRune(text, 0) {
			return errors.New("an argument or a variable of the environment has a zero byte")
		}
	}
	if len(s.Args) == 0 {
		name := s.Path
		if name == "" {
			name = s.Executable.Name()
		}
		s.Args = []string{name}
	}
	return nil
}
