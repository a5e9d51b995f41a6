//go:build !race

package deploytest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// testCommands runs every command from the specification's table the way the specification does:
// inside the server's container.
func testCommands(t *testing.T, s *Stack) {
	s = s.In(t)
	fairlead := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(s.Exec("fairlead", append([]string{"fairlead"}, args...)...))
	}
	ids := func(args ...string) []string {
		t.Helper()
		var rows []struct{ ID string }
		if err := json.Unmarshal([]byte(fairlead(append(args, "--output=json")...)), &rows); err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, row := range rows {
			found = append(found, row.ID)
		}
		return found
	}

	fairlead("health")
	fairlead("users", "create", "alice")
	wantText(t, fairlead("users", "list"), "alice")

	key := fairlead("preauthkeys", "create", "--user", "alice", "--reusable", "--ephemeral", "--expiration", "24h", "--tags", "tag:lab")
	wantText(t, key, "flp_")
	fairlead("preauthkeys", "expire", "--user", "alice", "--key", ids("preauthkeys", "list", "--user", "alice")[0])
	if left := ids("preauthkeys", "list", "--user", "alice", "--valid"); len(left) != 0 {
		t.Errorf("keys still valid after the only one was expired: %q", left)
	}

	for _, flag := range []string{"--key", "--prefix"} {
		key := fairlead("apikeys", "create", "--expiration", "999d")
		id := strings.Split(key, "_")[1]
		wantText(t, fairlead("apikeys", "list"), id)
		url := "http://" + s.Addr("PROXY_DEV_PUBLISH") + "/api/v1/user"
		if status, body := send(t, http.MethodGet, url, key, nil); status != http.StatusOK {
			t.Errorf("with an API key: %d\n%s", status, body)
		}
		fairlead("apikeys", "expire", flag, id)
		if status, _ := send(t, http.MethodGet, url, key, nil); status != http.StatusUnauthorized {
			t.Errorf("after apikeys expire %s: %d", flag, status)
		}
	}

	join(t, s, fairlead("preauthkeys", "create", "--user", "alice"))
	node := ids("nodes", "list")[0]
	fairlead("routes", "enable", "--route-id", ids("routes", "list")[0])
	wantText(t, fairlead("routes", "list"), "10.20.0.0/24")
	wantText(t, s.Logs("fairlead"), "node registered", "route enabled")

	fairlead("nodes", "expire", "--all-offline", "--force")
	fairlead("nodes", "expire", "--all", "--force")
	fairlead("nodes", "delete", "--identifier", node, "--force")
	if left := ids("nodes", "list"); len(left) != 0 {
		t.Errorf("nodes after the last was deleted: %q", left)
	}
}

// join registers a node with a route through the proxy.
func join(t *testing.T, s *Stack, key string) {
	t.Helper()
	status, body := send(t, http.MethodPost, "http://"+s.Addr("PROXY_DEV_PUBLISH")+"/api/v1/machine", "", map[string]any{
		"preAuthKey":  key,
		"machineKey":  "mkey:" + strings.Repeat("1a", 32),
		"nodeKey":     "nodekey:" + strings.Repeat("2b", 32),
		"hostname":    "router",
		"routableIPs": []string{"10.20.0.0/24"},
	})
	if status != http.StatusOK {
		t.Fatalf("registration: %d\n%s", status, body)
	}
}
