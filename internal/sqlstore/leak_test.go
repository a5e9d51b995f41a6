package sqlstore_test

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/store/storetest"
)

// This test must not run in parallel with others: it would find their goroutines.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	for _, s := range []store.Store{
		openPostgres(t, pgConfig(pg.Database(t))),
		openSQLite(t, filepath.Join(t.TempDir(), "db.sqlite")),
	} {
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := s.Watch(ctx); err != nil {
				t.Error(err)
			}
		})
		storetest.Append(t, s, user(1))
		if _, err := s.Beat(ctx, store.Report{ID: "a"}); err != nil {
			t.Error(err)
		}
		stop()
		wg.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	drivers := regexp.MustCompile(`jackc/|database/sql|modernc|goose|internal/sqlstore\.`)
	eventually(t, func() error {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		_, others, _ := strings.Cut(string(stacks), "\n\n") // the first stack is our own
		for stack := range strings.SplitSeq(others, "\n\n") {
			if drivers.MatchString(stack) {
				return errors.New(stack)
			}
		}
		return nil
	})
}
