package sqlstore_test

import (
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

func TestSettingsThatLoseDataAreNamed(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, pgtest.Options{Args: []string{"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off"}})
	db := server.Database(t)
	for _, want := range []string{"fsync, full_page_writes, synchronous_commit", "fsync, full_page_writes"} {
		risks, err := openPostgres(t, configOf(server, db)).Risks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range risks {
			name, _, _ := strings.Cut(r, " ")
			names = append(names, name)
		}
		if got := strings.Join(names, ", "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		server.Exec(t, "postgres", "ALTER DATABASE "+db+" SET synchronous_commit = on")
	}
}
