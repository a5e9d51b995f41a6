package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

// growing is a server with as many users as revisions, up to three. It serves two event
// streams that break after two events each, and then rejects the key.
func growing(t *testing.T) (socket string, log *requestLog) {
	looked := make(chan struct{}, 1)
	var revision, streams atomic.Int64
	revision.Store(1)
	socket, log = listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/user" {
			w.Header().Set("Mesh-Revision", fmt.Sprint(revision.Load()))
			users := []openapi.User{}
			for i := range min(revision.Load(), 3) {
				users = append(users, openapi.User{ID: fmt.Sprint(i + 1), Name: fmt.Sprintf("user-%d", i+1)})
			}
			reply(w, openapi.UserList{Users: users})
			looked <- struct{}{}
			return
		}
		if after := r.Header.Get("Last-Event-ID"); streams.Add(1) > 1 && after != fmt.Sprintf("%d-0", revision.Load()) {
			t.Errorf("resumed after %q at revision %d", after, revision.Load())
		}
		if streams.Load() > 2 {
			w.WriteHeader(http.StatusUnauthorized)
			reply(w, openapi.Problem{Detail: "Authentication failed: invalid API key"})
			return
		}
		_, _ = io.WriteString(w, "retry: 1\n\n")
		for range 2 {
			_ = http.NewResponseController(w).Flush()
			<-looked
			fmt.Fprintf(w, "id: %d-0\nevent: user.created\ndata: {}\n\n", revision.Add(1))
			_, _ = io.WriteString(w, "id: 1-0\nevent: user.created\ndata: {}\n\n") // an old event
			fmt.Fprintf(w, "id: %d-0\n\n", revision.Load())
		}
		_ = http.NewResponseController(w).Flush()
		<-looked
	}))
	return socket, log
}

func TestWatchShowsTheListAgainWhenItHasChanged(t *testing.T) {
	socket, _ := growing(t)
	r := fairlead(t, socket, strings.Fields("users list --watch -o json"))
	var names []string
	for line := range strings.Lines(r.stdout.String()) {
		names = append(names, fmt.Sprint(strings.Count(line, "user-")))
	}
	if diff := cmp.Diff([]string{"1", "2", "3"}, names); diff != "" || r.status != 1 {
		t.Errorf("status %d, %s, users in each line (-want +got):\n%s", r.status, &r.stderr, diff)
	}
}

func TestWatchDrawsInPlaceOnATerminal(t *testing.T) {
	socket, _ := growing(t)
	r := fairlead(t, socket, strings.Fields("users list --watch"), screenOf(80, 4), func(env *Env) { env.Environ = append(env.Environ, "NO_COLOR=1") })
	const header = "ID  NAME    EMAIL  ROLE  NODES  STATUS  CREATED\n"
	row := func(i int) string { return fmt.Sprintf("%d   user-%d  -      -     0      active  -\n", i, i) }
	three := header + row(3) + "lines 3 to 3 of 3\n" // the newest rows, as many as fit
	want := header + row(1) + "\x1b[2A\r\x1b[J" + header + row(1) + row(2) + "\x1b[3A\r\x1b[J" + three +
		three // below the note that the connection was lost
	if diff := cmp.Diff(want, r.stdout.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWatchShowsWhatChangedLast(t *testing.T) {
	var out strings.Builder
	w := &watch{tool: &tool{Env: Env{Size: func() (int, int) { return 40, 6 }}}, screen: &out}
	rows := []string{"a", "b", "c", "d", "e", "f"}
	for _, c := range []struct{ change, want string }{
		{"", "H a b c lines 1 to 3 of 6"},
		{"b=b2", "H a b2 c lines 1 to 3 of 6"},
		{"f=f2", "H d e f2 lines 4 to 6 of 6"},
		{"d=d2", "H d2 e f2 lines 4 to 6 of 6"},
		{"b2=b3", "H b3 c d2 lines 2 to 4 of 6"},
	} {
		if was, is, ok := strings.Cut(c.change, "="); ok {
			rows[slices.Index(rows, was)] = is
		}
		out.Reset()
		w.rows = 0
		if err := w.draw("H\n" + strings.Join(rows, "\n") + "\n"); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(out.String()), " "); got != c.want {
			t.Errorf("after %q: %q, want %q", c.change, got, c.want)
		}
	}
}

func TestWatchedLinesDoNotWrap(t *testing.T) {
	var out strings.Builder
	w := &watch{tool: &tool{Env: Env{Size: func() (int, int) { return 10, 5 }}}, screen: &out}
	if err := w.draw("\x1b[1mID\x1b[0m  NAME\nThe terminal is too narrow for NAME\n"); err != nil {
		t.Fatal(err)
	}
	if want := "\x1b[1mID\x1b[0m  NAME\nThe termi…\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestWatchAsksForWhatTheEventTells(t *testing.T) {
	asked := make(chan string, 2)
	ctx, interrupt := context.WithCancel(t.Context())
	socket, _ := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/user" {
			if asked <- r.Header.Get("Mesh-Min-Revision"); len(asked) == cap(asked) {
				interrupt()
			}
			reply(w, openapi.UserList{Users: []openapi.User{}})
			return
		}
		_, _ = io.WriteString(w, "retry: 1\n\nid: 7-0\nevent: user.created\ndata: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	env := Env{Stdout: io.Discard, Stderr: io.Discard, Environ: []string{"FAIRLEAD_CONFIG=/dev/null", "FAIRLEAD_UNIX_SOCKET=" + socket}}
	if status := Execute(ctx, New(env), []string{"users", "list", "--watch"}); status != 0 {
		t.Errorf("status %d", status)
	}
	if first, second := <-asked, <-asked; first != "" || second != "7" {
		t.Errorf("asked for revisions %q and %q", first, second)
	}
}

func TestWatchAsksWhereTheKeyOpensNoEvents(t *testing.T) {
	var looks atomic.Int64
	socket, _ := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/api/v1/user":
			w.WriteHeader(http.StatusForbidden)
			reply(w, openapi.Problem{Detail: "Forbidden: this operation requires the scope history; the API key has [users]"})
		case looks.Add(1) == 1:
			reply(w, openapi.UserList{Users: []openapi.User{{ID: "1", Name: "alice"}}})
		default:
			w.WriteHeader(http.StatusForbidden)
			reply(w, openapi.Problem{Detail: "Forbidden: this needs the scope users"})
		}
	}))
	r := fairlead(t, socket, strings.Fields("users list --watch"))
	const want = "This API key lacks the scope history and cannot read events; polling every 2s instead\nError: Forbidden: this needs the scope users\n"
	if out := r.stdout.String(); !strings.Contains(out, "alice") || r.stderr.String() != want || r.status != 1 {
		t.Errorf("status %d, %s%s", r.status, out, &r.stderr)
	}
}

func TestEveryListCanBeWatched(t *testing.T) {
	eachCommand(New(Env{}), func(cmd *cobra.Command) {
		if (cmd.Name() == "list" || cmd.Name() == "history") && cmd.Flags().Lookup("watch") == nil {
			t.Errorf("%s has no --watch", cmd.CommandPath())
		}
	})
}
