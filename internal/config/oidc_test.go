package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const provider = "issuer: https://id.example, client_id: mesh"

func TestRefusedProviders(t *testing.T) {
	refused(t, map[string]string{
		`oidc: {issuer: "http://id.example", client_id: mesh}`:                                 `oidc.issuer: must begin with https://`,
		`oidc: {issuer: id.example, client_id: mesh}`:                                          `oidc.issuer: must be an absolute URL`,
		`oidc: {issuer: "https://id.example?a=b", client_id: mesh}`:                            `oidc.issuer: must be a URL without a query`,
		`oidc: {client_id: mesh}`:                                                              `oidc.issuer: is required if another key of oidc is set`,
		`oidc: {issuer: https://id.example}`:                                                   `oidc.client_id: is required`,
		`oidc: {` + provider + `, client_secret: a, client_secret_path: /b}`:                   `oidc.client_secret_path: client_secret is also set`,
		`oidc: {` + provider + `, providers: [{issuer: "https://id.example/", client_id: b}]}`: `oidc.providers[0].issuer: is listed twice`,
		`oidc: {providers: [{client_id: b}]}`:                                                  `oidc.providers[0].issuer: is required`,
		`oidc: {providers: [{issuer: https://id.example, client: b}]}`:                         `oidc.providers[0].client: unknown key`,
		`oidc: {providers: [{issuer: https://id.example, pkce: {enabled: maybe}}]}`:            `oidc.providers[0].pkce.enabled: must be true or false`,
		`oidc: {providers: {issuer: https://id.example}}`:                                      `oidc.providers: must be a list of sections`,
		`oidc: {` + provider + `, extra_params: [a]}`:                                          `oidc.extra_params: must be a section of texts`,
		`oidc: {` + provider + `, groups_map: {/staff: 'the staff'}}`:                          `oidc.groups_map./staff: must be the name of a group in the policy`,
		`oidc: {` + provider + `, groups_map: {/staff: 'group:staff'}}`:                        `oidc.groups_map./staff: must be the name of a group in the policy`,
		`oidc: {` + provider + `, roles: [admins]}`:                                            `oidc.roles: must be a section with lists of groups`,
		`oidc: {` + provider + `, roles: {boss: [staff]}}`:                                     `oidc.roles.boss: unknown role "boss": use member, read, operator or admin`,
		`oidc: {` + provider + `, roles: {member: [staff]}}`:                                   `oidc.roles.member: everyone without another role is a member`,
		`oidc: {` + provider + `, roles: {admin: ['group:staff']}}`:                            `oidc.roles.admin[0]: must be the name of a group in the policy`,
		`oidc: {providers: [{issuer: https://id.example, client_id: b, roles: {boss: [a]}}]}`:  `oidc.providers[0].roles.boss: unknown role`,
		`oidc: on`: `oidc: must be a section of keys`,
	})
}

func TestKeysForEveryoneWhoSignsInNeedNoFirstProvider(t *testing.T) {
	const keys = `oidc: {console_urls: ["https://console.example.com/admin/"], session_expiry: 8h`
	for _, more := range []string{`}`, `, user_approval_required: true, providers: [{issuer: https://id.example, client_id: b}]}`} {
		c := mustLoad(t, minimal+keys+more)
		if len(c.OIDC.ConsoleURLs) != 1 || c.OIDC.SessionExpiry != 8*time.Hour {
			t.Errorf("%s: %+v", more, c.OIDC)
		}
	}
	refused(t, map[string]string{keys + `, client_id: mesh}`: `oidc.issuer: is required if another key of oidc is set`})
}

func TestProviderOnThisMachineNeedsNoTLS(t *testing.T) {
	for _, issuer := range []string{"http://127.0.0.1:5556", "http://localhost:5556/dex", "http://[::1]:1"} {
		c := mustLoad(t, minimal+`oidc: {issuer: "`+issuer+`", client_id: mesh}`)
		if all := c.OIDC.All(); len(all) != 1 || all[0].Issuer != issuer {
			t.Errorf("%s: %+v", issuer, all)
		}
	}
}

func TestClientSecretIsReadFromItsFileAndNeverShown(t *testing.T) {
	t.Setenv("FAIRLEAD_TEST_DIR", t.TempDir())
	if err := os.WriteFile(filepath.Join(os.Getenv("FAIRLEAD_TEST_DIR"), "secret"), []byte(" "+password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := mustLoad(t, minimal+"oidc: {"+provider+", client_secret_path: $FAIRLEAD_TEST_DIR/secret, providers: [{issuer: https://b.example, client_id: b, client_secret: "+password+"}]}")
	got, err := c.OIDC.All()[0].ReadSecret()
	if err != nil || string(got) != password {
		t.Errorf("read %q, %v", string(got), err)
	}
	if text := c.String(); strings.Contains(text, password) || !strings.Contains(text, "b.example") {
		t.Errorf("shown as %s", text)
	}
	if found := c.Secrets(); len(found) != 1 || found[0] != password {
		t.Errorf("%d secrets are known", len(found))
	}
	c = mustLoad(t, minimal+"oidc: {"+provider+", client_secret_path: /nowhere/secret}")
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "cannot read the client secret of https://id.example from client_secret_path /nowhere/secret") {
		t.Errorf("a missing file: %v", err)
	}
}
