package identity_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

func newLogin() identity.Login {
	return identity.Login{
		MachineKey: meshgen.MachineKey(1), NodeKey: meshgen.NodeKey(1), Hostname: "laptop", OS: "linux", IssuedAt: mesh.TimeOf(time.Unix(1_800_000_000, 0)),
	}
}

var sameKeys = cmp.Comparer(func(a, b identity.Login) bool { return a == b })

func TestLinkOpensOnEveryReplicaWithTheSameKey(t *testing.T) {
	service, login := identity.NewServerSecrets(identity.NewServerSecret(1)), newLogin()
	token := identity.NewLoginSealer(service).SealLogin(login)
	other := identity.NewLoginSealer(service)
	for _, link := range []string{token, "https://mesh.example.com/auth/" + token, "/register/" + token} {
		got, ok := other.OpenLogin(link)
		if diff := cmp.Diff(login, got, sameKeys); !ok || diff != "" {
			t.Errorf("%s (-sealed +opened):\n%s", link, diff)
		}
	}
	if _, ok := identity.NewLoginSealer(identity.NewServerSecrets(identity.NewServerSecret(1))).OpenLogin(token); ok {
		t.Error("the link opens with another key")
	}
}

func TestAlteredLinkDoesNotOpen(t *testing.T) {
	s := identity.NewLoginSealer(identity.NewServerSecrets(identity.NewServerSecret(1)))
	token := s.SealLogin(newLogin())
	for i := range len(token) {
		for _, c := range []byte{'A', 'B', '_', '=', 0} {
			if altered := token[:i] + string(c) + token[i+1:]; altered != token {
				if _, ok := s.OpenLogin(altered); ok {
					t.Fatalf("opens with %q at %d", c, i)
				}
			}
		}
	}
	for _, cut := range []string{"", token[:1], token[:21], token[:len(token)-1], token + "A", token + "==", token + token, strings.Repeat("A", 1<<20)} {
		if _, ok := s.OpenLogin(cut); ok {
			t.Errorf("%.40q opens", cut)
		}
	}
}

func TestLinkIsShortWhateverTheDeviceSays(t *testing.T) {
	s, login := identity.NewLoginSealer(identity.NewServerSecrets(identity.NewServerSecret(1))), newLogin()
	login.Hostname, login.OS = strings.Repeat("é", 1000), strings.Repeat("\u2028", 1000)
	token := s.SealLogin(login)
	got, ok := s.OpenLogin(token)
	if !ok || len(token) > 1024 || got.Hostname != strings.Repeat("é", 32) {
		t.Errorf("%d bytes, opens: %v, hostname %q", len(token), ok, got.Hostname)
	}
}

func TestLinkEndsAfterAnHour(t *testing.T) {
	l := newLogin()
	if l.Expired(l.IssuedAt.Add(time.Hour-time.Microsecond)) || !l.Expired(l.IssuedAt.Add(time.Hour)) {
		t.Error("another hour")
	}
}

func TestCodeNamesOneLink(t *testing.T) {
	s := identity.NewLoginSealer(identity.NewServerSecrets(identity.NewServerSecret(1)))
	seen, form := map[string]bool{}, regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{4}-[0-9A-HJKMNP-TV-Z]{4}$`)
	for range 1000 {
		token := s.SealLogin(newLogin())
		code := identity.LoginCode(token)
		if seen[code] || !form.MatchString(code) || code != identity.LoginCode("https://a/auth/"+token) || code != identity.FoldLoginCode(code) {
			t.Fatalf("code %s", code)
		}
		seen[code] = true
		long := identity.LongLoginCode(token)
		if folded, short := identity.FoldLongLoginCode(" " + strings.ToLower(long) + "\n"); len(long) != 24 || folded != long || short != code || long != identity.LongLoginCode("https://a/auth/"+token) {
			t.Fatalf("long code %s of %s", long, code)
		}
		seen[long[8:]] = true
	}
	if len(seen) != 2000 {
		t.Errorf("%d codes and ends of long ones, want 2000 different", len(seen))
	}
	for _, text := range []string{"", "ABCD-EFGH", "ABCDEFGHABCDEFGHABCDEFG", "ABCDEFGHABCDEFGHABCDEFGHA", "ABCDEFGHABCDEFGHABCDEFGU", strings.Repeat("A", 1<<20)} {
		if long, code := identity.FoldLongLoginCode(text); long != "" || code != "" {
			t.Errorf("%.40q is taken for a long code", text)
		}
	}
	for text, want := range map[string]string{
		"abcd-efgh": "ABCD-EFGH", "ABCDEFGH": "ABCD-EFGH", " o1li-2345\n": "0111-2345", "abcd-efg": "", "abcd-efgu": "", "": "", "abcd-efghj": "", "----------": "",
	} {
		if got := identity.FoldLoginCode(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSealOpensForItsPurposeAlone(t *testing.T) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	sealed := identity.Seal(secret, "a", []byte("text"))
	if plain, ok := identity.Unseal(secret, "a", sealed); !ok || string(plain) != "text" {
		t.Errorf("%q %v", plain, ok)
	}
	if _, ok := identity.Unseal(secret, "b", sealed); ok {
		t.Error("opens for another purpose")
	}
	if _, ok := identity.Unseal(secret[1:], "a", sealed); ok {
		t.Error("opens with another secret")
	}
}

func FuzzOpenLogin(f *testing.F) {
	s := identity.NewLoginSealer(identity.NewServerSecrets(identity.ServerSecret{Number: 1, Value: bytes.Repeat([]byte{0x40}, 32)}))
	f.Add(s.SealLogin(newLogin()))
	f.Add("https://a/auth/")
	f.Add("////")
	f.Fuzz(func(t *testing.T, link string) {
		if l, ok := s.OpenLogin(link); ok && (l.MachineKey != meshgen.MachineKey(1) || identity.LoginCode(link) == "") {
			t.Errorf("%q opens", link)
		}
		identity.FoldLoginCode(link)
	})
}
