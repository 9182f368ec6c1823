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

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/node"
)

// profilePath finds where a profile's file is.
func profilePath(profile string) (string, error) {
	o := app.StoreOptions{Profile: profile}
	return o.Path("")
}

// profilePaths finds the files of all profiles there are.
func profilePaths() (paths []string, err error) {
	folders, err := app.Profiles()
	for _, folder := range folders {
		path, err := app.FolderPath(folder)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, err
}

// ended refuses where the node of this machine runs.
func ended(config statefile.Cluster) error {
	if config.Socket != "" && config.Runs() {
		return fmt.Errorf("the node %q runs on this machine: end it first", config.Node)
	}
	return nil
}

// asNode does something as the node of this machine.
func asNode(ctx context.Context, at order.Order, config statefile.Cluster, log *slog.Logger, do func(*node.Node) error) error {
	dir, err := app.StateDir()
	if err != nil {
		return err
	}
	n, err := node.Open(ctx, node.Options{Order: at, Name: config.Node, Dir: dir, Log: log, Config: config, Paths: profilePaths, Path: profilePath})
	if err != nil {
		return err
	}
	return errors.Join(do(n), n.Close())
}

// copiesFolder makes a folder for copies beside the files that they may replace.
func copiesFolder(dir string) (folder string, end func() error, err error) {
	if err = os.MkdirAll(dir, 0o700); err == nil {
		folder, err = os.MkdirTemp(dir, "copies-")
	}
	return folder, func() error { return os.RemoveAll(folder) }, err
}

// copyFiles gets the files of a node that runs; of the first node there are none.
func copyFiles(ctx context.Context, at order.Order, dir, name, from string, first bool) (c node.Copies, end func() error, err error) {
	if first {
		return c, func() error { return nil }, node.ErrNobody
	}
	folder, end, err := copiesFolder(dir)
	if err == nil {
		c, err = node.Copy(ctx, at, name, from, folder)
	}
	return c, end, err
}

// copiedNodes are those that the copies tell of.
func copiedNodes(c node.Copies) (map[string]bool, error) {
	names := map[string]bool{}
	for _, path := range c.Files {
		m, err := journal.Member(path)
		if err != nil {
			return nil, err
		}
		for _, name := range m.Nodes {
			names[name] = true
		}
	}
	return names, nil
}

// lookAlone finds the nodes of a cluster of which none runs.
func lookAlone(ctx context.Context, at order.Order, target, name string, first bool) (nodes, begun map[string]bool, err error) {
	limit, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := new(journal.Membership).Follows(limit, at); errors.Is(err, order.ErrTrimmed) && first {
		return nil, nil, fmt.Errorf("a cluster is at %s already: join it", node.PrintedOrder(target))
	} else if errors.Is(err, order.ErrTrimmed) {
		return nil, nil, node.ErrNobody
	}
	return node.Nodes(ctx, at, name, first)
}

// takeCopies makes copies the files of a machine that has none that they lack anything of, and it the node of a config: all
// of it, or none where it is refused or fails.
func takeCopies(ctx context.Context, dir string, c node.Copies, config statefile.Cluster) (err error) {
	paths := map[string]string{}
	for profile := range c.Files {
		path, err := fileOf(profile)
		if err != nil {
			return err
		}
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("this machine has a profile %q of its own, which the cluster has, too: move the folder %s away", profile, filepath.Dir(path))
		}
		paths[profile] = path
	}
	var made []string
	defer func() {
		if err == nil {
			return
		}
		for _, path := range append(made, filepath.Join(dir, "cluster")) {
			err = errors.Join(err, os.RemoveAll(path))
		}
		for _, path := range paths {
			_ = os.Remove(filepath.Dir(path)) // if nothing else is in it
		}
	}()
	for _, profile := range slices.Sorted(maps.Keys(paths)) {
		path := paths[profile]
		made = append(made, path)
		if _, err := os.Lstat(path + ".key"); errors.Is(err, fs.ErrNotExist) {
			made = append(made, path+".key")
		}
		if _, err := node.Install(path, c.Files[profile], nil); err != nil {
			return err
		}
	}
	if len(paths) > 0 {
		if err := node.Copied(dir); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return statefile.WriteCluster(dir, config)
}

// fileOf finds the file of a profile of a cluster, of its authority too.
func fileOf(profile string) (string, error) {
	if profile != node.AuthorityProfile {
		return profilePath(profile)
	}
	dir, err := app.StateDir()
	return node.Authority(dir), err
}

// clusterFiles finds the files of this machine that are a cluster's, by profile.
func clusterFiles(dir string) (map[string]string, error) {
	paths, err := profilePaths()
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, path := range append(paths, node.Authority(dir)) {
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		switch m, err := journal.Member(path); {
		case m != nil:
			files[m.Profile] = path
		case err != nil && path == node.Authority(dir):
			files[node.AuthorityProfile] = path
		case err != nil:
			files[filepath.Base(filepath.Dir(path))] = path // damaged
		}
	}
	return files, nil
}

func newClusterRepair() *cobra.Command {
	var from string
	var without []string
	cmd := &cobra.Command{
		Use:   "repair [ORDER]",
		Short: "Give this node again what the cluster has, or the cluster an order in place of one that is lost",
		Long: `Check the files of this machine and replace those that are damaged, that have something
else than the cluster, or that the cluster's order has gone on without, by copies of
another node's. What is replaced stays beside, and what only it had is listed. The server
of this machine must have ended; another node's must run.

Where the order itself is lost, each machine's server is ended and this runs on all of
them: the cluster goes on in ORDER, an empty one (by default where it was, if that is
empty now), with the longest file of each profile that is whole. It waits until every
member has shown its files, but for those that --without names.`,
		Example: "  mcp-pif cluster repair\n  mcp-pif cluster repair --without n3 postgres://pif@db/pif2",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.Failed(repairCluster(cmd, append(args, "")[0], from, without))
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "take the copies of this `NODE` (by default any that runs)")
	cmd.Flags().StringSliceVar(&without, "without", nil, "begin anew without the files of these `NODES`, which are gone")
	return cmd
}

func repairCluster(cmd *cobra.Command, target, from string, without []string) (err error) {
	dir, config, err := clusterOf()
	if err == nil && config.Order == devOrder {
		return errors.New("the order of --cluster=dev is in its server's memory, and no other node has a copy to repair it from")
	}
	if err != nil || config.Order == "" {
		return cmp.Or(err, errNoCluster)
	}
	if err := ended(config); err != nil {
		return err
	}
	if moves := target != "" && target != config.Order; !moves {
		target = config.Order
	}
	ctx := cli.Context(cmd)
	at, err := openOrder(ctx, target, app.Warnings(cmd))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	files, err := clusterFiles(dir)
	if err != nil {
		return err
	}
	r := repairing{cmd: cmd, at: at, files: files, name: config.Node}
	lost, err := r.lost(ctx)
	if err != nil {
		return err
	}
	copies, end, err := copyFiles(ctx, at, dir, config.Node, from, false)
	defer func() { err = errors.Join(err, end()) }()
	switch {
	case err == nil:
		if err = r.take(ctx, copies, nil); err == nil {
			err = node.Copied(dir)
		}
	case errors.Is(err, node.ErrNobody) && lost:
		err = r.begin(ctx, dir, without)
	case errors.Is(err, node.ErrNobody) && r.others:
		err = errHalfway
	}
	if err != nil {
		return err
	}
	config.Order, config.Socket = target, ""
	if err := statefile.WriteCluster(dir, config); err != nil {
		return err
	}
	if err := asNode(ctx, at, config, app.Warnings(cmd), func(n *node.Node) error { return n.Report(ctx, false) }); err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), "start it with: mcp-pif serve --http ADDRESS --cluster")
	return nil
}

