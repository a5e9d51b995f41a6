package main_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Existing tools and clients request these paths outside the API, without a key.
func TestToolsFindWhatIsBesideTheAPI(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	p := serve(t, s.with("derp.server.enabled", "true", "derp.server.region_id", "900", "derp.server.stun_listen_addr", "127.0.0.1:0", "derp.server.private_key_path", s["noise.private_key_path"]+".relay"))
	stranger := p.client("x")
	stranger.key = ""
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "/health", "", 200, `"status":"pass"`},
		{"GET", "/version", "", 200, `"version":"0.28.0"`},
		{"GET", "/key?v=130", "", 200, `"publicKey":"mkey:`},
		{"GET", "/", "", 200, "tailscale up --login-server"},
		{"GET", "/apple", "", 200, "<html"},
		{"GET", "/windows", "", 200, "<html"},
		{"GET", "/register/unknown", "", 404, "<html"},
		{"GET", "/auth/unknown", "", 404, "<html"},
		{"POST", "/verify", `{"NodePublic":"nodekey:` + strings.Repeat("0", 63) + `1"}`, 200, `"Allow":false`},
		{"GET", "/derp/probe", "", 200, ""},
		{"GET", "/derp/latency-check", "", 200, ""},
		{"GET", "/bootstrap-dns", "", 200, "{"},
		{"GET", "/swagger", "", 404, "/api/v1/docs"},
		{"GET", "/swagger/v1/openapiv2.json", "", 404, "/api/v1/docs"}, // Headplane 0.6
		{"GET", "/apple/ios", "", 404, "/api/v1/docs"},                 // for configuration profiles
		{"POST", "/register/confirm/unknown", "", 404, "/api/v1/docs"}, // for OIDC
		{"GET", "/metrics", "", 404, "metrics_listen_addr"},
	} {
		status, body, err := stranger.do(c.method, c.path, c.body)
		if err != nil || status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s %s: %d (%v) %.300s", c.method, c.path, status, err, body)
		}
	}
	// Headscale has these operations and we do not: the path names of 0.22, nodes that exist only for
	// tests, and OAuth clients.
	for _, call := range []string{"GET /api/v1/machine", "POST /api/v1/debug/node", "GET /api/v2/tailnet/-/keys"} {
		method, path, _ := strings.Cut(call, " ")
		status, body, err := p.client("").do(method, path, "")
		if err != nil || status != 404 && status != 405 || !strings.Contains(body, path) {
			t.Errorf("%s: %d (%v) %s", call, status, err, body)
		}
	}
}

