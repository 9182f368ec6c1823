package sdk

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
)

// rootOf is the grant's directory, which the host passed as a descriptor; nil
// where it passed none.
func rootOf(number string) (*os.File, error) {
	if number == "" {
		return nil, nil
	}
	f, err := inherited(number, "root")
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("the host passed the descriptor %s, which is not a directory", number)
	}
	return f, nil
}

// maxSettings is the bytes of settings that a plugin reads.
const maxSettings = 64 << 20

// ReadSettings reads what the host tells a plugin's process besides its grant, once,
// before [Serve]: nothing of it is in the environment, where others could read it. It is
// an error where the host passed none.
func ReadSettings() ([]byte, error) {
	number, ok := os.LookupEnv(wire.EnvSettings)
	if !ok {
		return nil, errors.New("the host passed no settings")
	}
	f, err := inherited(number, "settings")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSettings+1))
	if err == nil && len(b) > maxSettings {
		err = fmt.Errorf("the settings have more than %d bytes", maxSettings)
	}
	return b, err
}
