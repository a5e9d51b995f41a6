package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

// crowd is a server with n nodes. It responds to the first bulk changes, as many as answers, and
// fails all later ones.
func crowd(n, answers int, sizes *[]int) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/node", func(w http.ResponseWriter, _ *http.Request) {
		var out openapi.NodeList
		for i := range n {
			out.Nodes = append(out.Nodes, openapi.Node{ID: fmt.Sprint(i + 1), GivenName: fmt.Sprintf("web-%d", i+1)})
		}
		reply(w, out)
	})
	mux.HandleFunc("POST /api/v1/node/bulk", func(w http.ResponseWriter, r *http.Request) {
		var in openapi.NodesChange
		_ = json.NewDecoder(r.Body).Decode(&in)
		if *sizes = append(*sizes, len(in.Ids)); len(*sizes) > answers {
			w.WriteHeader(http.StatusServiceUnavailable)
			reply(w, openapi.Problem{Detail: "database unavailable: nothing was changed; try again"})
			return
		}
		var out openapi.NodeBulkResults
		for _, id := range in.Ids {
			out.Results = append(out.Results, openapi.NodeBulkResult{ID: id, Ok: true})
		}
		reply(w, out)
	})
	return mux
}

func TestLongWorkShowsAPersonHowFarItIs(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		var sizes []int
		socket, _ := listen(t, crowd(450, 3, &sizes))
		r := fairlead(t, socket, []string{"nodes", "delete", "--tag", "tag:ci", fmt.Sprintf("--force=%t", !terminal)}, func(env *Env) {
			env.Terminal, env.Stdin = terminal, strings.NewReader("y\n")
		})
		if diff := cmp.Diff([]int{200, 200, 50}, sizes); diff != "" || r.stdout.String() != "Deleted 450 nodes\n" {
			t.Errorf("%s%s%s", diff, &r.stdout, &r.stderr)
		}
		want := ""
		if terminal {
			want = "Delete 450 nodes (web-1, web-2, web-3, web-4, web-5 and 445 more)? They lose access immediately. [y/N] " +
				"\r0 of 450\r200 of 450\r400 of 450\r\x1b[K"
		}
		if got := r.stderr.String(); got != want {
			t.Errorf("stderr %q, want %q", got, want)
		}
	}
}

func TestWorkThatEndsHalfwaySaysHowFarItCame(t *testing.T) {
	var sizes []int
	socket, _ := listen(t, crowd(450, 1, &sizes))
	r := fairlead(t, socket, []string{"nodes", "expire", "--user", "alice", "--force"})
	want := "Error: stopped after 200 of 450: database unavailable: nothing was changed; try again\n"
	if r.status != 1 || r.stdout.String() != "Expired 200 nodes\n" || r.stderr.String() != want {
		t.Errorf("status %d, %s%s", r.status, &r.stdout, &r.stderr)
	}
}

func TestEqualRefusalsAreOneLine(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/node/bulk", func(w http.ResponseWriter, r *http.Request) {
		var in openapi.NodesChange
		_ = json.NewDecoder(r.Body).Decode(&in)
		var out openapi.NodeBulkResults
		for i, id := range in.Ids {
			result := openapi.NodeBulkResult{ID: id, Ok: i == 0}
			switch {
			case i == 1:
				result.Error = &openapi.BulkError{Code: 5, Message: "it is gone"}
			case i > 1:
				result.Error = &openapi.BulkError{Code: 3, Message: "it keeps its last tag"}
			}
			out.Results = append(out.Results, result)
		}
		reply(w, out)
	})
	mux.Handle("GET /api/v1/node", crowd(9, 0, new([]int)))
	socket, _ := listen(t, mux)
	r := fairlead(t, socket, []string{"nodes", "tag", "--user", "alice", "--remove", "tag:blue", "--force"})
	want := "web-2: it is gone\n7 nodes (web-3, web-4, web-5, web-6, web-7 and 2 more): it keeps its last tag\nError: failed for 8 of 9 nodes\n"
	if r.status != 1 || r.stdout.String() != "Removed tag:blue from 1 node\n" || r.stderr.String() != want {
		t.Errorf("status %d, %s%s", r.status, &r.stdout, &r.stderr)
	}
}

func TestFilterThatFindsNobodyChangesNothing(t *testing.T) {
	var sizes []int
	socket, _ := listen(t, crowd(0, 0, &sizes))
	if r := fairlead(t, socket, []string{"nodes", "delete", "--user", "alice", "--force"}); r.status != 0 || r.stdout.String() != "No matching nodes\n" || len(sizes) != 0 {
		t.Errorf("status %d, %s%s", r.status, &r.stdout, &r.stderr)
	}
}
