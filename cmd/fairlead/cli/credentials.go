package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// credentials is the file with the sessions of "fairlead login".
type credentials struct {
	// Server is the server of the last login.
	Server   string                `json:"server,omitempty"`
	Sessions map[string]credential `json:"sessions,omitempty"` // by URL of the server
}

type credential struct {
	Token      string    `json:"token"`
	User       string    `json:"user"`
	Expiration time.Time `json:"expiration"`
}

// credentialsFile returns the path of the file, or "" if there is no home directory.
func (t *tool) credentialsFile() string {
	if dir := t.getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fairlead", "sessions.json")
	}
	if home := t.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "fairlead", "sessions.json")
	}
	return ""
}

// serverName returns the form of a URL under which its session is stored.
func serverName(server string) string { return strings.TrimRight(server, "/") }

// readCredentials returns no sessions if there is no file.
func (t *tool) readCredentials() (c credentials, err error) {
	file := t.credentialsFile()
	if file == "" {
		return c, nil
	}
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err != nil:
		return c, fmt.Errorf("cannot read the session of fairlead login: %w", err)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return credentials{}, fmt.Errorf("cannot read the sessions in %s: %w; delete the file and run: fairlead login", file, err)
	}
	return c, nil
}

// writeCredentials replaces the file, which only its owner can read.
func (t *tool) writeCredentials(c credentials) error {
	file := t.credentialsFile()
	if file == "" {
		return errors.New("cannot store the session: set HOME or XDG_CONFIG_HOME")
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot store the session: %w", err)
	}
	draft, err := os.CreateTemp(dir, ".sessions-*") // with the mode 0600
	if err != nil {
		return fmt.Errorf("cannot store the session: %w", err)
	}
	_, err = draft.Write(append(text, '\n'))
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("cannot store the session: %w", errors.Join(err, os.Remove(draft.Name())))
	}
	return nil
}

// sessionFor returns the token of the session at a server, or "".
func (t *tool) sessionFor(server string) string {
	c, err := t.readCredentials()
	if err != nil {
		t.note("%v", err)
		return ""
	}
	return c.Sessions[serverName(server)].Token
}

// lastServer returns the server of the last login if this machine has no server of its own.
func (t *tool) lastServer() string {
	c, err := t.readCredentials()
	if err != nil || c.Server == "" {
		return ""
	}
	if _, err := os.Stat(t.socket()); err == nil {
		return ""
	}
	return c.Server
}
