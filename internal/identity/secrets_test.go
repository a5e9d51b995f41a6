package identity_test

import (
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/identity"
)

func TestRotatedSecretsStillReadWhatIsStored(t *testing.T) {
	first, second := identity.NewServerSecret(1), identity.NewServerSecret(2)
	s := identity.NewServerSecrets(first)
	hooks, tokens, cookies, logins := identity.NewWebhookSecrets(s), identity.NewTokenSealer(s), identity.NewCookieSealer(s), identity.NewLoginSealer(s)
	salt := hooks.NewSalt()
	secret, token, login := hooks.Secret(salt), tokens.SealToken("1", "refresh"), logins.SealLogin(newLogin())
	cookie, _ := cookies.SealCookie("a", "content")

	s.Replace(first, second)
	if hooks.Secret(salt) != secret {
		t.Error("the secret of an existing webhook changed")
	}
	if got, ok := tokens.OpenToken("1", token); !ok || got != "refresh" {
		t.Error("a stored token cannot be opened")
	}
	var content string
	if cookies.OpenCookie("a", cookie, &content) {
		t.Error("a cookie of the old secret, which may have leaked, is accepted")
	}
	if _, ok := logins.OpenLogin(login); ok {
		t.Error("a login link of the old secret, which may have leaked, is accepted")
	}

	next := hooks.NewSalt()
	onlySecond := identity.NewServerSecrets(second)
	if identity.WebhookSaltNumber(salt) != 1 || identity.WebhookSaltNumber(next) != 2 || identity.NewWebhookSecrets(onlySecond).Secret(next) != hooks.Secret(next) {
		t.Error("the secret of a new webhook is not derived from the new secret")
	}
	if _, ok := identity.NewTokenSealer(onlySecond).OpenToken("1", tokens.SealToken("1", "refresh")); !ok {
		t.Error("a new token is not sealed with the new secret")
	}
}

// A replica without the database does not learn of a rotation, but must be able to ask the others.
func TestReplicasRecogniseEachOtherAcrossARotation(t *testing.T) {
	a, b, c := identity.NewServerSecret(1), identity.NewServerSecret(2), identity.NewServerSecret(3)
	for name, test := range map[string]struct {
		asks, answers []identity.ServerSecret
		want          bool
	}{
		"same":             {[]identity.ServerSecret{a}, []identity.ServerSecret{a}, true},
		"behind":           {[]identity.ServerSecret{a}, []identity.ServerSecret{a, b}, true},
		"two behind":       {[]identity.ServerSecret{a}, []identity.ServerSecret{a, b, c}, false},
		"both rotated":     {[]identity.ServerSecret{a, b}, []identity.ServerSecret{a, b}, true},
		"another's secret": {[]identity.ServerSecret{b}, []identity.ServerSecret{a}, false},
	} {
		asks, answers := identity.NewReplicaKey(identity.NewServerSecrets(test.asks...)), identity.NewReplicaKey(identity.NewServerSecrets(test.answers...))
		if answers.Signed(asks.Sign("a", "bc"), "a", "bc") != test.want || asks.Signed(answers.Sign("x"), "x") != test.want {
			t.Errorf("%s: want %t", name, test.want)
		}
		if answers.Signed(asks.Sign("a", "bc"), "ab", "c") || answers.Signed("", "a") || answers.Signed(",", "a") {
			t.Errorf("%s: a wrong proof is accepted", name)
		}
	}
}
