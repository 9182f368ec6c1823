package fs

import (
	"context"
	"time"
)

type statArgs struct {
	Path string `pif:"path,main,designates" doc:"what to look at, relative to the capability's root"`
}

type status struct {
	Kind     string `pif:"kind" doc:"file, directory, link or other"`
	Size     int64  `pif:"size" doc:"bytes of a file, else 0"`
	Modified string `pif:"modified" doc:"UTC, like 2026-01-31T12:00:00Z"`
}

func stat(ctx context.Context, s *scope, a statArgs) (status, error) {
	c, err := s.begin(ctx, "stat", a.Path)
	if err != nil {
		return status{}, err
	}
	defer c.end()
	p, err := c.find(a.Path, false)
	if err != nil {
		return status{}, err
	}
	defer p.release()
	i, err := c.lstat(p)
	if err != nil {
		return status{}, because(a.Path, err)
	}
	return status{i.kind(), i.length(), i.modified.UTC().Format(time.RFC3339)}, nil
}
