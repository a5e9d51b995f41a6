//go:build nextrelease

package sqlstore

import (
	"embed"

	"github.com/pressly/goose/v3"
)

//go:embed next
var next embed.FS

// nextFiles returns the migrations of the next release, to which tests upgrade.
func nextFiles(dialect goose.Dialect) ([]migrationFile, error) {
	return readMigrations(next, "next", dialect)
}
