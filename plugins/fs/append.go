package fs

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

type appendArgs struct {
	Path     string `pif:"path,designates" doc:"the file, relative to the capability's root; its directory must be there"`
	Content  string `pif:"content" doc:"what to add at its end"`
	Encoding string `pif:"encoding,optional,enum=utf8|base64" doc:"how the content stands for bytes; utf8 if left out"`
	Create   string `pif:"create,optional,enum=always|never|only" doc:"never: the file must be there; only: it must not; always if left out"`
}

// appendTo gives the bytes and hash of what was added.
func appendTo(ctx context.Context, s *scope, a appendArgs) (written, error) {
	return s.change(ctx, "append", a.Path, a.Content, a.Encoding, func(c *call, p *place, content []byte) error {
		f, isNew, err := c.openToAppend(p, a.Create)
		if err != nil {
			return err
		}
		defer f.Close()
		// One call of the system, so that appends at the same time don't mix.
		n, err := f.Write(content)
		if err == nil {
			err = f.Sync()
		}
		if err == nil && isNew {
			err = p.dir.sync()
		}
		if err != nil && n > 0 {
			why, _ := errors.AsType[sdk.Failure](because(a.Path, err))
			return sdk.Fail("failed", "%s; %d of %d bytes were added", why.Message, n, len(content))
		}
		return err
	})
}

// openToAppend opens what is there, or makes it.
func (c *call) openToAppend(p *place, create string) (f *os.File, isNew bool, err error) {
	// Again where it came or went between the two looks.
	for range 10 {
		if create != "only" {
			opened, err := c.open(p, appending)
			if err == nil {
				return opened.File, false, nil
			}
			if !isAbsent(err) || create == "never" {
				return nil, false, err
			}
		}
		f, err = p.dir.create(p.name, newFile)
		if err == nil || !errors.Is(err, iofs.ErrExist) || create == "only" {
			return f, true, err
		}
	}
	return nil, false, err
}
