package api_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/api"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

const (
	missing = "Unauthorized: bearer token missing"
	invalid = "Authentication failed: invalid API key"
)

// newKey creates an API key and returns its ID and text.
func (s *service) newKey() (id, text string) {
	s.t.Helper()
	made := s.call("POST", "/api/v1/apikey", nil).ok()
	return made["id"].(string), made["apiKey"].(string)
}

func TestRequestWithoutValidKeyIsRefusedInExactWords(t *testing.T) {
	s := sqlite(t)
	expiredID, expired := s.newKey()
	s.call("POST", "/api/v1/apikey/expire", object{"id": expiredID}).ok()
	deletedID, deleted := s.newKey()
	s.call("DELETE", "/api/v1/apikey/"+deletedID, nil).ok()
	prefix, _, _ := strings.Cut(strings.TrimPrefix(s.key, "flk_"), "_")
	preAuth := s.call("POST", "/api/v1/preauthkey", object{"aclTags": []string{"tag:a"}}).ok()["preAuthKey"].(object)["key"].(string)

	for header, detail := range map[string]string{
		"":                                 missing,
		"Bearer":                           missing,
		"Bearer ":                          missing,
		"Basic dXNlcjpwYXNz":               missing,
		s.key:                              missing,
		"Bearer x":                         invalid,
		"Bearer flk_" + prefix + "_":       invalid,
		"Bearer flk_" + prefix + "_wrong":  invalid,
		"Bearer flk_" + prefix + "_***":    invalid,
		"Bearer " + prefix:                 invalid,
		"Bearer " + s.key + "x":            invalid,
		"Bearer " + strings.ToUpper(s.key): invalid,
		"Bearer " + strings.Replace(s.key, "flk_", "flp_", 1): invalid,
		"Bearer flk_AAAAAAAAAAAA_" + strings.Repeat("a", 43):  invalid,
		"Bearer " + strings.Repeat("a", 32<<10):               invalid,
		"Bearer " + expired:                                   invalid,
		"Bearer " + deleted:                                   invalid,
		"Bearer " + preAuth:                                   invalid,
	} {
		a := s.call("GET", "/api/v1/user", nil, "Authorization: "+header)
		a.fails(401, "Unauthorized", detail, "")
		if a.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%.40q: WWW-Authenticate %q", header, a.header.Get("WWW-Authenticate"))
		}
	}
	for _, header := range []string{"Bearer " + s.key, "bearer " + s.key, "Bearer   " + s.key} {
		s.call("GET", "/api/v1/user", nil, "Authorization: "+header).ok()
	}
}

func TestRefusedRequestIsLoggedOnceWithItsAddress(t *testing.T) {
	s := sqlite(t)
	s.call("GET", "/api/v1/user", nil)
	for header, msg := range map[string]string{noKey: "unauthorized", "Authorization: Bearer flk_a_b": "authentication failed"} {
		id := "req-" + strings.Fields(msg)[0]
		s.call("GET", "/api/v1/node", nil, header, "X-Request-Id: "+id)
		lines := s.log.lines(t, msg)
		if all := strings.Count(s.log.text(), id); len(lines) != 1 || all != 1 {
			t.Fatalf("%q: %d lines, and %d of this request; want one\n%s", msg, len(lines), all, s.log.text())
		}
		want := object{
			"time": lines[0]["time"], "level": "WARN", "msg": msg, "addr": "127.0.0.1", "path": "/api/v1/node", "req": id,
		}
		if diff := cmp.Diff(want, lines[0]); diff != "" {
			t.Errorf("log line (-want +got):\n%s", diff)
		}
	}
}

func TestKeyInAPathIsMaskedInTheLog(t *testing.T) {
	s := sqlite(t)
	_, secret, _ := strings.Cut(strings.TrimPrefix(s.key, "flk_"), "_")
	s.call("DELETE", "/api/v1/apikey/"+s.key, nil, noKey)
	s.call("DELETE", "/api/v1/apikey/"+s.key+"/x", nil, "Authorization: Bearer flk_a_b")
	for _, msg := range []string{"unauthorized", "authentication failed"} {
		lines := s.log.lines(t, msg)
		if len(lines) != 1 || !strings.Contains(lines[0]["path"].(string), "_***") {
			t.Errorf("%v", lines)
		}
	}
	if strings.Contains(s.log.text(), secret) {
		t.Error("the secret of a key is in the log")
	}
}

