package api_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func TestFloodOfRefusedKeysDoesNotFillTheLog(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := sqlite(t)
		ask := func(addr, key string) {
			t.Helper()
			req := newRequest(t, "GET", "/api/v1/user")
			req.RemoteAddr = addr + ":1"
			s.dress(req, []string{"Authorization: " + key})
			if rec := serve(s.handler, req); rec.Code != http.StatusUnauthorized {
				t.Fatal(rec.Code)
			}
		}
		lines := func() map[string]int {
			return map[string]int{"unauthorized": len(s.log.lines(t, "unauthorized")), "authentication failed": len(s.log.lines(t, "authentication failed"))}
		}
		for range 60 {
			ask("192.0.2.1", "")
			ask("192.0.2.1", "Bearer flk_a_b")
		}
		ask("192.0.2.2", "Bearer flk_a_b")
		if diff := cmp.Diff(map[string]int{"unauthorized": 50, "authentication failed": 51}, lines()); diff != "" {
			t.Errorf("one address (-want +got):\n%s", diff)
		}
		<-time.After(time.Minute)
		for i := range 1_100 {
			ask(fmt.Sprintf("[2001:db8::%x]", i), "")
		}
		if diff := cmp.Diff(map[string]int{"unauthorized": 1_050, "authentication failed": 51}, lines()); diff != "" {
			t.Errorf("many addresses (-want +got):\n%s", diff)
		}
		<-time.After(time.Minute)
		ask("192.0.2.1", "")
		var suppressed []any
		for _, line := range s.log.lines(t, "suppressed log lines about rejected keys") {
			suppressed = append(suppressed, line["suppressed"])
		}
		if diff := cmp.Diff([]any{20.0, 100.0}, suppressed); diff != "" || lines()["unauthorized"] != 1_051 {
			t.Errorf("%v, suppressed (-want +got):\n%s", lines(), diff)
		}
	})
}
