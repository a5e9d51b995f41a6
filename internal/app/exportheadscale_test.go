package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/app"
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
