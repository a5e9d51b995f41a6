package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A forgotten variable must not select the database of a backup or restore unnoticed.
func TestVariablesThatSelectAnotherDatabaseAreNamed(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	text := "noise: {private_key_path: " + file("noise.key") + "}\ndatabase: {type: sqlite, sqlite: {path: " + file("db.sqlite") + "}}\n"
	if err := os.WriteFile(file("config.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	overriding := func(e *Env) { e.Environ = append(e.Environ, "FAIRLEAD_DATABASE_SQLITE_PATH="+file("other.sqlite")) }
	made := fairlead(t, file("socket"), []string{"--config", file("config.yaml"), "backup", "--file", file("a.backup")}, overriding)
	if want := "Warning: FAIRLEAD_DATABASE_SQLITE_PATH in the environment overrides " + file("config.yaml"); made.status != 1 || !strings.Contains(made.stderr.String(), want) {
		t.Errorf("backup of a missing database: status %d, %s; want %q", made.status, &made.stderr, want)
	}
}
