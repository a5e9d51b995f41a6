package relay_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/relay"
)

func TestKeyIsMadeOnceAndForItsOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "relay.key")
	first, err := relay.LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if again, err := relay.LoadKey(path); err != nil || !again.Equal(first) {
		t.Errorf("the second start has another key: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestUnusableKeyIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "other": "nodekey:00", "zero": "privkey:" + strings.Repeat("0", 64)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := relay.LoadKey(path); err == nil || !strings.Contains(err.Error(), path+": not a relay key: restore the file") {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != text {
			t.Errorf("%s: changed to %q, %v", name, now, err)
		}
	}
	if _, err := relay.LoadKey(dir); err == nil || !strings.Contains(err.Error(), "cannot read the relay key") {
		t.Error(err)
	}
	if _, err := relay.LoadKey(filepath.Join(dir, "missing", "key")); err == nil || !strings.Contains(err.Error(), "cannot create the relay key") {
		t.Error(err)
	}
}
