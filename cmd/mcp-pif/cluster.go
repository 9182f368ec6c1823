package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/node"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/postgres"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/remote"
)

// clusterOptions are the flags of serve about its cluster.
type clusterOptions struct {
	order, node, reads string
	keep               time.Duration
}

// What --cluster can say besides where an order is.
const (
	devOrder   = "dev"    // an order in memory
	knownOrder = "joined" // that of 'mcp-pif cluster join'
)

func (o *clusterOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.order, "cluster", "", "be a node of the cluster with this `ORDER`: postgres://USER@HOST/DATABASE, order://HOST:PORT,… of mcp-pif-order, or dev for one in memory; alone, of the cluster that was joined")
	f.Lookup("cluster").NoOptDefVal = knownOrder
	f.StringVar(&o.node, "cluster-node", "", "this node's `NAME` in the cluster, used by no other, ever (by default the one it joined as, or the machine's)")
	f.DurationVar(&o.keep, "cluster-keep", time.Hour, "drop what all nodes have from the cluster's order each `TIME`")
	f.StringVar(&o.reads, "cluster-reads", "latest", "`WHICH` tools a request sees: latest, all that any node acknowledged before; local, what this node has, usually the same")
}

// checkCluster refuses flags that don't go together.
func (o *serveOptions) checkCluster() error {
	switch {
	case o.order == "" && (o.node != "" || o.reads != "latest" || o.keep != time.Hour):
		return errors.New("--cluster-node, --cluster-reads and --cluster-keep go with --cluster ORDER")
	case o.keep <= 0:
		return fmt.Errorf("--cluster-keep is more than 0, not %v", o.keep)
	case o.order != "" && o.address == "":
		return errors.New("--cluster goes with --http ADDRESS: a node serves over HTTP")
	case o.order != "" && o.Store == app.InMemory:
		return errors.New("--cluster keeps tools in a file: leave out --store memory")
	case o.reads != "latest" && o.reads != "local":
		return fmt.Errorf("--cluster-reads is latest or local, not %q", o.reads)
	}
	return nil
}

var errNoCluster = errors.New("this machine is in no cluster")

// noCluster is the error of a machine that knows of no order: it may have the files of one that ended with its process.
func noCluster() error {
	folders, err := app.Profiles()
	for _, folder := range folders {
		path, wrong := app.FolderPath(folder)
		if wrong != nil {
			continue
		}
		if m, wrong := journal.Member(path); wrong == nil && m != nil {
			return errors.New("the server of --cluster=dev has ended, and this machine's files are still of its cluster: 'mcp-pif cluster leave' makes them a single server's again")
		}
	}
	return cmp.Or(err, errNoCluster)
}

// clusterOf reads what this machine knows of its cluster, which has no order where it is in none.
func clusterOf() (dir string, config statefile.Cluster, err error) {
	if dir, err = app.StateDir(); err != nil {
		return dir, config, err
	}
	if config, err = statefile.ReadCluster(dir); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return dir, config, err
}

// openOrder opens the order of a cluster.
func openOrder(ctx context.Context, target string, log *slog.Logger) (order.Order, error) {
	switch scheme, _, _ := strings.Cut(target, "://"); {
	case target == devOrder:
		return order.NewMemory(order.MemoryOptions{}).Open(), nil
	case scheme == "postgres" || scheme == "postgresql":
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		o, err := postgres.Open(ctx, target, log)
		if err != nil {
			return nil, fmt.Errorf("the order at %s: %w", node.PrintedOrder(target), err)
		}
		return o, nil
	}
	return remote.OpenTarget(target, log)
}

// nodeName is the name of a node that was given none.
func nodeName() (string, error) {
	host, err := os.Hostname()
	return app.FolderName(strings.ToLower(host)), err
}

