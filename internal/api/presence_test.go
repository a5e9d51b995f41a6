package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// moveAt brings a node online or takes it offline at a time in the past.
func (s *service) moveAt(node mesh.NodeID, online bool, at time.Time) {
	s.t.Helper()
	var e mesh.Event = mesh.Offline{ID: node, At: mesh.TimeOf(at)}
	if online {
		e = mesh.Online{ID: node, At: mesh.TimeOf(at)}
	}
	s.commit(e)
}

func period(from, to time.Time) string {
	return "from=" + url.QueryEscape(from.Format(time.RFC3339Nano)) + "&to=" + url.QueryEscape(to.Format(time.RFC3339Nano))
}

func TestPresenceTellsWhenNodesWereOnline(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		key := s.preAuthKey(object{"aclTags": []string{"tag:a"}, "reusable": true})
		for n := range uint64(3) {
			s.register(machine(n, key)).ok()
		}
		hour := time.Now().UTC().Truncate(time.Hour)
		from, to := hour.Add(-4*time.Hour), hour
		s.moveAt(1, true, from.Add(-time.Hour))
		s.moveAt(2, true, from.Add(90*time.Minute))
		s.moveAt(1, false, from.Add(2*time.Hour))
		s.moveAt(2, false, from.Add(105*time.Minute))

		got := s.call("GET", "/api/v1/node/host-0/presence?"+period(from, to), nil).ok()
		left := got["transitions"].([]any)[0].(object)
		text := func(at time.Time) string { return at.Format(time.RFC3339) }
		want := object{
			"nodeId": "1", "from": text(from), "to": text(to), "onlineBefore": true,
			"transitions": []any{object{"id": left["id"], "at": text(from.Add(2 * time.Hour)), "online": false}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("transitions (-want +got):\n%s", diff)
		}
		shares := func(query string) string {
			var all []string
			for _, n := range s.call("GET", "/api/v1/presence?"+period(from, to)+query, nil).ok()["nodes"].([]any) {
				all = append(all, fmt.Sprint(n.(object)["nodeId"], n.(object)["online"], n.(object)["changes"]))
			}
			return strings.Join(all, " ")
		}
		for query, want := range map[string]string{
			"&buckets=4":                 "1[1 1 0 0] 1 2[0 0.25 0 0] 2 3[0 0 0 0] 0",
			"&buckets=1&node=host-1":     "2[0.0625] 2",
			"&buckets=2&node=2,host-0,1": "1[1 0] 1 2[0.125 0] 2",
			"&buckets=1&cursor=1":        "2[0.0625] 2 3[0] 0",
		} {
			if got := shares(query); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
		day := s.call("GET", "/api/v1/presence", nil).ok()
		if n := len(day["nodes"].([]any)[0].(object)["online"].([]any)); n != 48 || day["next"] != "" {
			t.Errorf("%d buckets, next %q", n, day["next"])
		}
	})
}

func TestNodeWasNotOfflineBeforeItJoined(t *testing.T) {
	s := sqlite(t)
	s.register(machine(1, s.preAuthKey(object{"aclTags": []string{"tag:a"}}))).ok()
	joined := s.call("GET", "/api/v1/node/1", nil).ok()["node"].(object)["createdAt"]
	got := s.call("GET", "/api/v1/node/1/presence", nil).ok()
	if got["from"] != joined || got["onlineBefore"] != false {
		t.Errorf("it joined at %v: %v", joined, got)
	}
	past := time.Now().UTC().Add(-time.Hour)
	before := s.call("GET", "/api/v1/node/1/presence?"+period(past.Add(-time.Hour), past), nil).ok()
	if before["from"] != before["to"] {
		t.Errorf("before it joined: %v", before)
	}
}

func TestPresenceThatIsTooMuchOrNoneIsRefused(t *testing.T) {
	s := sqlite(t)
	s.register(machine(1, s.preAuthKey(object{"aclTags": []string{"tag:a"}}))).ok()
	now := time.Now().UTC()
	for query, path := range map[string]string{
		period(now.Add(-32*24*time.Hour), now):           "from",
		period(now, now.Add(-time.Hour)):                 "from",
		period(now.Add(time.Hour), now.Add(2*time.Hour)): "from",
		"from=yesterday":                                 "from",
		"buckets=0":                                      "buckets",
		"buckets=289":                                    "buckets",
		"buckets=x":                                      "buckets",
		"cursor=x":                                       "cursor",
		"node=" + strings.TrimSuffix(strings.Repeat("1,", 501), ","): "node",
	} {
		for _, at := range []string{"/api/v1/presence?", "/api/v1/node/1/presence?"} {
			a := s.call("GET", at+query, nil)
			if strings.Contains(at, "/node/") && path != "from" {
				continue
			}
			if a.status != http.StatusBadRequest || a.decoded()["errors"].([]any)[0].(object)["path"] != path {
				t.Errorf("%s%.30s: %d %s", at, query, a.status, a.body)
			}
		}
	}
	for _, at := range []string{"/api/v1/presence?node=7", "/api/v1/node/7/presence"} {
		if a := s.call("GET", at, nil); a.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", at, a.status, a.body)
		}
	}
}
