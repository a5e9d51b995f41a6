package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/app"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

func TestExportedFileIsImportedWithTheSameDigest(t *testing.T) {
	bothEngines(t, func(t *testing.T, m *mover) {
		before := m.run(true)
		file := filepath.Join(m.dir, "back.db")
		out, err := app.ExportHeadscale(t.Context(), m.config, file)
		if err != nil {
			t.Fatal(err)
		}
		if out.Digest == "" || out.Digest != before.Digest || out.Nodes != before.Nodes || out.PreAuthKeys != before.PreAuthKeys || out.APIKeys != before.APIKeys || !out.Policy || len(out.Lost) > 0 {
			t.Errorf("exported %+v\nimported %+v", out, before)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		m.in.SQLite = file
		again := m.run(false)
		if again.Digest != out.Digest || again.Version != out.Version || len(again.Repairs)+len(again.Refusals) > 0 {
			t.Errorf("imported again: %+v", again)
		}
		if r := m.run(true); r.Added+r.Changed+r.Deleted > 0 {
			t.Errorf("an import of the exported file changes what was exported: %+v", r)
		}
		if _, err := app.ExportHeadscale(t.Context(), m.config, file); err == nil || !strings.Contains(err.Error(), "exists") {
			t.Errorf("a file was replaced: %v", err)
		}
	})
}

// While the way back is open, keys that were used here can still be exported.
func TestUsedKeysCanBeExportedUntilTheWayBackIsClosed(t *testing.T) {
	m := newMover(t, false)
	m.in.KeepWayBack = true
	before := m.run(true)
	for k := range m.stored().APIKeys.All() {
		used := *k
		used.Hash = mesh.Secret{1}
		m.commit(mesh.APIKeyPut{Key: &used})
	}
	export := func(name string) app.HeadscaleExport {
		t.Helper()
		out, err := app.ExportHeadscale(t.Context(), m.config, filepath.Join(m.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := export("open.db"); out.Digest != before.Digest || out.APIKeys != 1 || len(out.Lost) > 0 {
		t.Errorf("exported %+v\nimported %+v", out, before)
	}
	if n, err := app.CloseWayBack(t.Context(), m.config); n != 1 || err != nil {
		t.Errorf("%d keys, %v", n, err)
	}
	if out := export("closed.db"); out.APIKeys != 0 || out.PreAuthKeys != 3 || len(out.Lost) != 1 || !strings.Contains(out.Lost[0], "API key 1") {
		t.Errorf("exported %+v", out)
	}
	if _, err := app.CloseWayBack(t.Context(), m.config); err == nil || !strings.Contains(err.Error(), "not open") {
		t.Errorf("the way back was closed twice: %v", err)
	}
}

func TestExportNeedsADatabase(t *testing.T) {
	m := newMover(t, false)
	file := filepath.Join(m.dir, "back.db")
	if _, err := app.ExportHeadscale(t.Context(), m.config, file); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v", err)
	}
	for _, path := range []string{file, m.config.Database.SQLite.Path} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was created", path)
		}
	}
}
