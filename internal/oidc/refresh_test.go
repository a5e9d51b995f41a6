package oidc_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/oidc"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func TestLogNamesPeopleWhoCannotBeRechecked(t *testing.T) {
	const warning = "person signed in who cannot be rechecked"
	ann := map[string]any{"sub": "ann-7", "email": "ann@example.com", "name": "Ann"}
	for name, c := range map[string]struct {
		behave oidctest.Behaviour
		want   []string // of the warning; none means no warning
	}{
		"a token":          {oidctest.Behaviour{Offline: true, Claims: ann}, nil},
		"no token":         {oidctest.Behaviour{Claims: ann}, []string{"account=ann@example.com", "subject=ann-7", "no refresh token"}},
		"no offline scope": {oidctest.Behaviour{Offline: true, Scope: "openid", Claims: ann}, []string{"account=ann@example.com", "subject=ann-7", "offline_access"}},
		"only a name":      {oidctest.Behaviour{Claims: map[string]any{"sub": "ann-7", "email": nil, "preferred_username": 7, "name": "Ann\nB"}}, []string{`account="Ann B"`, "subject=ann-7"}},
		"only a subject":   {oidctest.Behaviour{Claims: map[string]any{"sub": "ann-7", "email": nil, "preferred_username": nil, "name": nil}}, []string{`account=""`, "subject=ann-7"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log waittest.Transcript
			i := oidctest.Start(t, c.behave)
			p := client(t, i, func(c *oidc.Config) { c.Offline, c.Log = true, slog.New(slog.NewTextHandler(&log, nil)) })
			who, err := signIn(t, p)
			if err != nil || (who.RefreshToken == "") != (c.want != nil) {
				t.Fatalf("%+v, %v", who, err)
			}
			if n := strings.Count(log.String(), warning); n != min(1, len(c.want)) {
				t.Errorf("%d warnings: %s", n, log.String())
			}
			for _, text := range c.want {
				if !strings.Contains(log.String(), text) {
					t.Errorf("%q is not in the log: %s", text, log.String())
				}
			}
			for _, secret := range i.Secrets() {
				if strings.Contains(log.String(), secret) {
					t.Errorf("%s is logged", secret)
				}
			}
		})
	}
}
