//go:build !race

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tailscale.com/client/tailscale/apitype"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// An application asks the client on its device who a peer is, and is told the groups by which rules let the person
// reach this device, also after a change of membership. Clients before 1.98 do not have groups.
func TestApplicationsReadTheGroupsOfPeople(t *testing.T) {
	t.Parallel()
	ctx := within(t, patience)
	n := startNetwork(t, meshtest.Config{})
	var group struct{ ID string }
	n.scim(ctx, t, http.MethodPost, "Groups", `{"displayName": "dev"}`, &group)
	n.scim(ctx, t, http.MethodPost, "Groups", `{"displayName": "secret"}`, nil)
	if _, err := n.API(ctx, http.MethodPut, "/api/v1/policy", `{"policy": "{\"tagOwners\": {\"tag:app\": []}, \"acls\": [`+
		`{\"action\": \"accept\", \"src\": [\"autogroup:member\"], \"dst\": [\"tag:app:80\"]},`+
		`{\"action\": \"accept\", \"src\": [\"group:dev\"], \"dst\": [\"tag:app:443\"]}]}"}`); err != nil {
		t.Fatal(err)
	}
	var bob struct{ ID string }
	n.scim(ctx, t, http.MethodPost, "Users", `{"userName": "bob", "active": true}`, &bob)
	laptop := n.join(ctx, clienttest.Options{Version: clienttest.Newest}, n.PreAuthKey("bob"), "laptop")
	app := n.join(ctx, clienttest.Options{Version: clienttest.Newest}, n.CLI("preauthkeys", "create", "--tags", "tag:app"), "app")
	await(ctx, t, app, seesOnline("laptop"))
	addr := address(ctx, t, laptop).String()
	awaitGroups := func(want ...string) {
		t.Helper()
		eventually(ctx, t, func() error {
			stdout, stderr, code := app.CLI(ctx, "whois", "--json", addr)
			var who apitype.WhoIsResponse
			if err := json.Unmarshal([]byte(stdout), &who); err != nil || code != 0 {
				return fmt.Errorf("tailscale whois: code %d, %w: %s%s", code, err, stdout, stderr)
			}
			if who.UserProfile == nil || who.UserProfile.LoginName != "bob" || !slices.Equal(who.UserProfile.Groups, want) {
				return fmt.Errorf("tailscale whois says %s, want the groups %v", stdout, want)
			}
			return nil
		})
	}
	awaitGroups()
	n.scim(ctx, t, http.MethodPatch, "Groups/"+group.ID, `{"Operations": [{"op": "add", "path": "members", "value": [{"value": "`+bob.ID+`"}]}]}`, nil)
	awaitGroups("group:dev")
	n.scim(ctx, t, http.MethodPatch, "Groups/"+group.ID, `{"Operations": [{"op": "remove", "path": "members[value eq \"`+bob.ID+`\"]"}]}`, nil)
	awaitGroups()
}

// scim sends a request as an identity provider does, and decodes the response into into, unless it is nil.
func (n network) scim(ctx context.Context, t *testing.T, method, path, body string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, n.URL+"/scim/v2/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+n.APIKey())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: n.Dial}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode >= http.StatusMultipleChoices {
		t.Fatalf("%s %s: %s", method, path, res.Status)
	}
	if into != nil {
		if err := json.NewDecoder(res.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
}
