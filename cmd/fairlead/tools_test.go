package main_test

import (
	"strings"
	"testing"
)

// What existing tools and clients ask for beside the API, without a key.
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
		{"GET", "/apple", "", 200, "<html"},
		{"GET", "/windows", "", 200, "<html"},
		{"GET", "/register/unknown", "", 404, "<html"},
		{"GET", "/auth/unknown", "", 404, "<html"},
		{"POST", "/verify", `{"NodePublic":"nodekey:` + strings.Repeat("0", 63) + `1"}`, 200, `"Allow":false`},
		{"GET", "/derp/probe", "", 200, ""},
		{"GET", "/derp/latency-check", "", 200, ""},
		{"GET", "/bootstrap-dns", "", 200, "{"},
		{"GET", "/swagger", "", 404, "/api/v1/docs"},
		{"GET", "/metrics", "", 404, "metrics_listen_addr"},
	} {
		status, body, err := stranger.do(c.method, c.path, c.body)
		if err != nil || status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s %s: %d (%v) %.300s", c.method, c.path, status, err, body)
		}
	}
}