// A repairing is one run of the command.
type repairing struct {
	cmd   *cobra.Command
	at    order.Order
	files map[string]string
	name  string
	// others is set where a file that is whole followed another order.
	others bool
}

// errHalfway is why a repair that was stopped can't go on in the order that it began in.
var errHalfway = errors.New("some files of this machine are in this order and others in the one before, as a repair that was stopped leaves them, and no other node runs: start one that can be, or give another empty ORDER to 'mcp-pif cluster repair ORDER' on each machine")

func (r *repairing) print(format string, args ...any) {
	fmt.Fprintf(r.cmd.OutOrStdout(), format+"\n", args...)
}

// follows returns what a file knows of its cluster, nil where it didn't follow this order, and why it can't go on in it.
func (r *repairing) follows(ctx context.Context, path string) (*journal.Membership, error) {
	identity, err := r.at.Identity(ctx)
	if err != nil {
		return nil, err
	}
	m, unread := journal.Member(path)
	if unread != nil || m == nil || m.Identity != identity {
		r.others = r.others || m != nil && m.Identity != ""
		return nil, nil
	}
	return m, m.Follows(ctx, r.at)
}

// lost reports whether the order isn't the one that the files followed. It refuses one that
// is, and has lost something.
func (r *repairing) lost(ctx context.Context) (bool, error) {
	followed := false
	for _, profile := range slices.Sorted(maps.Keys(r.files)) {
		m, err := r.follows(ctx, r.files[profile])
		if errors.Is(err, order.ErrEnds) {
			return false, fmt.Errorf("the order ends before the place %d that the profile %s has, or has something else there: it has lost proposals, so the cluster needs another one: end all servers, make an empty order, and give it to 'mcp-pif cluster repair ORDER' on each machine", m.Place, profile)
		} else if err != nil && !errors.Is(err, order.ErrTrimmed) {
			return false, err
		}
		followed = followed || m != nil
	}
	return !followed, nil
}

