package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

func TestLongListsAreReadPageByPage(t *testing.T) {
	socket, log := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("cursor") {
		case "":
			reply(w, openapi.NodeList{Nodes: nodes()[:1], Next: new("1")})
		case "1":
			reply(w, openapi.NodeList{Nodes: nodes()[1:], Next: new("8")})
		default:
			reply(w, openapi.NodeList{Nodes: []openapi.Node{}})
		}
	}))
	paged := fairlead(t, socket, strings.Fields("nodes list --user alice --tag tag:web --online --route 10.0.0.0/8 --os linux --search lap"))
	canned, _ := listen(t, cannedServer())
	whole := fairlead(t, canned, []string{"nodes", "list"})
	if diff := cmp.Diff(whole.stdout.String(), paged.stdout.String()); diff != "" || paged.status != 0 {
		t.Errorf("(-whole +pages):\n%s%s", diff, &paged.stderr)
	}
	const filters = "/api/v1/node?user=alice&tag=tag%3Aweb&online=true&route=10.0.0.0%2F8&os=linux&search=lap&limit=1000"
	var asked []string
	for _, r := range log.requests() {
		asked = append(asked, r.Path)
	}
	want := []string{filters, filters + "&cursor=1", filters + "&cursor=8"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestListsAreFiltered(t *testing.T) {
	for command, query := range map[string]string{
		"nodes list --offline":                        "/api/v1/node?online=false&limit=1000",
		"preauthkeys list --valid":                    "/api/v1/preauthkey?valid=true",
		"preauthkeys list --invalid --user 1":         "/api/v1/preauthkey?user=1&valid=false",
		"apikeys list --valid":                        "/api/v1/apikey?valid=true",
		"apikeys list --invalid":                      "/api/v1/apikey?valid=false",
		"apikeys list":                                "/api/v1/apikey",
		"routes list --disabled --node web --primary": "/api/v1/routes?node=web&enabled=false&primary=true&limit=1000",
	} {
		socket, log := listen(t, cannedServer())
		r := fairlead(t, socket, strings.Fields(command))
		if seen := log.requests(); r.status != 0 || len(seen) != 1 || seen[0].Path != query {
			t.Errorf("%s: %v, want %s\n%s", command, seen, query, &r.stderr)
		}
	}
	for command, problem := range map[string]string{
		"nodes list --online --offline":      "use only one of --online and --offline",
		"apikeys list --valid --invalid":     "use only one of --valid and --invalid",
		"preauthkeys list --valid --invalid": "use only one of --valid and --invalid",
		"routes list --enabled --disabled":   "use only one of --enabled and --disabled",
	} {
		if r := fairlead(t, "/nowhere", strings.Fields(command)); r.status != 2 || !strings.Contains(r.stderr.String(), problem) {
			t.Errorf("%s: status %d, %s", command, r.status, &r.stderr)
		}
	}
}
