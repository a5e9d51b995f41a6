package api_test

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// imported stores keys as an import from Headscale does, and returns their texts.
func (s *service) imported() (api, preAuth string) {
	s.t.Helper()
	secret := strings.Repeat("-_s3", 16)
	hash, err := bcrypt.GenerateFromPassword([]byte(secret), bcrypt.MinCost)
	if err != nil {
		s.t.Fatal(err)
	}
	s.put(
		mesh.APIKeyPut{Key: &mesh.APIKey{ID: 100, Prefix: "ab-d_f-hijkl", Bcrypt: mesh.Bcrypt(hash), Access: mesh.Access{Role: mesh.RoleAdmin}}},
		mesh.PreAuthKeyPut{Key: &mesh.PreAuthKey{ID: 100, Prefix: "cd-d_f-hijkl", Bcrypt: mesh.Bcrypt(hash), Tags: []string{"tag:web"}}},
	)
	return "hskey-api-ab-d_f-hijkl-" + secret, "hskey-auth-cd-d_f-hijkl-" + secret
}

func TestImportedKeysGetAFastHashAtTheirFirstUse(t *testing.T) {
	s := sqlite(t)
	api, preAuth := s.imported()
	for range 2 {
		s.call("GET", "/api/v1/user", nil, "Authorization: Bearer "+api).ok()
		if k, _ := s.ledger.World().APIKeys.ByPrefix("ab-d_f-hijkl"); k.Bcrypt != "" || k.Hash == (mesh.Secret{}) {
			t.Error("the API key still has its slow hash")
		}
	}
	if got := s.register(machine(1, preAuth[:len(preAuth)-1]+"x")); got.status == http.StatusOK {
		t.Error("a wrong pre-auth key is accepted")
	}
	if k, _ := s.ledger.World().PreAuthKeys.ByPrefix("cd-d_f-hijkl"); k.Bcrypt == "" {
		t.Error("a wrong pre-auth key replaced the hash")
	}
	s.register(machine(1, preAuth)).ok()
	if k, _ := s.ledger.World().PreAuthKeys.ByPrefix("cd-d_f-hijkl"); k.Bcrypt != "" || !k.Used {
		t.Errorf("the pre-auth key has its slow hash or is unused: %+v", k)
	}
	for _, row := range s.audit() {
		if strings.Contains(string(row.Before)+string(row.After), "$2a$") {
			t.Errorf("the audit log contains a hash: %s", row.After)
		}
	}
}

// While the way back is open, a key has both hashes, and only the fast one is used.
func TestImportedKeysKeepTheirHashWhileTheWayBackIsOpen(t *testing.T) {
	s := sqlite(t)
	api, preAuth := s.imported()
	s.put(mesh.SettingPut{Setting: &mesh.Setting{ID: 1000, Key: mesh.SettingImport, Value: `{"wayBack": true}`, Source: "import"}})
	s.call("GET", "/api/v1/user", nil, "Authorization: Bearer "+api).ok()
	s.register(machine(1, preAuth)).ok()
	w := s.ledger.World()
	k, _ := w.APIKeys.ByPrefix("ab-d_f-hijkl")
	p, _ := w.PreAuthKeys.ByPrefix("cd-d_f-hijkl")
	if k.Bcrypt == "" || p.Bcrypt == "" || k.Hash == (mesh.Secret{}) || p.Hash != k.Hash {
		t.Errorf("%+v\n%+v", k, p)
	}
	s.call("GET", "/api/v1/user", nil, "Authorization: Bearer "+api).ok()
	for range 50 { // each would cost a slow hash, and the network would soon be refused with another status
		if got := s.call("GET", "/api/v1/user", nil, "Authorization: Bearer "+api[:len(api)-1]+"x"); got.status != http.StatusUnauthorized {
			t.Fatalf("a wrong key: %d", got.status)
		}
	}
}

func TestStrangersCannotKeepTheServerHashing(t *testing.T) {
	s := sqlite(t)
	api, preAuth := s.imported()
	unknown := "hskey-api-zz-d_f-hijkl-" + strings.Repeat("x", 64)
	for range 50 { // unknown prefixes are not limited here: they cost no hash
		if got := s.call("GET", "/api/v1/user", nil, "Authorization: Bearer "+unknown); got.status != http.StatusUnauthorized {
			t.Fatalf("an unknown prefix: %d", got.status)
		}
	}
	wrong := api[:len(api)-1] + "x"
	var refused int
	for range 20 {
		switch got := s.call("GET", "/api/v1/user", nil, "Authorization: Bearer "+wrong); got.status {
		case http.StatusUnauthorized:
		case http.StatusTooManyRequests:
			refused++
			if got.header.Get("Retry-After") == "" {
				t.Fatal("no Retry-After")
			}
		default:
			t.Fatalf("a wrong key: %d", got.status)
		}
	}
	if refused < 5 {
		t.Errorf("%d of 20 wrong keys were refused without a hash", refused)
	}
	if got := s.register(machine(1, preAuth[:len(preAuth)-1]+"x")); got.status != http.StatusTooManyRequests {
		t.Errorf("a wrong pre-auth key from the same address: %d", got.status)
	}
}

func TestLogsMaskKeysOfHeadscale(t *testing.T) {
	s := sqlite(t)
	api, preAuth := s.imported()
	former := "a-_defg." + strings.Repeat("s", 32)
	for _, key := range []string{api, preAuth, former, strings.Repeat("0123456789ab", 4)} {
		s.call("GET", "/api/v1/apikey/"+key, nil, "Authorization: Bearer flk_x_y")
		if logged := s.log.text(); strings.Contains(logged, key[len(key)-30:]) || !strings.Contains(logged, "/api/v1/apikey/"+key[:7]) {
			t.Errorf("%s: logged as %s", key, logged)
		}
	}
}