// nameNode finds out which node the server is, where the flags say that it is one.
func (o *serveOptions) nameNode() error {
	if o.order == "" {
		return nil
	}
	_, config, err := clusterOf()
	if err != nil {
		return err
	}
	if o.order == devOrder && config.Order != "" && config.Order != devOrder {
		return fmt.Errorf("this machine is the node %q of the cluster at %s, which --cluster=dev would take it out of: give this server another place with XDG_STATE_HOME, or 'mcp-pif cluster leave' first", config.Node, node.PrintedOrder(config.Order))
	}
	if o.order == knownOrder {
		if config.Order == "" {
			return errors.New("this machine has joined no cluster: say --cluster=ORDER, or run 'mcp-pif cluster join'")
		}
		o.order = config.Order
	}
	if o.node == "" && config.Order == o.order {
		o.node = config.Node
	}
	if o.node == "" {
		if o.node, err = nodeName(); err != nil {
			return err
		}
	}
	if !app.SafeName.MatchString(o.node) {
		return fmt.Errorf("--cluster-node is a name of lower-case letters, digits, _, - and ., not %q", o.node)
	}
	if o.order != devOrder {
		o.NodeName = o.node
	}
	return nil
}

// openNode makes the server a node, where the flags say so.
func (o *serveOptions) openNode(ctx context.Context, auth *app.Authority, log *slog.Logger) (end func(), err error) {
	if o.order == "" {
		return func() {}, nil
	}
	dir, config, err := clusterOf()
	if err != nil {
		return nil, err
	}
	if config.Socket != "" && config.Runs() {
		return nil, fmt.Errorf("the node %q runs on this machine with the same state already: end it, or give this one another place with XDG_STATE_HOME", config.Node)
	}
	at, err := openOrder(ctx, o.order, log)
	if err != nil {
		return nil, err
	}
	n, err := node.Open(ctx, node.Options{
		Order: at, Name: o.node, Dir: dir, Log: log, Applied: auth.ApplyDecisions, Own: o.order == devOrder,
		Config: statefile.Cluster{Order: o.order}, Keep: o.keep, Given: auth.Given(), Paths: profilePaths, Path: profilePath,
	})
	if err != nil {
		return nil, errors.Join(err, at.Close())
	}
	auth.Node = n
	if err := auth.Telemetry.Acts(n.CanAct); err != nil {
		log.Warn("whether the node may act isn't measured", "error", err)
	}
	log.Info("a node of a cluster", "node", o.node, "order", node.PrintedOrder(o.order))
	return func() {
		if err := errors.Join(n.Close(), at.Close()); err != nil {
			log.Error("the node was not closed", "error", err)
		}
	}, nil
}

// note is what /readyz says besides.
func (w *web) note() string {
	if w.auth.Node != nil && w.auth.Node.Unlike() != nil {
		return "ok, but performs no effects: it has other " + strings.Join(w.auth.Node.Unlike(), " and ") + " than the cluster"
	}
	return ""
}

// ready is why the server should get no requests; nil: it always may.
func (w *web) ready() func() error {
	if w.auth.Node == nil {
		return nil
	}
	return w.auth.Node.Ready
}

// barrierTimeout is how long a request waits for what other nodes acknowledged.
const barrierTimeout = 15 * time.Second

// barrier is what a request of a principal waits for.
func (w *web) barrier(auth *app.Authority) func(context.Context) error {
	s, latest := auth.Journal.(interface{ Barrier(context.Context) error })
	latest = latest && w.o.reads != "local"
	if auth.Node == nil || !latest && auth.Flow == nil {
		return nil
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, barrierTimeout)
		defer cancel()
		if auth.Flow != nil { // what the model was shown counts for what it asks for
			if err := auth.Node.Fresh(ctx); err != nil {
				return err
			}
		}
		if latest {
			return s.Barrier(ctx)
		}
		return nil
	}
}

func newCluster() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Make several servers one: join, look at, repair, leave a cluster",
		Long: `Several servers, on one machine or more, with one registry, one journal, one set of
approvals and revocations. They agree by an order of what each proposes, which an
engine keeps: a Postgres that you have, or the processes of mcp-pif-order.

Each node has all in its own files, as a server alone has. Start it with
'mcp-pif serve --http ADDRESS --cluster', after it has joined.`,
	}
	cmd.AddCommand(newClusterJoin(true), newClusterJoin(false), newClusterStatus(), newClusterRepair(), newClusterLeave())
	return cmd
}

