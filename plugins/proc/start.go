package proc

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/internal/keeper"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

type startArgs struct {
	Name *string `pif:"name,main,designates" doc:"the program; the capability's if left out"`
}

// start makes a session. What it is of is the operator's alone to say.
func start(ctx context.Context, c *capability, a startArgs) (string, error) {
	switch {
	case a.Name != nil && *a.Name != c.name:
		return "", sdk.Fail("denied", "the capability is for %s alone", strconv.Quote(c.name))
	case c.command == nil:
		return "", sdk.Fail("not_found", "the operator mapped %s to no command", strconv.Quote(c.name)).WithHint("Tell the user.")
	}
	s := &session{
		grant: c.name, begun: time.Now(), most: c.command,
		sends: make(chan struct{}, 1), done: make(chan struct{}), changed: make(chan struct{}),
	}
	for i := range s.streams {
		s.streams[i].most = int(c.command.Buffer)
	}
	if err := c.admit(s); err != nil {
		return "", err
	}
	first, err := s.begin()
	if err != nil {
		c.all.forget(s)
		return "", refused(c, err)
	}
	s.limit()
	var n keeper.News
	select {
	case n = <-first:
	case <-ctx.Done():
		s.end("stopped")
		return "", ctx.Err()
	}
	if !n.Started {
		s.end("stopped")
		c.all.forget(s)
		return "", refused(c, fmt.Errorf("%s", n.Error))
	}
	return s.id, nil
}

// refused is the failure of a start. What exactly is the operator's to know: it
// names paths.
func refused(c *capability, err error) error {
	fmt.Fprintf(os.Stderr, "%s doesn't start: %v\n", c.name, err)
	return sdk.Fail("failed", "%s can't be started", strconv.Quote(c.name)).WithHint("Tell the user: the server's log says why.")
}
