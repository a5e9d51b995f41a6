package bff

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func sealsOf(t testing.TB, secret string) *seals {
	t.Helper()
	s, err := newSeals(secret)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASealOpensOnlyForItsPurposeAndSecret(t *testing.T) {
	s := sealsOf(t, cookieSecret)
	text, err := s.seal("purpose", "content")
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := s.open("purpose", text, &got); err != nil || got != "content" {
		t.Errorf("%q, %v", got, err)
	}
	if again, _ := s.seal("purpose", "content"); again == text {
		t.Error("the same content is sealed to the same text")
	}
	if s.open("other", text, &got) == nil {
		t.Error("it opens for another purpose")
	}
	if sealsOf(t, "another secret of the console 32").open("purpose", text, &got) == nil {
		t.Error("it opens with another secret")
	}
	if s.isCSRFToken("b", s.csrfToken("a")) || !s.isCSRFToken("a", s.csrfToken("a")) || s.isCSRFToken("a", "") {
		t.Error("tokens are not those of their session")
	}
}

func TestASessionEndsWhenIdleWhenOldAndWithItsKey(t *testing.T) {
	now := time.Now()
	soon, late := now.Add(time.Hour), now.Add(999*24*time.Hour)
	for _, c := range []struct {
		name    string
		expires *time.Time
		renewed time.Duration
		want    time.Duration
	}{
		{"idle", &late, 0, idleTime},
		{"used", &late, 24 * time.Hour, 24*time.Hour + idleTime},
		{"old", &late, longestTime - time.Hour, longestTime},
		{"key", &soon, 30 * time.Minute, time.Hour},
		{"key without end", nil, 0, idleTime},
	} {
		s := newSession("k", &apiclient.Caller{Expiration: c.expires}, now)
		s.Renewed = now.Add(c.renewed)
		if got := s.end().Sub(now); got != c.want {
			t.Errorf("%s: ends after %v, want %v", c.name, got, c.want)
		}
	}
}

// TestASessionIsRenewedNotMoreOftenThanNeeded checks at which age a response renews the
// session cookie.
func TestASessionIsRenewedNotMoreOftenThanNeeded(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	key := newKey(t)
	caller := &apiclient.Caller{Name: mask(key)}
	for age, want := range map[time.Duration]string{0: "kept", renewEvery - time.Minute: "kept", renewEvery + time.Minute: "renewed", idleTime + time.Minute: "over"} {
		held := newSession(key, caller, time.Now().Add(-age))
		text, err := c.server.seals.seal(cookieName, held)
		if err != nil {
			t.Fatal(err)
		}
		a := c.get("/admin/api/v1/whoami", "X-Attended: 1", "Cookie: "+cookieName+"="+text)
		got := "kept"
		if a.StatusCode == http.StatusUnauthorized {
			got = "over"
		} else if hasSession(a) {
			got = "renewed"
		}
		if got != want {
			t.Errorf("after %v the session is %s, want %s", age, got, want)
		}
	}
}

// movedClock returns how far the console's clock is ahead; tests add to it. It must
// be called before the first request.
func (c *console) movedClock() *atomic.Int64 {
	var moved atomic.Int64
	c.server.now = func() time.Time { return time.Now().Add(time.Duration(moved.Load())) }
	return &moved
}

// TestOnlyAPersonKeepsASessionAlive leaves one page open to poll overnight while a
// person uses another.
func TestOnlyAPersonKeepsASessionAlive(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	moved := c.movedClock()
	key := newKey(t)
	unattended, used := c.browser, newBrowser(t, c.base)
	unattended.login(key)
	used.login(key)
	polled := []string{"/admin/api/v1/auth/pending", "/admin/api/v1/server", "/admin/api/session"}
	const step = 30 * time.Minute
	for range idleTime/step - 1 {
		moved.Add(int64(step))
		for _, path := range polled {
			if hasSession(unattended.must(http.StatusOK, http.MethodGet, path, "")) {
				t.Errorf("%s renews a session that nobody uses", path)
			}
		}
		if s := unattended.stream(); s.status != http.StatusOK || s.header.Get("Set-Cookie") != "" {
			t.Errorf("the stream: %d %v", s.status, s.header)
		} else {
			s.close()
		}
		if !hasSession(used.must(http.StatusOK, http.MethodGet, polled[0], "", "X-Attended: 1")) {
			t.Error("a session that somebody uses is not renewed")
		}
	}
	moved.Add(int64(step))
	for _, path := range append(polled, "/admin/api/v1/events") {
		if a := unattended.must(http.StatusUnauthorized, http.MethodGet, path, "", "X-Attended: 1"); hasSession(a) {
			t.Errorf("%s brings a session back that has ended", path)
		}
	}
	wantText(t, unattended.get("/admin/nodes").text, textIdle, `name="token"`)
	wantText(t, unattended.get("/admin/users").text, textIdle) // in another tab
	used.must(http.StatusOK, http.MethodGet, polled[0], "")

	for moved.Load() < int64(longestTime) {
		used.get(polled[0], "X-Attended: 1")
		moved.Add(int64(idleTime - time.Minute))
	}
	used.must(http.StatusUnauthorized, http.MethodGet, polled[0], "", "X-Attended: 1")
	wantText(t, used.get("/admin/nodes").text, textOld)
}

func TestASessionThatEndedWithItsKeySaysSo(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	moved := c.movedClock()
	c.login(newKey(t, "--expiration", "1h"))
	moved.Store(int64(time.Hour))
	wantText(t, c.get("/admin/nodes").text, textExpired)
}

// FuzzCookie: only what was sealed can be opened.
func FuzzCookie(f *testing.F) {
	s := sealsOf(f, cookieSecret)
	want := session{ID: "id", Key: "key"}
	good, err := s.seal(cookieName, want)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"", string(revokedMark), good, good[1:], good + "A", "AAAA", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var held session
		if err := s.open(cookieName, text, &held); err == nil && held != want || err != nil && text == good {
			t.Errorf("%q: %+v, %v", text, held, err)
		}
	})
}