// take makes the files what copies are; those that only are behind stay.
func (r *repairing) take(ctx context.Context, c node.Copies, begins *journal.Beginning) error {
	for _, profile := range slices.Sorted(maps.Keys(c.Files)) {
		path := r.files[profile]
		if path == "" {
			var err error
			if path, err = fileOf(profile); err != nil {
				return err
			}
		}
		d, err := journal.Compare(ctx, path, c.Files[profile])
		if err != nil {
			return err
		}
		ours, theirs := d.Common+uint64(len(d.Extra)), d.Theirs
		if d.Damage == nil && d.Common == 0 && ours > 0 && theirs > 0 {
			return fmt.Errorf("the profile %s has no event that the node %s has: that is another cluster", profile, c.From)
		}
		if d.Damage == nil && len(d.Extra) == 0 && begins == nil {
			if m, behind := r.follows(ctx, path); m != nil && behind == nil {
				r.print("%s: whole, as the node %s has it up to event %d", profile, c.From, max(d.Common, min(ours, theirs)))
				continue
			}
		}
		isNew := errors.Is(d.Damage, os.ErrNotExist)
		switch { // said before, since nothing tells it afterwards
		case d.Damage != nil && !isNew:
			r.print("%s: was damaged: %s", profile, cli.Printable(d.Damage.Error()))
		case len(d.Extra) > 0:
			r.print("%s: had something else after event %d; the cluster doesn't have:", profile, d.Common)
			for i := range d.Extra {
				e := &d.Extra[i]
				r.print("  event %d of %s: %s %s", e.Seq, e.Time.Format(time.DateTime), e.Kind, cli.Printable(e.Tool()))
			}
		}
		before, err := node.Install(path, c.Files[profile], begins)
		if err != nil {
			return err
		}
		if isNew {
			r.print("%s: copied from the node %s, %d events", profile, c.From, theirs)
			continue
		}
		r.print("%s: is the node %s's up to event %d; what it was is in %s", profile, c.From, theirs, before)
	}
	return nil
}

// begin begins the cluster anew in an order that is empty.
func (r *repairing) begin(ctx context.Context, dir string, without []string) (err error) {
	folder, end, err := copiesFolder(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	said := ""
	re, err := node.Begin(ctx, r.at, r.name, r.files, without, folder, func(missing []string) {
		if names := strings.Join(missing, ", "); names != said {
			said = names
			r.print("the order is another one now; waiting for what %s has: run 'mcp-pif cluster repair' there, or say --without", names)
		}
	})
	if err != nil {
		return err
	}
	for _, profile := range re.Damaged {
		r.print("%s: no node has a file of it that is whole; restore a copy before you start the servers", profile)
	}
	for profile, giver := range re.From {
		if giver == r.name {
			if err := journal.Adopt(r.files[profile], &re.Begins); err != nil {
				return err
			}
			r.print("%s: this node's is the longest that is whole, and the cluster's now", profile)
			continue
		}
		if err := r.take(ctx, node.Copies{From: giver, Files: map[string]string{profile: re.Copies[profile]}}, &re.Begins); err != nil {
			return err
		}
	}
	for _, name := range without {
		r.print("what only the node %s had can't be shown kept", name)
	}
	return nil
}