// From 0.30 on, the headscale CLI uses HTTP. These are its calls on the server's own host:
// over the local socket, without a key.
func TestNextHeadscaleCommandLineWorksOverTheSocket(t *testing.T) {
	t.Parallel()
	p := serve(t, onSQLite(t))
	cli := p.client("")
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
	const policy = `"{\"tagOwners\": {\"tag:ci\": []}, \"acls\": [{\"action\": \"accept\", \"src\": [\"*\"], \"dst\": [\"*:*\"]}]}"`
	key := between(cli.must(t, 200, "POST", "/api/v1/user", `{"name":"alice"}`)+
		cli.must(t, 200, "POST", "/api/v1/preauthkey", `{"aclTags":[],"ephemeral":false,"expiration":"`+later+`","reusable":true,"user":"1"}`), `"key":"`, `"`)
	cli.must(t, 200, "POST", "/api/v1/machine", fmt.Sprintf(`{"preAuthKey":%q,"machineKey":"mkey:%064d","nodeKey":"nodekey:%064d","hostname":"web","routableIPs":["10.0.0.0/8"]}`, key, 1, 2))
	prefix := between(cli.must(t, 200, "POST", "/api/v1/apikey", `{"expiration":"`+later+`"}`)+cli.must(t, 200, "GET", "/api/v1/apikey", ""), `"prefix":"`, `"`)
	for _, c := range []struct {
		command, method, path, body string
		status                      int
		says                        string
	}{
		{"health", "GET", "/api/v1/health", "", 200, `"databaseConnectivity":true`},
		{"users list", "GET", "/api/v1/user", "", 200, `"name":"alice"`},
		{"users list --name", "GET", "/api/v1/user?name=alice", "", 200, `"id":"1"`},
		{"users list --identifier", "GET", "/api/v1/user?id=1", "", 200, `"name":"alice"`},
		{"users create", "POST", "/api/v1/user", `{"displayName":"Bob","email":"bob@example.com","name":"bob"}`, 200, `"id":"2"`},
		{"users create, again", "POST", "/api/v1/user", `{"name":"bob"}`, 409, `"detail":"`},
		{"users rename", "POST", "/api/v1/user/2/rename/rob", "", 200, `"name":"rob"`},
		{"users destroy", "DELETE", "/api/v1/user/2", "", 200, `{`},
		{"preauthkeys create --tags", "POST", "/api/v1/preauthkey", `{"aclTags":["tag:ci"],"ephemeral":false,"expiration":"` + later + `","reusable":false,"user":"0"}`, 200, `"user":null`},
		{"preauthkeys list", "GET", "/api/v1/preauthkey", "", 200, `"aclTags":["tag:ci"]`},
		{"preauthkeys expire", "POST", "/api/v1/preauthkey/expire", `{"id":"2"}`, 200, `{}`},
		{"preauthkeys delete", "DELETE", "/api/v1/preauthkey?id=2", "", 200, `{}`},
		{"nodes list", "GET", "/api/v1/node", "", 200, `"availableRoutes":["10.0.0.0/8"]`},
		{"nodes list --user", "GET", "/api/v1/node?user=alice", "", 200, `"givenName":"web"`},
		{"nodes expire", "POST", "/api/v1/node/1/expire", `{"expiry":"` + time.Now().UTC().Format(time.RFC3339Nano) + `"}`, 200, `"expiry":"2`},
		{"nodes expire --disable", "POST", "/api/v1/node/1/expire", `{"disableExpiry":true}`, 200, `"expiry":null`},
		{"nodes rename", "POST", "/api/v1/node/1/rename/www", "", 200, `"givenName":"www"`},
		{"nodes approve-routes", "POST", "/api/v1/node/1/approve_routes", `{"routes":["10.0.0.0/8"]}`, 200, `"approvedRoutes":["10.0.0.0/8"]`},
		{"nodes approve-routes, none", "POST", "/api/v1/node/1/approve_routes", `{"routes":[]}`, 200, `"approvedRoutes":[]`},
		{"nodes backfillips", "POST", "/api/v1/node/backfillips?confirmed=true", "", 200, `{"changes":[]}`},
		{"nodes register", "POST", "/api/v1/node/register?key=234567892345678923456789&user=alice", "", 404, `"detail":"no device is waiting`},
		{"auth register", "POST", "/api/v1/auth/register", `{"authId":"2345-6789","user":"alice"}`, 404, `"detail":"no device is waiting`},
		{"auth reject", "POST", "/api/v1/auth/reject", `{"authId":"2345-6789"}`, 404, `"detail":"no device is waiting`},
		{"policy get, without one", "GET", "/api/v1/policy", "", 404, "acl policy not found"},
		{"policy check", "POST", "/api/v1/policy/check", `{"policy":` + policy + `}`, 200, `{}`},
		{"policy check, of a bad one", "POST", "/api/v1/policy/check", `{"policy":"{"}`, 400, `"detail":"line 1`},
		{"policy set", "PUT", "/api/v1/policy", `{"policy":` + policy + `}`, 200, `"updatedAt":"2`},
		{"policy get", "GET", "/api/v1/policy", "", 200, `"policy":` + policy},
		{"nodes tag", "POST", "/api/v1/node/1/tags", `{"tags":["tag:ci"]}`, 200, `"tags":["tag:ci"]`},
		{"nodes delete, first", "GET", "/api/v1/node/1", "", 200, `"id":"1"`},
		{"nodes delete", "DELETE", "/api/v1/node/1", "", 200, `{}`},
		{"apikeys expire --id", "POST", "/api/v1/apikey/expire", `{"id":"1"}`, 200, `{`},
		{"apikeys expire --prefix", "POST", "/api/v1/apikey/expire", `{"prefix":"` + prefix + `"}`, 200, `{`},
		{"apikeys delete", "DELETE", "/api/v1/apikey/" + url.PathEscape(prefix), "", 200, `{}`},
		{"oauth-clients, which is not supported", "GET", "/api/v2/tailnet/-/keys", "", 404, `"status":404`},
	} {
		status, body, err := cli.do(c.method, c.path, c.body)
		if err != nil || status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("headscale %s: %s %s: %d (%v) %.400s", c.command, c.method, c.path, status, err, body)
		}
	}
}

// between returns the part of text between two words.
func between(text, after, before string) string {
	_, text, _ = strings.Cut(text, after)
	text, _, _ = strings.Cut(text, before)
	return text
}
