// Package arch holds the rules of the house: who may import whom, and what a
// package must have to live in it.
//
// It contains tests only, with the table that they enforce. Imports are parsed
// from the sources (go list's answers are cached by go test and would miss a
// change). A package that isn't in the table fails, so that a new one comes in
// by a decision; so does a library that isn't.
//
// The order is
//
//	fault ← term ← value ← prim ← {parse, text, code} ← {eval, naive, check} ← core ← caps ← plugins/host ← cmd
//
// and proto imports nothing of ours. core imports no package with which a
// program could reach the world, the clock or chance: an effect is a result of
// evaluation, and somebody else performs it.
package arch

// module is this module's path.
const module = "github.com/mcp-pif/mcp-pif"

// A rule says what a package may import, by folder below the module's root.
type rule struct {
	// ours is the packages of this module; "x/..." is x and all below it.
	ours []string
	// std is the packages of the standard library: pure or any.
	std []string
	// file is the packages of the standard library that one file may import besides.
	file map[string][]string
	// libraries is everything else, in the same notation.
	libraries []string
	// unsafe is set where package unsafe may be imported.
	unsafe bool
	// tests is set for a package that only tests import.
	tests bool
}

// pure is the standard packages that can't reach the world: no files, network,
// clock, chance, environment, processes or logs.
var pure = []string{
	"bytes", "cmp", "container/heap", "container/list", "crypto/hmac", "crypto/sha256", "encoding", "encoding/base64",
	"encoding/binary", "encoding/csv", "encoding/hex", "encoding/json", "errors", "fmt", "hash", "hash/crc32", "io", "iter", "maps", "math", "math/big",
	"math/bits", "regexp", "regexp/syntax", "slices", "sort", "strconv", "strings", "sync", "sync/atomic", "unicode",
	"unicode/utf16", "unicode/utf8",
}

// memory is what the machine asks of Go's collector: to take back what it let go
// of before it takes more.
var memory = append(append([]string{}, pure...), "runtime", "runtime/debug")

// anyStd is every standard package but unsafe.
var anyStd = []string{"..."}

// low is what every package of core may build on.
var low = []string{"core/display", "core/fault", "core/json", "core/term", "core/value", "core/prim", "core/internal/long"}

func with(more ...string) []string { return append(append([]string{}, low...), more...) }

var mcpSDK = []string{"github.com/modelcontextprotocol/go-sdk/..."}

// grpc is the libraries that know of processes and of the wire.
var grpc = []string{
	"github.com/hashicorp/go-plugin/...", "github.com/hashicorp/go-hclog", "google.golang.org/grpc/...",
	"google.golang.org/protobuf/...",
}

// hosting is those, and what starting processes and looking at sockets takes.
var hosting = append([]string{"golang.org/x/sys/unix"}, grpc...)

// serving is what tests need that serve by themselves.
var serving = []string{"cmd/internal/mcpserver", "cmd/internal/mcpserver/engine", "cmd/internal/streamable", "cmd/internal/stdio", "cmd/internal/nodejs"}

