package identity_test

import (
	"crypto/sha256"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

func slowHash(t *testing.T, secret string, cost int) mesh.Bcrypt {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(secret), cost)
	if err != nil {
		t.Fatal(err)
	}
	return mesh.Bcrypt(hash)
}

func TestImportedAPIKeysAreVerifiedInAllForms(t *testing.T) {
	const prefix, formerPrefix, firstPrefix = "ab-d_f-hijkl", "a-_defg", "a-_defg-_j"
	secret, formerSecret, firstSecret := strings.Repeat("-_s3", 16), strings.Repeat("x.-_", 8), strings.Repeat("x-_", 14)+"x"
	s, _ := mesh.Apply(mesh.Empty(), 1,
		mesh.APIKeyPut{Key: &mesh.APIKey{ID: 1, Prefix: prefix, Bcrypt: slowHash(t, secret, bcrypt.MinCost)}},
		mesh.APIKeyPut{Key: &mesh.APIKey{ID: 2, Prefix: formerPrefix, Bcrypt: slowHash(t, formerSecret, bcrypt.MinCost)}},
		mesh.APIKeyPut{Key: &mesh.APIKey{ID: 3, Prefix: "expired-----", Bcrypt: slowHash(t, secret, bcrypt.MinCost), Expiry: 5}},
		mesh.APIKeyPut{Key: &mesh.APIKey{ID: 4, Prefix: firstPrefix, Bcrypt: slowHash(t, firstSecret, bcrypt.MinCost)}},
	)
	for text, want := range map[string]struct {
		id mesh.KeyID
		ok bool
	}{
		"hskey-api-" + prefix + "-" + secret:                  {1, true},
		"hskey-api-" + prefix + "-" + strings.Repeat("x", 64): {1, false},
		formerPrefix + "." + formerSecret:                     {2, true},
		formerPrefix + "." + strings.Repeat("x", 32):          {2, false},
		firstPrefix + "." + firstSecret:                       {4, true},
		firstPrefix + "." + strings.Repeat("x", 43):           {4, false},
		firstPrefix + "-" + firstSecret:                       {},
		"hskey-api-expired------" + secret:                    {},
		"hskey-api-" + prefix + "." + secret:                  {},
		"hskey-api-unknown-----" + "-" + secret:               {},
		"hskey-auth-" + prefix + "-" + secret:                 {},
		"hskey-api-" + prefix + "-" + secret + "x":            {},
		strings.Repeat("x", 500):                              {},
		"":                                                    {},
	} {
		if k, ok := identity.APIKey(s, text, 10); ok {
			t.Errorf("%q: accepted as key %d without its hash", text, k.ID)
		}
		k, unverified, found := identity.UnverifiedAPIKey(s, text, 10)
		if found != (want.id != 0) || found && k.ID != want.id {
			t.Errorf("%q: found %t, want key %d", text, found, want.id)
			continue
		}
		if !found {
			continue
		}
		hash, ok := unverified.Verify()
		if ok != want.ok {
			t.Errorf("%q: %t", text, ok)
		}
		if !ok {
			continue
		}
		used := *k
		used.Hash, used.Bcrypt = hash, ""
		after, _ := mesh.Apply(s, 2, mesh.APIKeyPut{Key: &used})
		if again, ok := identity.APIKey(after, text, 10); !ok || again.ID != want.id {
			t.Errorf("%q: not accepted by the fast hash", text)
		}
		if _, _, slow := identity.UnverifiedAPIKey(after, text, 10); slow {
			t.Errorf("%q: still needs the slow hash", text)
		}
	}
}

