package identity_test

import (
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/identity"
)

func TestCookiesAreOpenedOnlyForTheirPurpose(t *testing.T) {
	k := identity.NewServerSecrets(identity.NewServerSecret(1))
	s := identity.NewCookieSealer(k)
	text, ok := s.SealCookie("a", "<content>")
	if !ok || strings.Contains(text, "content") {
		t.Fatalf("%q, %t", text, ok)
	}
	var got string
	if !identity.NewCookieSealer(k).OpenCookie("a", text, &got) || got != "<content>" {
		t.Errorf("opened as %q", got)
	}
	other := "A"
	if text[30] == 'A' {
		other = "B"
	}
	changed := text[:30] + other + text[31:]
	for name, open := range map[string]bool{
		"another purpose": s.OpenCookie("b", text, &got),
		"another key":     identity.NewCookieSealer(identity.NewServerSecrets(identity.NewServerSecret(1))).OpenCookie("a", text, &got),
		"changed":         s.OpenCookie("a", changed, &got),
		"cut":             s.OpenCookie("a", text[:len(text)-4], &got),
		"empty":           s.OpenCookie("a", "", &got),
		"not base64":      s.OpenCookie("a", "!", &got),
		"another type":    s.OpenCookie("a", text, new(int)),
	} {
		if open {
			t.Error(name + ": opened")
		}
	}
	if _, ok := s.SealCookie("a", strings.Repeat("x", 3000)); ok {
		t.Error("a cookie that browsers refuse")
	}
}
