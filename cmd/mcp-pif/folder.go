package main

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
)

// folders is the flag --folder: a folder as the system writes it, which becomes
// the grant fs:FOLDER. Clients that let people choose a folder can't encode it as a
// capability's scope.
type folders []string

func (f *folders) Type() string { return "folder" }

func (f *folders) String() string { return strings.Join(*f, " ") }

// Set takes one folder. A client leaves what the user hasn't chosen as the name
// of the setting: that is no folder.
func (f *folders) Set(dir string) error {
	if strings.HasPrefix(dir, "${user_config.") {
		return nil
	}
	if dir == "" {
		return errors.New("it is empty")
	}
	path, err := absolutePath(dir)
	if err != nil {
		return err
	}
	*f = append(*f, caps.Capability{Kind: "fs", Scope: filepath.ToSlash(path)}.String())
	return nil
}
