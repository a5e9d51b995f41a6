package disktest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/disktest"
)

func TestDiskThatLosesPowerKeepsOnlyWhatWasSynced(t *testing.T) {
	d := disktest.NewDisk(t, "16M")
	f, err := os.Create(filepath.Join(d.Dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write := func(text string, sync bool) {
		t.Helper()
		_, err := f.WriteString(text)
		if err == nil && sync {
			err = f.Sync()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("synced", true)
	write(", not synced", false)
	d.Fail()
	if _, err := f.WriteString(", too late"); err == nil {
		t.Error("a disk without power was written to")
	}
	f.Close()
	d.Restore()
	text, err := os.ReadFile(f.Name())
	if string(text) != "synced" || err != nil {
		t.Errorf("the file contains %q, %v", text, err)
	}
}