// Every invalid key causes the same database calls in the same order, so that neither the
// response nor the timing distinguishes them. In a synctest bubble the clock stands still,
// so nothing else queries the database in the meantime.
func TestInvalidKeysTakeEqualWork(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := sqlite(t)
		call := func(key string) *answer {
			return s.direct(s.handler, "GET", "/api/v1/user", nil, "Authorization: Bearer "+key)
		}
		issue := func(change func(id string)) string {
			made := s.direct(s.handler, "POST", "/api/v1/apikey", nil).ok()
			change(made["id"].(string))
			return made["apiKey"].(string)
		}
		invalidKeys := map[string]string{
			"malformed": "nonsense",
			"too long":  strings.Repeat("a", 10_000),
			"unknown":   "flk_AAAAAAAAAAAA_" + strings.Repeat("a", 43),
			"wrong":     s.key + "x",
			"expired": issue(func(id string) {
				s.direct(s.handler, "POST", "/api/v1/apikey/expire", object{"id": id}).ok()
			}),
			"deleted": issue(func(id string) { s.direct(s.handler, "DELETE", "/api/v1/apikey/"+id, nil).ok() }),
		}
		for name, key := range invalidKeys {
			time.Sleep(time.Second / 7) //nolint:forbidigo // the bubble's clock: the next read of the log is not rate-limited
			synctest.Wait()
			locks, tails := s.store.locks.Load(), s.store.tails.Load()
			call(key).fails(401, "Unauthorized", invalid, "")
			if l, n := s.store.locks.Load()-locks, s.store.tails.Load()-tails; l != 0 || n != 1 {
				t.Errorf("%s: %d transactions and %d reads of the log, want 0 and 1", name, l, n)
			}
		}

		// Concurrent requests share one read of the log, besides the one made every second.
		tails := s.store.tails.Load()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { call("nonsense") })
		}
		wg.Wait()
		if n := s.store.tails.Load() - tails; n > 2 {
			t.Errorf("%d reads of the log for 100 requests at once", n)
		}
		locks := s.store.locks.Load()
		tails = s.store.tails.Load()
		for range 1000 {
			call(s.key).ok()
		}
		if s.store.locks.Load() != locks || s.store.tails.Load() != tails {
			t.Error("a request with a valid key asked the database")
		}
	})
}

func TestForwardedAddressCountsOnlyFromTrustedProxies(t *testing.T) {
	s := sqlite(t, config{api: func(c *api.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")}
	}})
	for i, c := range []struct {
		peer      string
		forwarded []string
		want      string
	}{
		{"203.0.113.9:1234", nil, "203.0.113.9"},
		{"203.0.113.9:1234", []string{"198.51.100.1"}, "203.0.113.9"},                          // a stranger with a forged header
		{"203.0.113.9:1234", []string{"192.0.2.1"}, "203.0.113.9"},                             // a stranger who claims to be a proxy
		{"192.0.2.1:1234", nil, "192.0.2.1"},                                                   // a proxy on its own behalf
		{"192.0.2.1:1234", []string{"198.51.100.1"}, "198.51.100.1"},                           // a proxy for a caller
		{"192.0.2.1:1234", []string{"10.0.0.1, 198.51.100.1"}, "198.51.100.1"},                 // a caller who forged the first entry
		{"192.0.2.1:1234", []string{"198.51.100.1, 192.0.2.7"}, "198.51.100.1"},                // a chain of proxies
		{"192.0.2.1:1234", []string{"198.51.100.1", "192.0.2.7, 2001:db8::7"}, "198.51.100.1"}, // the same in several headers
		{"192.0.2.1:1234", []string{"192.0.2.6, 192.0.2.7"}, "192.0.2.6"},                      // only proxies
		{"192.0.2.1:1234", []string{"198.51.100.1, unknown"}, "192.0.2.1"},                     // an invalid entry ends the chain
		{"192.0.2.1:1234", []string{"198.51.100.1, \"evil\", 192.0.2.7"}, "192.0.2.7"},
		{"192.0.2.1:1234", []string{"198.51.100.1:4711"}, "192.0.2.1"},
		{"192.0.2.1:1234", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"[::ffff:192.0.2.1]:1234", []string{"198.51.100.1"}, "198.51.100.1"},
		{"[2001:db8::1]:1234", []string{"2001:db9::1"}, "2001:db9::1"},
		{"@", []string{"198.51.100.1"}, "@"}, // not an address
	} {
		id := fmt.Sprintf("case-%d", i)
		req := newRequest(t, "GET", "/api/v1/user")
		req.RemoteAddr = c.peer
		req.Header.Set("X-Request-Id", id)
		for _, line := range c.forwarded {
			req.Header.Add("X-Forwarded-For", line)
		}
		serve(s.handler, req)
		lines := slices.DeleteFunc(s.log.lines(t, "unauthorized"), func(o map[string]any) bool { return o["req"] != id })
		if len(lines) != 1 || lines[0]["addr"] != c.want {
			t.Errorf("%s %q: %v, want %s", c.peer, c.forwarded, lines, c.want)
		}
	}
}

func TestRequestIDIsAPlainWord(t *testing.T) {
	s := sqlite(t)
	for id, taken := range map[string]bool{
		"a-b_C9": true, strings.Repeat("x", 64): true, strings.Repeat("x", 65): false, "two words": false, "a\"b": false, "ä": false, "": false,
	} {
		s.call("GET", "/api/v1/user", nil, noKey, "X-Request-Id: "+id)
		lines := s.log.lines(t, "unauthorized")
		if got := lines[len(lines)-1]["req"].(string); (got == id) != taken || len(got) < 6 {
			t.Errorf("%q is logged as %q", id, got)
		}
	}
}

func TestLocalSocketNeedsNoKeyAndNamesItsUser(t *testing.T) {
	s := sqlite(t)
	s.direct(s.local, "POST", "/api/v1/user", object{"name": "alice"}, noKey).ok()
	key := s.direct(s.local, "POST", "/api/v1/preauthkey", object{"user": "alice"}, noKey).ok()["preAuthKey"].(object)["key"].(string)
	s.direct(s.local, "POST", "/api/v1/machine", machine(1, key), noKey).ok()
	for _, row := range s.audit() {
		if row.Position.Rev > 1 && (row.Actor.Kind != "local" || row.Actor.ID != "1000" || row.Actor.Name != "ada" || row.Actor.RequestID == "") {
			t.Errorf("%s %s by %+v", row.Verb, row.Kind, row.Actor)
		}
	}
}
