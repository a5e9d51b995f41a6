package oidc_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/oidc"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
)

func TestProviderIsToldToAskForThePasswordAgain(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{})
	for configured, want := range map[string]string{"": "login", "login": "login", "none": "login", "consent": "login consent", "select_account login": "login select_account"} {
		extra := map[string]string{"max_age": "3600"}
		if configured != "" {
			extra["prompt"] = configured
		}
		p := client(t, i, func(c *oidc.Config) { c.ExtraParams = extra })
		query := func(again bool) url.Values {
			address, err := p.AuthURL(flow, again)
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			return u.Query()
		}
		if q := query(true); q.Get("prompt") != want || q.Get("max_age") != "0" {
			t.Errorf("configured %q: %v", configured, q)
		}
		if q := query(false); q.Get("prompt") != configured || q.Get("max_age") != "3600" {
			t.Errorf("configured %q, and not again: %v", configured, q)
		}
	}
}

func TestOnlyTheIDTokenSaysWhenThePersonSignedIn(t *testing.T) {
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	for name, c := range map[string]struct {
		claim any
		want  time.Time
	}{
		"a time":   {then.Unix(), then},
		"none":     {nil, time.Time{}},
		"text":     {"1", time.Time{}},
		"negative": {-1, time.Time{}},
		"too much": {1e300, time.Time{}},
	} {
		i := oidctest.Start(t, oidctest.Behaviour{
			Claims: map[string]any{"auth_time": c.claim}, UserInfo: map[string]any{"sub": "1", "auth_time": time.Now().Unix()},
		})
		if who, err := signIn(t, client(t, i, nil)); err != nil || !who.AuthTime.Equal(c.want) {
			t.Errorf("%s: %v, %v", name, who.AuthTime, err)
		}
	}
}
