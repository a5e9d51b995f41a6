//go:build !race

package deploytest

import (
	"strings"
	"testing"
)

// The backup of a stack with PostgreSQL is restored into a stack with SQLite, which is then reset to an
// earlier backup. Both use the commands from docs/backup.md, in containers with a read-only file system.
func TestBackupOfAStackIsRestoredIntoAnother(t *testing.T) {
	t.Parallel()
	key := func(s *Stack) string { return content(t, "http://"+s.Addr("PROXY_DEV_PUBLISH")+"/key?v=109") }
	users := func(s *Stack) string { return s.Exec("fairlead", "fairlead", "users", "list") }
	restore := func(s *Stack, file string) {
		t.Helper()
		s.Compose("stop", "fairlead")
		if out, err := s.Run("sh", "-c", "docker-compose run --rm -T fairlead restore - --replace --force <"+file); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		s.Compose("start", "fairlead")
		s.WaitHealthy("fairlead")
	}

	from := NewStack(t, nil)
	from.Setup("--dev")
	from.WaitHealthy()
	from.Exec("fairlead", "fairlead", "users", "create", "alice")
	backup := from.Exec("fairlead", "fairlead", "backup", "--with-keys")
	known := key(from)
	from.Down()

	to := NewStack(t, nil)
	to.Setup("--dev", "--sqlite")
	to.WaitHealthy()
	if key(to) == known {
		t.Fatal("two stacks have one key")
	}
	to.WriteFile("moved.backup", backup, 0o600)
	restore(to, "moved.backup")
	wantText(t, users(to), "alice")
	if key(to) != known {
		t.Error("clients of the stack that was backed up would not know this one")
	}

	to.WriteFile("earlier.backup", to.Exec("fairlead", "fairlead", "backup"), 0o600)
	if out, err := to.Run("sh", "-c", "docker-compose exec -T fairlead fairlead backup verify - <earlier.backup"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	to.Exec("fairlead", "fairlead", "users", "create", "bob")
	if out, err := to.Run("sh", "-c", "docker-compose exec -T fairlead fairlead restore - --replace --force <earlier.backup"); err == nil || !strings.Contains(out, "in use by") {
		t.Errorf("restored under the service: %v\n%s", err, out)
	}
	restore(to, "earlier.backup")
	if list := users(to); !strings.Contains(list, "alice") || strings.Contains(list, "bob") {
		t.Errorf("users after the restore:\n%s", list)
	}
}
