package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Root can read files of any mode, and the test may run as root. It therefore drops
// root's file capabilities on one thread, which exits with the goroutine locked to it.
func TestUnreadableFileSaysPermissionDenied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(minimal), 0o000); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread()
		if os.Getuid() == 0 {
			const nobody = 65534
			_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0)
		}
		_, err := Load(path, nil)
		failed <- err
	}()
	err := <-failed
	if err == nil || !strings.Contains(err.Error(), path+": permission denied; make it readable for the user that runs the server") {
		t.Errorf("got %v", err)
	}
}

func TestSecretInAFileThatEveryoneCanReadIsWarnedOf(t *testing.T) {
	const secret = minimal + "database: {postgres: {pass: hunter2}}\n"
	for _, c := range []struct {
		text  string
		mode  os.FileMode
		env   []string
		warns bool
	}{
		{secret, 0o644, nil, true},
		{secret, 0o604, nil, true},
		{secret, 0o640, nil, false}, // as installed by packages
		{secret, 0o600, nil, false},
		{minimal, 0o644, nil, false},
		{minimal, 0o644, []string{"FAIRLEAD_DATABASE_POSTGRES_PASS=hunter2"}, false},
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil { // regardless of the umask
			t.Fatal(err)
		}
		config, err := Load(path, c.env)
		if err != nil {
			t.Fatal(err)
		}
		want := path + ":2: database.postgres.pass: this is a secret, but all users can read the file (mode "
		if got := config.Report(); strings.Contains(got, want) != c.warns || strings.Contains(got, "hunter2") {
			t.Errorf("mode %04o, %q: %s", c.mode, c.text, got)
		}
	}
}
