// Package keeper starts a command for a plugin, and ends with it whatever it started.
//
// Each command has a keeper: a process of this program that starts the command in a
// sandbox of its own, within the plugin's, is the parent of whatever leaves its parents
// (a subreaper), counts processes and memory, and ends all of it when it is told to, or
// when the plugin is gone, however that came.
//
// [Start] is the plugin's side; [Main] is the keeper's, which the program that serves
// the plugin calls first. Package proc starts the sessions of its programs that way,
// package mcp its servers.
package keeper

import (
	"maps"

	"github.com/mcp-pif/mcp-pif/caps"
)

// keeperArgument makes the plugin's program a keeper.
const keeperArgument = "__session"

// The keeper's descriptors, besides its standard ones.
const (
	fdControl = 3 + iota // instructions, as lines of JSON; its end ends the session
	fdNews               // what the keeper tells, likewise
	fdInput              // the command's standard streams
	fdOutput
	fdErrors
)

// An instruction is what a keeper is told. The first has the command.
type instruction struct {
	Command *caps.Command `json:",omitempty"`
	// Signal goes to the command's process group.
	Signal int `json:",omitempty"`
}

// News is what a keeper tells: first that the command runs or doesn't start, at
// last how it ended, once nothing of it is left.
type News struct {
	Started bool   `json:",omitempty"`
	Error   string `json:",omitempty"` // for the operator
	Why     string `json:",omitempty"` // the limit that it was ended for
	Ended   bool   `json:",omitempty"`
	Code    int    `json:",omitempty"` // of an end by itself
	Signal  string `json:",omitempty"` // of another
}

// environment is all that a command has of one.
func environment(c *caps.Command) []string {
	env := map[string]string{"LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/", "TERM": "dumb"}
	if c.Dir != "" {
		env["HOME"] = c.Dir
	}
	if c.Proxy != "" {
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
			env[name] = c.Proxy
		}
		env["NODE_USE_ENV_PROXY"] = "1" // Node.js reads them from 24 on, if it is told to
	}
	maps.Copy(env, c.Env)
	list := make([]string, 0, len(env))
	for name, text := range env {
		list = append(list, name+"="+text)
	}
	return list
}
