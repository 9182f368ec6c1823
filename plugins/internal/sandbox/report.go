package sandbox

import (
	"fmt"
	"strings"
)

// The layers, in the order in which they are applied and reported.
const (
	// LayerDescriptors is on where the plugin has no descriptor but its
	// standard ones and those listed.
	LayerDescriptors = "descriptors"
	// LayerLimits is on where the resource limits are set.
	LayerLimits = "limits"
	// LayerCapabilities is on where the plugin has none of the privileges of
	// root, but for those of reading and writing other users' files that its
	// rules are about.
	LayerCapabilities = "capabilities"
	// LayerNoNewPrivs is on where executing gives no privileges.
	LayerNoNewPrivs = "no_new_privs"
	// LayerFiles is on where only what the rules allow can be opened, changed,
	// truncated, renamed or removed.
	LayerFiles = "files"
	// LayerNetwork is on where only the sockets of the network mode can be made.
	LayerNetwork = "network"
	// LayerSyscalls is on where system calls that reach other processes, the
	// kernel's configuration, or around the other layers are refused.
	LayerSyscalls = "syscalls"
	// LayerSignals is on where no process outside the sandbox can be signalled.
	LayerSignals = "signals"
	// LayerSockets is on where unix sockets of other processes can't be reached.
	LayerSockets = "sockets"
	// LayerPorts is on where only the listed TCP ports can be connected to. It
	// is in a report only where the spec lists ports.
	LayerPorts = "ports"
	// LayerOrigins is on where the plugin is in a network whose only way out is its
	// host's proxy. It is in a report only where the spec says Isolate.
	LayerOrigins = "origins"
	// LayerProcesses is on where whatever the plugin starts is ended with it, at
	// once. Where it is off that is done one by one. It is in a report only where
	// the spec says Keep.
	LayerProcesses = "processes"
)

// A Layer is one thing that holds a plugin, or doesn't.
type Layer struct {
	Name string `json:"name"`
	On   bool   `json:"on"`
	// Detail says how it holds, or why it doesn't.
	Detail string `json:"detail"`
	// Required is set where Require refuses without it.
	Required bool `json:"required"`
}

// A Report says which layers hold.
type Report struct {
	Mode Mode `json:"mode"`
	// Landlock is the version that the kernel has; 0 for none.
	Landlock int     `json:"landlock"`
	Layers   []Layer `json:"layers"`
}

// Layer finds a layer by name. A layer that isn't there is off.
func (r Report) Layer(name string) Layer {
	for _, l := range r.Layers {
		if l.Name == name {
			return l
		}
	}
	return Layer{Name: name, Detail: "it isn't part of this sandbox"}
}

// Missing is the layers that are off.
func (r Report) Missing() []Layer {
	var off []Layer
	for _, l := range r.Layers {
		if !l.On {
			off = append(off, l)
		}
	}
	return off
}

// Holds reports whether every required layer is on.
func (r Report) Holds() bool {
	for _, l := range r.Missing() {
		if l.Required {
			return false
		}
	}
	return len(r.Layers) > 0
}

// String is one line: the layers that are on, then those that are off, each with
// its reason.
func (r Report) String() string {
	var on, off []string
	for _, l := range r.Layers {
		if l.On {
			on = append(on, l.Name)
		} else {
			off = append(off, l.Name+" ("+l.Detail+")")
		}
	}
	var parts []string
	if len(on) > 0 {
		parts = append(parts, "on: "+strings.Join(on, ", "))
	}
	if len(off) > 0 {
		parts = append(parts, "off: "+strings.Join(off, ", "))
	}
	return strings.Join(parts, "; ")
}

// required is the layers without which Require refuses.
var required = map[string]bool{
	LayerDescriptors: true, LayerLimits: true, LayerCapabilities: true, LayerNoNewPrivs: true,
	LayerFiles: true, LayerNetwork: true, LayerSyscalls: true, LayerPorts: true, LayerOrigins: true,
}

// add appends a layer: on where off is "".
func (r *Report) add(name, on, off string) {
	detail := on
	if off != "" {
		detail = off
	}
	r.Layers = append(r.Layers, Layer{Name: name, On: off == "", Detail: detail, Required: required[name]})
}

// A MissingError is why a plugin wasn't started under [Require].
type MissingError struct {
	Report Report
}

// Error names the required layers that are off, with the reasons.
func (e *MissingError) Error() string {
	var off []string
	for _, l := range e.Report.Missing() {
		if l.Required {
			off = append(off, fmt.Sprintf("%s: %s", l.Name, l.Detail))
		}
	}
	return "the sandbox is required and lacks " + strings.Join(off, "; ") + "; --sandbox=best-effort starts it with the layers there are"
}

// offReport is the report where nothing is applied but what the launcher does
// always.
func offReport(why string, ports bool) Report {
	r := Report{Mode: Off}
	r.add(LayerDescriptors, "closed, all but the listed ones", "")
	for _, name := range []string{
		LayerLimits, LayerCapabilities, LayerNoNewPrivs, LayerFiles, LayerNetwork, LayerSyscalls, LayerSignals, LayerSockets,
	} {
		r.add(name, "", why)
	}
	if ports {
		r.add(LayerPorts, "", why)
	}
	return r
}
