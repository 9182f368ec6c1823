// Package wire is what plugins and their host have in common: how they shake
// hands, and how values, manifests and failures become messages and come back.
//
// Everything that arrives was written by somebody else. Decoding is bounded in
// depth, number of parts and bytes before it allocates, never panics, and gives
// either a value of the language exactly as it was sent or an error:
//
//   - [EncodeValue] and [DecodeValue] read and write the message Value of the
//     contract by hand. Generated code would make an object of a hundred bytes of
//     every two that a hostile sender writes.
//   - [FromManifest] checks all of a manifest; [CheckManifest] is the check alone.
//   - [Fault] is the one place where what went wrong becomes a fault.
//
// Packages sdk and host import it; authors of plugins don't.
package wire

import (
	"github.com/hashicorp/go-plugin"
)

// Protocol is the major version of the contract. It is go-plugin's protocol
// version too.
const Protocol = 1

// Handshake is what tells a plugin that a host started it. It keeps people from
// running a plugin by hand; it is no secret and no security.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  Protocol,
	MagicCookieKey:   "MCP_PIF_PLUGIN",
	MagicCookieValue: "a capability plugin is started by mcp-pif",
}

// Service is the name go-plugin knows the contract by.
const Service = "capability"

// The features of the contract that either side may lack.
const (
	FeatureProgress  = "progress"  // InvokeStream
	FeatureCancel    = "cancel"    // Cancel
	FeatureSecrets   = "secrets"   // InvokeRequest.secrets
	FeatureQuestions = "questions" // InvokeRequest.questions, Answer
)

// Features is what this version has.
var Features = []string{FeatureProgress, FeatureCancel, FeatureSecrets, FeatureQuestions}

// What the host tells a plugin's process by its environment, besides what
// go-plugin does.
const (
	// EnvMaxMessage is the bytes of the largest message, in decimal.
	EnvMaxMessage = "MCP_PIF_MAX_MESSAGE"
	// EnvRoot is the descriptor of the grant's directory, in decimal; on Windows
	// the handle.
	EnvRoot = "MCP_PIF_ROOT"
	// EnvState is the path of the folder in which a plugin keeps its state.
	EnvState = "MCP_PIF_STATE"
	// EnvVariable is the value of the variable that the grant names; it isn't
	// there where that isn't set.
	EnvVariable = "MCP_PIF_VARIABLE"
	// EnvSettings is the descriptor from which a plugin reads its settings to their
	// end, in decimal; on Windows the handle. It isn't there where it has none.
	EnvSettings = "MCP_PIF_SETTINGS"
	// EnvCommand is what the grant's name is mapped to, a caps.Command in JSON; it
	// isn't there where it is mapped to nothing.
	EnvCommand = "MCP_PIF_COMMAND"
)

// The limits on messages.
const (
	// MaxMessage is the bytes of a message where nothing else is said.
	MaxMessage = 32 << 20
	// MaxOverhead is what a message may have besides its value.
	MaxOverhead = 16 << 10
	// MaxManifest is the bytes of the answer to Describe.
	MaxManifest = 256 << 10
	// Window is how many bytes may be under way before the receiver says that it
	// read them: less, and a message of 64 KiB waits for that.
	Window = 1 << 20
	// MaxProgress is the bytes of a progress message that are passed on.
	MaxProgress = 500
)
