package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

// retainOptions are the flags that say how much of the past is kept.
type retainOptions struct {
	size app.Size
	age  age
}

// registerServe adds the flags as a server has them.
func (o *retainOptions) registerServe(f *pflag.FlagSet) {
	o.size = 1 << 30
	f.Var(&o.size, "journal-max-size", "drop the oldest events when the journal's files are larger, which never are more than a quarter larger; 0: never")
	f.Var(&o.age, "journal-max-age", "drop events that are older, such as 30d; 0: never")
}

// check refuses a size that can't be kept to while the journal is written.
func (o *retainOptions) check() error {
	if o.size > 0 && o.size < journal.MinLimit {
		least := app.Size(journal.MinLimit)
		return fmt.Errorf("--journal-max-size must be at least %s, or 0", &least)
	}
	return nil
}

func (o *retainOptions) limits() journal.Limits {
	return journal.Limits{Size: int64(o.size), Age: time.Duration(o.age)}
}

// keepWithin has a journal that lasts kept within the limits, in the background,
// until ctx ends or it is closed.
func (o *retainOptions) keepWithin(ctx context.Context, j journal.Journal) {
	if s, ok := j.(*journal.Store); ok && o.limits() != (journal.Limits{}) {
		go s.KeepWithin(ctx, o.limits())
	}
}

func newJournalRetain() *cobra.Command {
	var (
		o      journalOptions
		limits retainOptions
		dry    bool
		asJSON *bool
	)
	cmd := &cobra.Command{
		Use:   "retain",
		Short: "Drop the oldest events, so that the rest can still be checked",
		Long: `Drop the oldest events until the file is no larger, and none is older, than the
flags say. A checkpoint signed with the store's key takes their place: journal
verify goes on from there, and says that it can't tell what was before.

The tools stay, with their whole history, however old. Where that history takes
more than half of --max-size, old versions go that no tool needs. A run of which a
part was dropped can't be replayed. Servers do the same by themselves: see
--journal-max-size and --journal-max-age of mcp-pif serve.`,
		Example: `  mcp-pif journal retain --store pif.db --max-size 500MB --dry-run
  mcp-pif journal retain --store pif.db --max-size 500MB --max-age 30d`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limits == (retainOptions{}) {
				return errors.New("how much is to stay? Give --max-size SIZE, --max-age AGE, or both")
			}
			return cli.Failed(retainJournal(cmd, &o, limits.limits(), dry, *asJSON))
		},
	}
	o.register(cmd, false)
	asJSON = cli.JSONFlag(cmd)
	f := cmd.Flags()
	f.Var(&limits.size, "max-size", "drop the oldest events until the file is no larger, such as 500MB")
	f.Var(&limits.age, "max-age", "drop events that are older, such as 30d or 12h")
	f.BoolVar(&dry, "dry-run", false, "drop nothing, say what would be")
	return cmd
}

func retainJournal(cmd *cobra.Command, o *journalOptions, l journal.Limits, dry, asJSON bool) error {
	s, err := o.open() // to read: where there is no store, none is made
	if err != nil {
		return err
	}
	path := s.Path()
	if !dry {
		if err := s.Close(); err != nil {
			return err
		}
		if s, err = journal.Open(path, journal.Options{Log: app.Warnings(cmd), Notes: app.Heads()}); err != nil {
			return err
		}
	}
	done, err := s.Trim(cli.Context(cmd), l, dry)
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	if asJSON {
		return cli.PrintJSON(cmd, done)
	}
	verb := "dropped"
	if dry {
		verb = "would be dropped"
	}
	out := cmd.OutOrStdout()
	switch {
	case done.Dropped == 0 && done.Blobs == 0:
		fmt.Fprintln(out, "nothing to drop")
		return nil
	case done.Dropped > 0:
		fmt.Fprintf(out, "%d events up to %d, about %s, %s\n", done.Dropped, done.Through, roughly(done.Bytes), verb)
		if done.Kept > 0 {
			fmt.Fprintf(out, "%d events among them stay, which made the tools\n", done.Kept)
		}
	}
	if done.Blobs > 0 {
		fmt.Fprintf(out, "%d large values that nothing refers to %s\n", done.Blobs, verb)
	}
	return nil
}

// roughly is a size for people.
func roughly(n int64) string {
	for _, u := range app.Units[:3] {
		if f := float64(n) / float64(u.Bytes); f >= 1 {
			return strconv.FormatFloat(f, 'f', 1, 64) + " " + u.Name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// age is a duration that can be written in days and weeks.
type age time.Duration

// days is how long those are that time.Duration doesn't know.
var days = []struct {
	name string
	long time.Duration
}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}}

func (a *age) Type() string { return "age" }

func (a *age) String() string {
	for _, d := range days {
		if *a != 0 && time.Duration(*a)%d.long == 0 {
			return strconv.FormatInt(int64(time.Duration(*a)/d.long), 10) + d.name
		}
	}
	if *a == 0 {
		return "0"
	}
	return time.Duration(*a).String()
}

func (a *age) Set(text string) error {
	wrong := fmt.Errorf("an age is a number of days, weeks or hours such as 30d, 8w or 12h")
	for _, d := range days {
		if number, ok := strings.CutSuffix(text, d.name); ok {
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil || n < 0 || n > (1<<62)/int64(d.long) {
				return wrong
			}
			*a = age(time.Duration(n) * d.long)
			return nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return wrong
	}
	*a = age(d)
	return nil
}
