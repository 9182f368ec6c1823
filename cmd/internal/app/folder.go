package app

import (
	"errors"
	"path/filepath"
	"slices"
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
	path, err := AbsolutePath(dir)
	if err != nil {
		return err
	}
	*f = append(*f, caps.Capability{Kind: "fs", Scope: filepath.ToSlash(path)}.String())
	return nil
}

// settings is the hidden flag --setting NAME=VALUE: what somebody chose in a form of a
// client's, such as that of the bundle. Forms have one text for a list, and leave what
// isn't chosen empty or as the name of the setting.
type settings struct{ to *CapOptions }

func (s settings) Type() string { return "setting" }

func (s settings) String() string { return "" }

// Set takes one setting.
func (s settings) Set(text string) error {
	name, value, _ := strings.Cut(text, "=")
	value = strings.TrimSpace(value)
	chosen := value != "" && !strings.HasPrefix(value, "${user_config.")
	list := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
	switch {
	case name == "folder" && chosen:
		return s.to.Folders.Set(value)
	case name == "memory" && chosen && value != "false":
		s.to.Grants = append(s.to.Grants, "kv:memory/**")
	case name == "origins" && chosen:
		for _, origin := range list {
			if !strings.Contains(origin, "://") {
				origin = "https://" + origin
			}
			s.to.Grants = append(s.to.Grants, caps.Capability{Kind: "fetch", Scope: strings.TrimSuffix(origin, "/")}.String())
		}
	case name == "programs" && chosen:
		s.to.processes = append(s.to.processes, list...)
	case !slices.Contains([]string{"folder", "memory", "origins", "programs"}, name):
		return errors.New("it is folder, memory, origins or programs, and = with a value")
	}
	return nil
}