func TestImportedPreAuthKeysAreVerifiedInBothForms(t *testing.T) {
	const prefix = "ab-d_f-hijkl"
	secret := strings.Repeat("-_s3", 16)
	former := strings.Repeat("0123456789ab", 4)
	stored, ok := identity.FormerPreAuthKey(former)
	if !ok || stored.Prefix != former[:12] || stored.Hash != mesh.Secret(sha256.Sum256([]byte(former[12:]))) {
		t.Fatalf("%+v, %t", stored, ok)
	}
	for _, text := range []string{"", former[1:], former + "0", strings.ToUpper(former), strings.Repeat("g", 48)} {
		if _, ok := identity.FormerPreAuthKey(text); ok {
			t.Errorf("%q: accepted", text)
		}
	}
	s, _ := mesh.Apply(mesh.Empty(), 1,
		mesh.PreAuthKeyPut{Key: &mesh.PreAuthKey{ID: 1, Prefix: prefix, Bcrypt: slowHash(t, secret, bcrypt.MinCost)}},
		mesh.PreAuthKeyPut{Key: &mesh.PreAuthKey{ID: 2, Prefix: stored.Prefix, Hash: stored.Hash}},
	)
	if k, ok := identity.PreAuthKey(s, former); !ok || k.ID != 2 {
		t.Error("a former key is refused")
	}
	if _, ok := identity.PreAuthKey(s, former[:47]+"0"); ok {
		t.Error("a wrong former key is accepted")
	}
	k, unverified, ok := identity.UnverifiedPreAuthKey(s, "hskey-auth-"+prefix+"-"+secret)
	if !ok || k.ID != 1 {
		t.Fatal("the key is not found")
	}
	if hash, ok := unverified.Verify(); !ok || hash != mesh.Secret(sha256.Sum256([]byte(secret))) {
		t.Error("the key is refused")
	}
	if _, _, ok := identity.UnverifiedPreAuthKey(s, former); ok {
		t.Error("a former key needs a slow hash")
	}
}

// A hash with a high cost would occupy a core for minutes.
func TestExpensiveHashesAreNotComputed(t *testing.T) {
	for hash, want := range map[mesh.Bcrypt]bool{
		slowHash(t, "x", bcrypt.MinCost):                 true,
		"$2a$12$" + mesh.Bcrypt(strings.Repeat("a", 53)): true,
		"$2a$13$" + mesh.Bcrypt(strings.Repeat("a", 53)): false,
		"$2a$31$" + mesh.Bcrypt(strings.Repeat("a", 53)): false,
		"plain text": false,
		"":           false,
	} {
		if identity.UsableBcrypt(hash) != want {
			t.Errorf("%s: want %t", hash, want)
		}
	}
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.APIKeyPut{Key: &mesh.APIKey{ID: 1, Prefix: "a-_defg", Bcrypt: "$2a$31$" + mesh.Bcrypt(strings.Repeat("a", 53))}})
	if _, unverified, ok := identity.UnverifiedAPIKey(s, "a-_defg."+strings.Repeat("x", 32), 1); !ok {
		t.Error("not found")
	} else if _, ok := unverified.Verify(); ok {
		t.Error("accepted")
	}
}

func TestImportedKeysAreReferredToByPrefix(t *testing.T) {
	for text, want := range map[string]string{
		"hskey-api-ab-d_f-hijkl-" + strings.Repeat("s", 64): "ab-d_f-hijkl",
		"hskey-api-ab-d_f-hijkl-***":                        "ab-d_f-hijkl",
		"flk_ab-d_f-hijkl_***":                              "ab-d_f-hijkl",
		"ab-d_f-hijkl":                                      "ab-d_f-hijkl",
		"a-_defg." + strings.Repeat("s", 32):                "a-_defg",
		"flk_a-_defg_***":                                   "a-_defg",
		"a-_defg-_j." + strings.Repeat("s", 43):             "a-_defg-_j",
		"flk_a-_defg-_j_***":                                "a-_defg-_j",
	} {
		if ref := identity.ParseRef(identity.KindAPI, text); ref.Prefix != want {
			t.Errorf("%q: %q, want %q", text, ref.Prefix, want)
		}
	}
}
