package ledger_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// rulesOf returns a policy with n rules.
func rulesOf(n int) string {
	return `{"acls": [` + strings.Repeat(`{"action": "accept", "src": ["*"], "dst": ["*:*"]},`, n) + `]}`
}

// Commands that share a transaction with one that saves a policy are decided by the new
// policy, which is parsed once for all of them.
func TestPolicyIsReadOnceForABatch(t *testing.T) {
	l := run(t, ledger.Config{Store: openSQLite(t)})
	var mu sync.Mutex
	read := map[mesh.PolicyVersion]map[*lang.Doc]bool{}
	most := 0
	var wg sync.WaitGroup
	for i := range 400 {
		wg.Go(func() {
			_, err := l.Commit(t.Context(), server, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
				mu.Lock()
				defer mu.Unlock()
				v := w.Counters.Policy
				if v > 0 && len(w.Doc.Rules) != int(v) {
					t.Errorf("%d rules are in force with version %d", len(w.Doc.Rules), v)
				}
				if read[v] == nil {
					read[v] = map[*lang.Doc]bool{}
				}
				read[v][w.Doc] = true
				most = max(most, len(read[v]))
				if i%40 != 0 {
					return []mesh.Event{mesh.AddressCursor{}}, nil
				}
				return []mesh.Event{mesh.PolicyPut{Policy: &mesh.Policy{Version: v + 1, Text: rulesOf(int(v + 1)), Source: "api", SavedAt: now}}}, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(read) < 10 || most > 2 { // a version is parsed once in the batch, and once when it is published
		t.Errorf("%d versions, one was read %d times", len(read), most)
	}
}