// rules is the house.
var rules = map[string]rule{
	"core/fault":      {std: pure},
	"core/display":    {std: pure},
	"core/lazyregexp": {std: pure},
	"core/term":       {std: pure, ours: []string{"core/fault"}},
	"core/value":      {std: pure, ours: []string{"core/fault", "core/term"}},
	"core/json":       {std: pure, ours: []string{"core/value"}},
	// net/url splits, joins and encodes text; it opens nothing. What it knows of hosts, ports
	// and escapes is more than a second copy is worth.
	"core/prim": {
		std: pure, file: map[string][]string{"urls.go": {"net/url"}},
		ours: []string{"core/display", "core/fault", "core/json", "core/term", "core/value", "core/internal/long"},
	},
	// The eighty tasks, for the playground.
	"core/examples": {std: append([]string{"embed"}, pure...)},
	"core/prim/gen": {std: pure, ours: low, tests: true},
	"core/parse":    {std: pure, ours: low},
	"core/text":     {std: pure, ours: with("core/lazyregexp")},
	"core/code":     {std: pure, ours: low},
	"core/eval":     {std: memory, ours: with("core/parse", "core/text", "core/code"), unsafe: true},
	"core/naive":    {std: pure, ours: with("core/parse", "core/text", "core/code")},
	// A context ends following a run.
	"core/flow":        {std: pure, file: map[string][]string{"flow.go": {"context"}}, ours: with("core/parse", "core/text", "core/naive")},
	"core/flow/mutate": {std: anyStd, tests: true},
	"core/check":       {std: pure, ours: with("core/parse", "core/text", "core/code")},
	"core/check/cost":  {std: pure, ours: with("core/parse", "core/text")},
	// It runs programs to show that they differ.
	"core/check/normal": {std: pure, ours: with("core/parse", "core/text", "core/code", "core/eval")},
	"core/check/flows":  {std: pure, ours: with("core/flow")},
	// The checker of certificates imports no inference, and what makes them both.
	"core/check/cert":  {std: pure, ours: with("core/text")},
	"core/check/issue": {std: pure, ours: with("core/text", "core/check", "core/check/cert")},
	// A context ends a walk through a run.
	"core/step": {std: append(append([]string{}, pure...), "context"), ours: with("core", "core/text")},
	// A context ends a run, and gives a program nothing.
	"core":                  {std: pure, file: map[string][]string{"core.go": {"context"}}, ours: []string{"core/..."}},
	"core/internal/long":    {std: pure},
	"core/internal/vectors": {std: anyStd, ours: []string{"core/..."}, tests: true},
	"core/must":             {std: anyStd, ours: []string{"core/fault"}, tests: true},
	"core/wait":             {std: anyStd, tests: true},

	"caps/statefile": {std: anyStd, ours: []string{"core/display", "core/fault"}},
	"caps/filename":  {std: pure, libraries: []string{"golang.org/x/text/cases", "golang.org/x/text/unicode/norm"}},
	"caps":           {std: anyStd, ours: []string{"core/...", "caps/filename", "caps/statefile"}},
	"caps/lease":     {std: []string{"time"}, libraries: []string{"golang.org/x/sys/unix"}},
	"caps/flow":      {std: anyStd, ours: []string{"core/...", "caps", "caps/statefile"}},
	"caps/registry":  {std: anyStd, ours: []string{"core/...", "caps", "caps/statefile"}, libraries: []string{"github.com/rogpeppe/go-internal/diff"}},
	// What a cluster needs of an engine, and its contract as tests.
	"caps/journal/order":           {std: append([]string{"context", "crypto/rand"}, pure...)},
	"caps/journal/order/ordertest": {std: anyStd, ours: []string{"caps/journal/order"}, tests: true},

	"caps/journal": {std: anyStd, ours: []string{"core/...", "caps", "caps/lease", "caps/statefile", "caps/journal/order"}, libraries: []string{"modernc.org/sqlite/...", "modernc.org/libc", "golang.org/x/sys/unix"}},
	"caps/run":     {std: anyStd, ours: []string{"core/...", "caps", "caps/flow", "caps/lease", "caps/registry", "caps/journal"}, libraries: []string{"golang.org/x/sync/semaphore"}},

	// What protoc-gen-go writes imports unsafe.
	"proto/...":          {std: anyStd, libraries: grpc, unsafe: true},
	"proto/internal/gen": {std: anyStd, libraries: []string{"github.com/bufbuild/protocompile/...", "google.golang.org/protobuf/..."}},

	"plugins/internal/wire": {std: anyStd, ours: []string{"core/...", "caps", "proto/..."}, libraries: grpc},
	// Landlock and seccomp read structures by their address.
	"plugins/internal/sandbox": {std: anyStd, libraries: []string{"golang.org/x/sys/unix", "golang.org/x/net/bpf"}, unsafe: true},
	"plugins/internal/dice":    {std: anyStd, ours: []string{"plugins/sdk"}}, // the example of plugins/README.md
	"plugins/sdk":              {std: anyStd, ours: []string{"core/...", "caps", "caps/lease", "proto/...", "plugins/internal/wire"}, libraries: grpc},
	"plugins/host":             {std: anyStd, ours: []string{"core/...", "caps/...", "proto/...", "plugins/internal/wire", "plugins/internal/sandbox", "plugins/internal/originproxy"}, libraries: hosting},
	"plugins/lock":             {std: anyStd, ours: []string{"core/check", "core/display", "core/lazyregexp", "caps", "caps/statefile", "plugins/internal/wire"}},
	"plugins/mcplock":          {std: anyStd, ours: []string{"core/check", "core/fault", "core/json", "core/lazyregexp", "core/text", "core/value", "caps", "caps/statefile", "plugins/lock"}},
	// The kit speaks the contract itself, so that it can say what no plugin would.
	"plugins/plugintest/conform": {
		std:  anyStd,
		ours: []string{"core/...", "caps", "proto/...", "plugins/sdk", "plugins/host", "plugins/internal/wire"}, libraries: grpc,
	},
	"plugins/plugintest/strangers": {std: anyStd, ours: []string{"proto/...", "plugins/sdk", "plugins/internal/wire"}, libraries: grpc, tests: true},
	"plugins/plugintest":           {std: anyStd, ours: []string{"core/...", "plugins/sdk", "plugins/plugintest/conform"}},
	// Tests alone; the examples are modules, and languages, of their own.
	"plugins/examples":             {std: anyStd, libraries: mcpSDK, tests: true},
	"plugins/fs":                   {std: anyStd, ours: []string{"caps/filename", "core/display", "core/value", "plugins/sdk"}, libraries: []string{"golang.org/x/sys/unix"}},
	"plugins/internal/jsonvalue":   {std: pure, ours: []string{"core/json", "core/value"}},
	"plugins/fetch":                {std: anyStd, ours: []string{"core/display", "core/value", "plugins/sdk", "plugins/internal/jsonvalue", "plugins/internal/address"}, libraries: []string{"golang.org/x/sync/semaphore", "golang.org/x/text/encoding/charmap"}},
	"plugins/internal/originproxy": {std: anyStd, ours: []string{"plugins/internal/address"}},
	"plugins/internal/address":     {std: anyStd, libraries: []string{"code.dny.dev/ssrf"}},
	"plugins/kv":                   {std: anyStd, ours: []string{"core/display", "core/value", "plugins/sdk"}, libraries: []string{"modernc.org/sqlite/..."}},
	"plugins/clock":                {std: anyStd, ours: []string{"plugins/sdk"}},
	"plugins/model":                {std: anyStd, ours: []string{"core/value", "caps", "plugins/sdk", "plugins/internal/jsonvalue"}},
	"plugins/env":                  {std: anyStd, ours: []string{"core/value", "plugins/sdk"}},
	"plugins/random":               {std: anyStd, ours: []string{"core/value", "plugins/sdk"}},
	// What a plugin starts is held closer than the plugin: by the sandbox's launcher again.
	"plugins/internal/keeper": {std: anyStd, ours: []string{"caps", "plugins/internal/sandbox"}, libraries: []string{"golang.org/x/sys/unix"}},
	"plugins/proc":            {std: anyStd, ours: []string{"core/display", "core/value", "plugins/sdk", "plugins/internal/keeper"}, libraries: []string{"golang.org/x/sys/unix"}},

	// The one client of the MCP SDK in what ships: it speaks with other servers.
	"plugins/mcp": {
		std:       anyStd,
		ours:      []string{"core/check", "core/display", "core/value", "caps", "plugins/sdk", "plugins/mcplock", "plugins/mcplogin", "plugins/internal/keeper", "plugins/internal/jsonvalue"},
		libraries: mcpSDK,
	},
	// Logins at MCP servers: OAuth by the SDK's own packages.
	"plugins/mcplogin": {
		std: anyStd, ours: []string{"caps/statefile", "plugins/internal/address"},
		libraries: append([]string{"golang.org/x/oauth2"}, mcpSDK...),
	},
	"plugins/mcp/mcpprobe": {std: anyStd, ours: []string{"core/value", "caps", "caps/run", "plugins/host", "plugins/mcp"}},
	"plugins/mcp/mcptest":  {std: anyStd, tests: true},

	// A cluster's order, in engines that exist.
	"cmd/internal/orders/postgres":        {std: anyStd, ours: []string{"caps/journal/order"}, libraries: []string{"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/pgconn"}},
	"cmd/internal/orders/remote":          {std: anyStd, ours: []string{"caps/journal/order", "proto/..."}, libraries: []string{"google.golang.org/grpc/..."}},
	"cmd/internal/orders/postgres/pgtest": {std: anyStd, ours: []string{"core/wait"}, libraries: []string{"github.com/jackc/pgx/v5"}, tests: true},

	"cmd/internal/arch":           {std: anyStd},
	"cmd/internal/pinned":         {std: anyStd, ours: []string{"core/lazyregexp"}},
	"cmd/internal/pinned/npmtest": {std: anyStd, tests: true},
	"cmd/internal/stdio":          {std: anyStd, ours: []string{"core/display", "core/json"}, libraries: mcpSDK},
	// MCP over HTTP: who may come in, and how much at once.
	"cmd/internal/streamable": {
		std: anyStd, ours: []string{"cmd/internal/stdio"}, // what is a message
		libraries: append([]string{"github.com/go-jose/go-jose/v4/..."}, mcpSDK...),
	},
	// Metrics and traces of runs and effects.
	"cmd/internal/telemetry": {
		std: anyStd, ours: []string{"core/fault", "core/value", "caps", "caps/run"},
		libraries: []string{"go.opentelemetry.io/...", "github.com/prometheus/client_golang/...", "google.golang.org/protobuf/proto"},
	},
	"cmd/internal/mcpserver":         {std: anyStd, ours: []string{"core/...", "caps/...", "cmd/internal/mcpserver/..."}, libraries: mcpSDK},
	"cmd/internal/mcpserver/elicit":  {std: anyStd, ours: []string{"core/...", "caps/...", "cmd/internal/mcpserver/queue", "cmd/internal/mcpserver/wire"}, libraries: mcpSDK},
	"cmd/internal/mcpserver/engine":  {std: anyStd, ours: []string{"core/...", "caps/...", "cmd/internal/mcpserver/..."}, libraries: mcpSDK},
	"cmd/internal/mcpserver/facts":   {std: anyStd, ours: []string{"core/...", "caps/...", "cmd/internal/mcpserver/wire"}},
	"cmd/internal/mcpserver/help":    {std: anyStd, ours: []string{"core/...", "caps", "cmd/internal/mcpserver/wire"}},
	"cmd/internal/mcpserver/inputs":  {std: anyStd, ours: []string{"core/...", "caps", "caps/registry", "cmd/internal/mcpserver/wire"}},
	"cmd/internal/mcpserver/queue":   {std: anyStd, ours: []string{"core/fault"}},
	"cmd/internal/mcpserver/results": {std: anyStd, ours: []string{"core", "cmd/internal/mcpserver/wire"}},
	"cmd/internal/mcpserver/wire":    {std: anyStd, ours: []string{"core/...", "caps"}, libraries: mcpSDK},
	// The configuration files of MCP clients.
	"cmd/internal/clientconfig": {
		std: anyStd, ours: []string{"core/json", "caps/statefile"},
		libraries: []string{"github.com/tailscale/hujson", "github.com/pelletier/go-toml/v2", "go.yaml.in/yaml/v4"},
	},
	// What interpreters need to start.
	"cmd/internal/programs": {std: anyStd, ours: []string{"caps"}},
	// A page that computes in the browser, and the evaluator for it, which hands its memory over.
	"cmd/internal/playground":      {std: anyStd},
	"cmd/internal/playground/wasm": {std: anyStd, ours: []string{"core/...", "core/examples"}, libraries: []string{"github.com/rogpeppe/go-internal/txtar"}, unsafe: true},
	// Ready tools: code and data, no more.
	"cmd/internal/packs": {std: anyStd, ours: []string{"core/json", "core/prim", "caps", "caps/registry"}},
	// Tests alone: the conformance suite on our server, others' clients, the bundle.
	"cmd/internal/nodejs":      {std: anyStd, tests: true},
	"cmd/internal/conformance": {std: anyStd, ours: serving, libraries: mcpSDK, tests: true},
	"cmd/internal/clients":     {std: anyStd, ours: serving, libraries: mcpSDK, tests: true},
	"cmd/mcpb":                 {std: anyStd, ours: serving, libraries: mcpSDK, tests: true},
	// The page for people; its tests in a browser are a module of their own.
	"cmd/internal/ui":         {std: anyStd, ours: []string{"core/...", "caps/...", "plugins/mcplock", "cmd/internal/mcpserver/engine"}},
	"cmd/internal/ui/figures": {std: anyStd, ours: []string{"caps/...", "core", "core/step", "plugins/mcplock", "cmd/internal/mcpserver/engine", "cmd/internal/ui"}},
	// What commands have in common: printing, failures, tables.
	"cmd/internal/cli": {
		std: anyStd, ours: []string{"core", "core/fault", "core/prim"},
		libraries: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term", "charm.land/lipgloss/v2/...", "github.com/charmbracelet/x/ansi"},
	},
	// A server as one of a cluster.
	"cmd/internal/node": {std: anyStd, ours: []string{"caps/journal", "caps/journal/order", "caps/lease", "caps/statefile"}},
	// The tour is a client of this program.
	"cmd/internal/tour": {
		std: anyStd, ours: []string{"cmd/internal/cli", "plugins/host"}, libraries: append([]string{"github.com/spf13/cobra"}, mcpSDK...),
	},
	// What the operator grants, and where it is kept: it wires both sides of an interface.
	"cmd/internal/app": {
		std:       anyStd,
		ours:      []string{"core", "core/fault", "core/lazyregexp", "caps/...", "plugins/...", "cmd/internal/cli", "cmd/internal/mcpserver/...", "cmd/internal/node", "cmd/internal/packs", "cmd/internal/pinned", "cmd/internal/programs", "cmd/internal/telemetry"},
		libraries: []string{"github.com/spf13/cobra", "github.com/spf13/pflag"},
	},
	// The commands about plugins of others, and about other MCP servers.
	"cmd/internal/plugincmd": {
		std: anyStd, ours: []string{"core/lazyregexp", "caps", "plugins/host", "plugins/lock", "plugins/plugintest/conform", "cmd/internal/app", "cmd/internal/cli"},
		libraries: []string{"github.com/spf13/cobra"},
	},
	"cmd/internal/mcpcmd": {
		std: anyStd, ours: []string{"caps", "core/check", "core/lazyregexp", "plugins/...", "cmd/internal/app", "cmd/internal/cli", "cmd/internal/clientconfig", "cmd/internal/pinned", "cmd/internal/programs"},
		libraries: []string{"github.com/spf13/cobra", "github.com/rogpeppe/go-internal/diff"},
	},
	// The commands: flags and printing.
	// Attacks on a server, which it starts as anybody would.
	"cmd/internal/loadbench": {std: anyStd, ours: []string{"plugins/sdk"}}, // one of them is a plugin
	// Attacks on rules of flow: environments that are MCP servers, programs, policies and judges.
	"cmd/internal/dojo":      {std: anyStd, libraries: mcpSDK, tests: true},
	"cmd/internal/recording": {std: anyStd, libraries: []string{"github.com/charmbracelet/x/ansi"}},
	"cmd/mcp-pif": {
		std: anyStd, ours: []string{"core/...", "caps/...", "plugins/...", "cmd/internal/..."},
		libraries: append([]string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/google/pprof/profile", "github.com/rogpeppe/go-internal/diff", "golang.org/x/term", "charm.land/lipgloss/v2/...", "github.com/charmbracelet/x/ansi"}, mcpSDK...),
	},
}

// testLibraries is those that any test may import.
var testLibraries = []string{
	"github.com/google/go-cmp/...", "github.com/google/jsonschema-go/...", "github.com/rogpeppe/go-internal/...", "pgregory.net/rapid",
}

// top is what may stand at the top of the repository.
var top = []string{
	"cmd", "core", "caps", "plugins", "proto", "go.mod", "go.sum", "README.md", "LICENSE", ".ci", ".github", ".gitignore", ".git",
}
