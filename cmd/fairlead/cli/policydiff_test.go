package cli

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

func TestAFileIsComparedWithNoPolicyIfThereIsNone(t *testing.T) {
	socket, _ := listen(t, answering(http.StatusNotFound, "application/problem+json", `{"detail":"there is no policy"}`))
	file := policyFile(t, "{}\n")
	r := fairlead(t, socket, []string{"policy", "diff", "--file", file})
	want := "--- no policy\n+++ " + file + "\n@@ -0,0 +1 @@\n+{}\n"
	if diff := cmp.Diff(want, r.stdout.String()); diff != "" || r.status != 0 {
		t.Errorf("status %d, %s (-want +got):\n%s", r.status, &r.stderr, diff)
	}
}

func TestPolicyByWhichTheViewerLosesTheWayInIsNotSaved(t *testing.T) {
	handler := http.NewServeMux()
	handler.HandleFunc("POST /api/v1/policy/preview", func(w http.ResponseWriter, r *http.Request) {
		effect := openapi.PolicyEffect{Guards: []openapi.PolicyGuard{}}
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"viewer":"alice"`) {
			effect.Guards = []openapi.PolicyGuard{{Kind: "ownWayIn", Text: "alice cannot reach gw on 22 any more"}}
		}
		reply(w, effect)
	})
	handler.HandleFunc("PUT /api/v1/policy", func(w http.ResponseWriter, _ *http.Request) { reply(w, cannedPolicy()) })
	file := policyFile(t, "{}")
	atTerminal := func(answer string) func(*Env) {
		return func(env *Env) { env.Terminal, env.Stdin = true, strings.NewReader(answer) }
	}
	const preview, put = "POST /api/v1/policy/preview", "PUT /api/v1/policy"
	for _, c := range []struct {
		args   string
		env    []func(*Env)
		status int
		sent   []string
	}{
		{"", nil, 0, []string{preview, put}},
		{" --force", nil, 0, []string{put}},
		{" --viewer alice", nil, 1, []string{preview}},
		{" --viewer alice --force", nil, 0, []string{put}},
		{" --viewer alice", []func(*Env){atTerminal("n\n")}, 1, []string{preview}},
		{" --viewer alice", []func(*Env){atTerminal("y\n")}, 0, []string{preview, put}},
	} {
		socket, log := listen(t, handler)
		r := fairlead(t, socket, strings.Fields("policy set "+file+c.args), c.env...)
		var sent []string
		for _, req := range log.requests() {
			sent = append(sent, req.Method+" "+req.Path)
		}
		if diff := cmp.Diff(c.sent, sent); diff != "" || r.status != c.status {
			t.Errorf("%q: status %d, %s, sent (-want +got):\n%s", c.args, r.status, &r.stderr, diff)
		}
		if c.status == 1 && !strings.Contains(r.stderr.String(), "alice cannot reach gw on 22 any more") {
			t.Errorf("%q: %s", c.args, &r.stderr)
		}
	}
}