func newClusterJoin(first bool) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:     "join ORDER",
		Short:   "Make this machine a node of a cluster that there is",
		Long:    "Make this machine a node of the cluster whose order is at ORDER. Its name must never\nhave been another node's. Servers are started afterwards, with serve --cluster.",
		Example: "  mcp-pif cluster join --name n2 postgres://pif@db/pif",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.Failed(joinCluster(cmd, args[0], name, first))
		},
	}
	if first {
		cmd.Use, cmd.Short = "init ORDER", "Make this machine the first node of a new cluster"
		cmd.Long = "Make this machine the first node of a cluster whose order is at ORDER, where nothing\nis yet. The tools and the journal that it has are the cluster's then; other nodes\nwith such files of their own are refused."
		cmd.Example = "  mcp-pif cluster init --name n1 postgres://pif@db/pif"
	}
	cmd.Flags().StringVar(&name, "name", "", "the node's `NAME` (by default the machine's)")
	return cmd
}

func joinCluster(cmd *cobra.Command, target, name string, first bool) (err error) {
	dir, config, err := clusterOf()
	if err != nil {
		return err
	}
	if config.Order != "" {
		return fmt.Errorf("this machine is the node %q of the cluster at %s: 'mcp-pif cluster leave' first", config.Node, node.PrintedOrder(config.Order))
	}
	if _, err := os.Stat(filepath.Join(dir, "cluster")); err == nil {
		return errors.New("the files of this machine are of a cluster that it has been in: 'mcp-pif cluster leave' first")
	}
	if target == devOrder {
		return errors.New("the order dev ends with its process: give it to serve --cluster=dev")
	}
	if name == "" {
		if name, err = nodeName(); err != nil {
			return err
		}
	}
	if !app.SafeName.MatchString(name) {
		return fmt.Errorf("--name is a name of lower-case letters, digits, _, - and ., not %q", name)
	}
	ctx := cli.Context(cmd)
	at, err := openOrder(ctx, target, app.Warnings(cmd))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	if !strings.HasPrefix(target, "postgres") { // which was asked already
		if err := remote.Reach(ctx, target); err != nil {
			return fmt.Errorf("the order at %s: %w", node.PrintedOrder(target), err)
		}
	}
	copies, end, err := copyFiles(ctx, at, dir, name, "", first)
	defer func() { err = errors.Join(err, end()) }()
	nodes, begun := map[string]bool{}, map[string]bool{}
	if errors.Is(err, node.ErrNobody) {
		nodes, begun, err = lookAlone(ctx, at, target, name, first)
	} else if err == nil {
		nodes, err = copiedNodes(copies)
	}
	if err != nil {
		return err
	}
	delete(begun, name)
	switch _, used := nodes[name]; {
	case first && len(nodes) > 0:
		return fmt.Errorf("a cluster is at %s already: join it", node.PrintedOrder(target))
	case !first && len(nodes) == 0:
		return fmt.Errorf("no cluster is at %s yet: 'mcp-pif cluster init' on the first machine and its first start make one", node.PrintedOrder(target))
	case first && len(begun) > 0:
		return fmt.Errorf("the cluster at %s is that of the node %s, which hasn't started yet: start it, then join; if it never will, give its name to init, or another empty ORDER", node.PrintedOrder(target), slices.Sorted(maps.Keys(begun))[0])
	case used:
		return fmt.Errorf("the name %q was used in this cluster: a name is used once", name)
	}
	config = statefile.Cluster{Order: target, Node: name}
	if err := takeCopies(ctx, dir, copies, config); err != nil {
		return err
	}
	if len(copies.Files) > 0 {
		if err := asNode(ctx, at, config, app.Warnings(cmd), func(n *node.Node) error { return n.Report(ctx, false) }); err != nil {
			return fmt.Errorf("this machine is the node %s, but the others may not know of it yet: start it with 'mcp-pif serve --http ADDRESS --cluster', which tells them, or take it out with 'mcp-pif cluster leave --offline': %w", name, err)
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "this machine is the node %s; start it with: mcp-pif serve --http ADDRESS --cluster\n", name)
	return nil
}

func newClusterStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what the node of this machine sees of its cluster",
		Long:  "Show the node that runs on this machine, the others as it sees them, and how far each\nprofile is. The exit status is 1 if the node may not act now.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, config, err := clusterOf()
			if err == nil && config.Order == "" {
				err = noCluster()
			}
			var st node.Status
			if err == nil {
				err = config.Ask(cli.Context(cmd), "status", nil, &st)
			}
			if err != nil {
				return cli.Failed(err)
			}
			if cli.AsJSON(cmd) {
				err = cli.PrintJSON(cmd, st)
			} else {
				printStatus(cmd, &st)
			}
			if err == nil && (!st.CanAct || st.Stopped != "") {
				return errRefused
			}
			return cli.Failed(err)
		},
	}
	cli.JSONFlag(cmd)
	return cmd
}

