package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// entries queries the audit log and returns each entry as "verb kind object".
func (s *service) entries(query string) (list []string, next string) {
	s.t.Helper()
	body := s.call("GET", "/api/v1/audit?"+query, nil).ok()
	for _, e := range body["entries"].([]any) {
		e := e.(object)
		list = append(list, fmt.Sprintf("%s %s %s", e["verb"], e["kind"], e["object"]))
	}
	return list, body["next"].(string)
}

func TestAuditIsListedNewestFirstByWhatIsAskedFor(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		s.newUser("alice")
		s.newUser("bob")
		between := time.Now()
		s.call("POST", "/api/v1/user/alice/rename/carol", nil).ok()
		s.direct(s.local, "DELETE", "/api/v1/user/bob", nil).ok()
		second := url.QueryEscape(between.UTC().Format(time.RFC3339Nano))
		for query, want := range map[string]string{
			"":                                "deleted user 2, changed user 1, created user 2, created user 1, created apikey 1",
			"kind=user&verb=created":          "created user 2, created user 1",
			"kind=user,apikey&verb=created":   "created user 2, created user 1, created apikey 1",
			"object=1":                        "changed user 1, created user 1, created apikey 1",
			"kind=user&object=1&verb=changed": "changed user 1",
			"actor=local":                     "deleted user 2",
			"actor=local:ada":                 "deleted user 2",
			"actor=key:1":                     "changed user 1, created user 2, created user 1",
			"actor=key:2":                     "",
			"kind=sshgrant":                   "",
			"from=" + second:                  "deleted user 2, changed user 1",
			"to=" + second + "&kind=user":     "created user 2, created user 1",
			"limit=2":                         "deleted user 2, changed user 1",
		} {
			got, _ := s.entries(query)
			if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("%q (-want +got):\n%s", query, diff)
			}
		}
	})
}

func TestAuditIsReadPageByPageWhileItGrows(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		for i := range 7 {
			s.newUser(fmt.Sprintf("user%d", i))
		}
		want, next := s.entries("kind=user")
		if next != "" {
			t.Errorf("more is promised after all: %s", next)
		}
		var got []string
		for cursor, pages := "", 0; ; pages++ {
			page, next := s.entries("kind=user&limit=2&cursor=" + cursor)
			got = append(got, page...)
			s.newUser(fmt.Sprintf("late%d", pages))
			if cursor = next; cursor == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("page by page (-want +got):\n%s", diff)
		}
	})
}

func TestAuditShowsWhoAndBeforeAndAfter(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	rev := s.call("POST", "/api/v1/user/alice/rename/bob", nil, "X-Request-Id: r1").header.Get("Mesh-Revision")
	got := s.call("GET", "/api/v1/audit?limit=1", nil).ok()["entries"].([]any)[0].(object)
	before, after := got["before"].(object), got["after"].(object)
	want := object{
		"id": rev + "-0", "at": got["at"], "verb": "changed", "kind": "user", "object": "1", "before": before, "after": after,
		"actor": object{"kind": "key", "id": "1", "name": prefixOf(s.key), "address": "127.0.0.1", "requestId": "r1", "reason": ""},
	}
	if diff := cmp.Diff(want, got); diff != "" || before["name"] != "alice" || after["name"] != "bob" {
		t.Errorf("%v (-want +got):\n%s", got, diff)
	}
	created := s.call("GET", "/api/v1/audit?verb=created&kind=user", nil).ok()["entries"].([]any)[0].(object)
	if before, ok := created["before"]; !ok || before != nil {
		t.Errorf("before it was created: %v", before)
	}
}

func TestAuditQueryThatIsNoneIsRefused(t *testing.T) {
	s := sqlite(t)
	for query, path := range map[string]string{
		"limit=0": "limit", "limit=-1": "limit", "limit=1001": "limit", "limit=x": "limit", "cursor=7": "cursor", "cursor=7-x": "cursor",
		"from=yesterday": "from", "to=1": "to", "kind=%00": "kind", "kind=user,nothing": "kind", "kind=user,": "kind", "verb=a,%ff": "verb", "verb=online": "verb", "object=%00": "object", "actor=key:%00": "actor",
		"object=" + strings.Repeat("a", 1000): "object",
	} {
		a := s.call("GET", "/api/v1/audit?"+query, nil)
		if a.status != http.StatusBadRequest || a.decoded()["errors"].([]any)[0].(object)["path"] != path {
			t.Errorf("%.20s: %d %s", query, a.status, a.body)
		}
	}
	s.call("GET", "/api/v1/audit?verb=removed", nil).fails(400, "Bad Request", `unknown verb "removed": use one of created, changed, deleted`, "verb")
}
