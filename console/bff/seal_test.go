package bff

import (
	"net/http"
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

// TestASessionIsRenewedNotMoreOftenThanNeeded looks at the cookie that a page sets.
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
		a := c.get("/admin/api/v1/whoami", "Cookie: "+cookieName+"="+text)
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

// FuzzCookie: nothing opens but what was sealed.
func FuzzCookie(f *testing.F) {
	s := sealsOf(f, cookieSecret)
	want := session{ID: "id", Key: "key"}
	good, err := s.seal(cookieName, want)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"", endedMark, good, good[1:], good + "A", "AAAA", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var held session
		if err := s.open(cookieName, text, &held); err == nil && held != want || err != nil && text == good {
			t.Errorf("%q: %+v, %v", text, held, err)
		}
	})
}
