package caps

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// The bounds of a value, in bytes. What is shorter can't be told from other text
// where it comes back.
const (
	minSecret = 8
	maxSecret = 4096
)

// A Secret is a binding with its value. However it is printed, it shows its name.
type Secret struct {
	Binding
	// reveal is a function, since no printer and no encoder looks into one.
	reveal func() string
}

// NewSecret makes a secret of a value, which is printable ASCII of 8 to 4096 bytes
// without blanks at its ends. What is wrong with it is told without it.
func NewSecret(b Binding, v string) (*Secret, error) {
	switch {
	case len(v) < minSecret:
		return nil, fmt.Errorf("secret %s: its value has fewer than %d characters: so short a text can't be kept out of what comes back", quoted(b.Name), minSecret)
	case len(v) > maxSecret:
		return nil, fmt.Errorf("secret %s: its value has more than %d characters", quoted(b.Name), maxSecret)
	case strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }):
		return nil, fmt.Errorf("secret %s: its value must be printable ASCII on one line", quoted(b.Name))
	case strings.Trim(v, " ") != v:
		return nil, fmt.Errorf("secret %s: its value begins or ends with a space", quoted(b.Name))
	}
	return &Secret{Binding: b, reveal: func() string { return v }}, nil
}

// Value is the secret itself, for whoever sends it.
func (s *Secret) Value() string { return s.reveal() }

// String is the mark that stands for the secret: [secret NAME].
func (s *Secret) String() string { return secretMark(s.Name) }

// GoString is the mark.
func (s *Secret) GoString() string { return s.String() }

// Format prints the mark, whatever the verb.
func (s *Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// MarshalText gives the mark; JSON and logs ask for it.
func (s *Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func secretMark(name string) string { return "[secret " + name + "]" }

// Path is the absolute path of the secret's file, "" where it has none. dir is
// what a relative one is of; empty: the working directory.
func (b Binding) Path(dir string) (string, error) {
	if b.File == "" || filepath.IsAbs(b.File) {
		return b.File, nil
	}
	return filepath.Abs(filepath.Join(dir, b.File))
}

// Read reads the value, without one new line at its end. A file must be regular,
// no link, with no second name, this user's own (or the system's), and readable by
// nobody else.
func (b Binding) Read(dir string) (*Secret, error) {
	if b.Env != "" {
		v, ok := os.LookupEnv(b.Env)
		if !ok {
			return nil, fmt.Errorf("secret %s: the environment has no variable %s", quoted(b.Name), b.Env)
		}
		return NewSecret(b, trimLine(v))
	}
	path, err := b.Path(dir)
	if err != nil {
		return nil, err
	}
	v, err := statefile.ReadPrivate(path, maxSecret+3)
	if err != nil {
		return nil, fmt.Errorf("secret %s: %s: %w", quoted(b.Name), b.File, err)
	}
	return NewSecret(b, trimLine(string(v)))
}

func trimLine(s string) string {
	s = strings.TrimSuffix(s, "\n")
	return strings.TrimSuffix(s, "\r")
}

// ReadSecrets reads the values of bindings, and refuses two of one name. Nothing
// is read twice: a file that changes meanwhile is either read before or after.
func ReadSecrets(dir string, bindings []Binding) ([]*Secret, error) {
	var secrets []*Secret
	for _, b := range bindings {
		if slices.ContainsFunc(secrets, func(s *Secret) bool { return s.Name == b.Name }) {
			return nil, fmt.Errorf("duplicate secret %s", quoted(b.Name))
		}
		s, err := b.Read(dir)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, s)
	}
	return secrets, nil
}
