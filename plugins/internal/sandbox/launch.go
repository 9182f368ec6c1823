package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

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
