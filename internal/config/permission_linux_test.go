package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// The test may run as root, whom no mode stops: it gives up root's rights over
// files on one thread, which ends with the goroutine that is bound to it.
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
	if err == nil || !strings.Contains(err.Error(), path+": permission denied; let the user that runs the service read it") {
		t.Errorf("got %v", err)
	}
}
