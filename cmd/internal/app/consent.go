package app

import (
	"path/filepath"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
)

// ConsentFile is where servers ask and a person answers.
func ConsentFile() (string, error) {
	dir, err := StateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "consent.json"), nil
}

// asker is what a person approves tools of: a profile by its folder's name, another
// store by its path, or what is in memory, with whose it is where that is known.
func (a *Authority) asker() string {
	if a.keptAt == "" {
		if a.client != "" {
			return "memory of " + a.client
		}
		return InMemory
	}
	path, err := filepath.Abs(a.keptAt)
	if err != nil {
		path = a.keptAt
	}
	folder := filepath.Base(filepath.Dir(path))
	if profile, err := FolderPath(folder); err == nil && profile == path {
		return "profile " + folder
	}
	return "store " + path
}

// Consents is where this authority asks; nil: there is no place for questions.
func (a *Authority) Consents() *caps.Consents {
	path, err := ConsentFile()
	if err != nil {
		return nil
	}
	return &caps.Consents{Path: path, Who: a.asker(), Kinds: a.Kinds, Now: time.Now}
}

// pollConsents takes in what was answered to any server under the policy.
func (a *Authority) pollConsents() {
	a.brokers.each(func(b *run.Broker) {
		if !b.Policy().Asking() {
			return
		}
		if err := b.PollConsents(); err != nil {
			a.log.Error("what was approved can't be read, or not be put on record", "error", err)
		}
	})
}
