package ledger_test

import (
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func TestReplicaIsFreshWhileItMissesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		mute, unread bool
		ahead        bool // other replicas are ahead of this one
		want         bool
	}{
		"nothing is wrong":                  {want: true},
		"only beats fail":                   {mute: true, want: true},
		"as far as the others":              {unread: true, want: true},
		"behind the others":                 {unread: true, ahead: true},
		"neither reads nor hears of others": {mute: true, unread: true},
	} {
		t.Run(name, func(t *testing.T) {
			waittest.Bubble(t, func(t *testing.T) {
				st := &weak{Store: openSQLite(t), others: 1}
				if c.ahead {
					st.ahead.Store(1000)
				}
				l := run(t, ledger.Config{Store: st})
				pass(time.Minute)
				if f := l.Status().Freshness().For(time.Now()); f < 50*time.Second {
					t.Fatalf("fresh for %v after a minute", f)
				}
				st.mute.Store(c.mute)
				st.unread.Store(c.unread)
				pass(20 * time.Second)
				if f := l.Status().Freshness(); (f.For(time.Now()) > 0) != c.want || (time.Since(f.Last) < 3*time.Second) != c.want {
					t.Errorf("fresh for %v, last %v ago; want %v", f.For(time.Now()), time.Since(f.Last), c.want)
				}
				if c.want {
					return
				}
				st.mute.Store(false) // reports of others prove nothing after an interruption
				st.ahead.Store(0)
				pass(10 * time.Second)
				if f := l.Status().Freshness().For(time.Now()); f != 0 {
					t.Errorf("fresh for %v by beats alone", f)
				}
				st.unread.Store(false)
				pass(2 * time.Second)
				if f := l.Status().Freshness().For(time.Now()); f == 0 || f > 2*time.Second {
					t.Errorf("fresh for %v after the log could be read again", f)
				}
			})
		})
	}
}