func printStatus(cmd *cobra.Command, st *node.Status) {
	out := cmd.OutOrStdout()
	says := "can act"
	switch {
	case st.Stopped != "":
		says = "not ready"
	case st.Unlike != nil:
		says = "performs no effects, since it has other " + strings.Join(st.Unlike, " and ") + " than the cluster"
	case !st.CanAct:
		says = "can't act now"
	}
	fmt.Fprintf(out, "node %s of the order %s at %s: %s\n", st.Node, st.Identity, st.Order, says)
	if st.Stopped != "" {
		fmt.Fprintln(out, cli.Printable(st.Stopped))
	}
	rows := [][]string{}
	for _, p := range st.Profiles {
		rows = append(rows, []string{p.Name, fmt.Sprint(p.Place), fmt.Sprint(p.Event), p.Hash.String()[:16]})
	}
	cli.PrintTable(out, []string{"PROFILE", "PLACE", "EVENT", "HASH"}, rows)
	rows = nil
	for _, p := range st.Nodes {
		state := "ok"
		if len(p.Unlike) > 0 {
			state = "has other " + strings.Join(p.Unlike, ", ")
		}
		switch {
		case p.Differs:
			state = "differs from this node"
		case time.Duration(p.Silent)*time.Millisecond > node.Lease:
			state = "silent for " + (time.Duration(p.Silent) * time.Millisecond).Round(time.Second).String()
		}
		rows = append(rows, []string{p.Name, fmt.Sprint(p.Place), state})
	}
	if len(rows) > 0 {
		cli.PrintTable(out, []string{"NODE", "PLACE", "STATE"}, rows)
	}
}

func newClusterLeave() *cobra.Command {
	offline := false
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "Take this machine out of its cluster: its files are a single server's again",
		Long:  "Take this machine and the files of its profiles out of the cluster, with all that it\ndecided until now. No server may use them meanwhile; the name can't be used in the\ncluster again.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Failed(leaveCluster(cmd, offline))
		},
	}
	cmd.Flags().BoolVar(&offline, "offline", false, "leave with this machine's state if the order can't be read")
	return cmd
}

// readOrder has the files of this machine have all that its cluster decided until now.
func readOrder(cmd *cobra.Command, config statefile.Cluster) (err error) {
	ctx, cancel := context.WithTimeout(cli.Context(cmd), 30*time.Second)
	defer cancel()
	at, err := openOrder(ctx, config.Order, app.Warnings(cmd))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	return asNode(ctx, at, config, app.Warnings(cmd), func(n *node.Node) error { return n.Report(ctx, true) })
}

func leaveCluster(cmd *cobra.Command, offline bool) error {
	dir, config, err := clusterOf()
	if err != nil {
		return err
	}
	if err := ended(config); err != nil {
		return err
	}
	folders, err := app.Profiles()
	if err != nil {
		return err
	}
	_, begun := os.Stat(filepath.Join(dir, "cluster"))
	knows := begun == nil && config.Order != "" && config.Order != devOrder
	if knows && !offline {
		if err := readOrder(cmd, config); err != nil {
			return fmt.Errorf("what the cluster decided can't be read, so this machine may lack revocations (--offline leaves anyway): %w", err)
		}
	}
	left := 0
	for _, folder := range folders {
		path, err := app.FolderPath(folder)
		was := false
		if err == nil {
			was, err = journal.Leave(path)
		}
		if err != nil {
			return err
		}
		if was {
			left++
		}
	}
	if left == 0 && begun != nil && config.Order == "" {
		return errNoCluster
	}
	if err := os.RemoveAll(filepath.Join(dir, "cluster")); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(dir, statefile.ClusterFile)); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "out of the cluster: %s\n", cli.Count(left, "profile", "profiles"))
	if begun == nil && config.Order != devOrder && (offline || !knows) {
		fmt.Fprintln(cmd.OutOrStdout(), "What the cluster decided after this node's end isn't here: compare 'mcp-pif caps revoked' with another node's before you start a server.")
	}
	return nil
}
