package sandbox

import (
	"fmt"
	"os"
)

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
