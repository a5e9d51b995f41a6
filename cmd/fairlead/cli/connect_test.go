package cli

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

const theSecret = "the-secret_with-all-characters"

func TestLifetimesAreSentAsTimes(t *testing.T) {
	for command, want := range map[string]string{
		"apikeys create":                                    `{"role":"admin"}`,
		"apikeys create --comment backup":                   `{"comment":"backup","role":"admin"}`,
		"apikeys expire 1 --after 24h":                      `{"at":"2026-03-02T09:30:00Z","key":"1"}`,
		"apikeys create --expiration 999d":                  `{"expiration":"2028-11-24T09:30:00Z","role":"admin"}`,
		"preauthkeys create --user alice":                   `{"ephemeral":false,"reusable":false,"user":"alice"}`,
		"preauthkeys create --user alice --description lab": `{"description":"lab","ephemeral":false,"reusable":false,"user":"alice"}`,
		"preauthkeys create --user alice --pre-approved":    `{"ephemeral":false,"preApproved":true,"reusable":false,"user":"alice"}`,
		"preauthkeys create --tags tag:a,tag:b --tags tag:c --expiration 1d12h --ephemeral": `{"aclTags":["tag:a","tag:b","tag:c"],` +
			`"ephemeral":true,"expiration":"2026-03-02T21:30:00Z","reusable":false}`,
	} {
		socket, log := listen(t, cannedServer())
		fairlead(t, socket, strings.Fields(command))
		changes := slices.DeleteFunc(log.requests(), func(r request) bool { return r.Method == http.MethodGet })
		if len(changes) != 1 || changes[0].Body != want {
			t.Errorf("%s sent %v, want body %s", command, changes, want)
		}
	}
}

func TestSecretOfAKeyIsNotSent(t *testing.T) {
	for command, want := range map[string]request{
		"preauthkeys expire --user alice --key flp_b81KzQx0LmN4_" + theSecret: {Method: "POST", Path: "/api/v1/preauthkey/expire", Body: `{"key":"b81KzQx0LmN4","user":"alice"}`},
		"preauthkeys delete --key flp_b81KzQx0LmN4_" + theSecret + " --force": {Method: "DELETE", Path: "/api/v1/preauthkey?id=b81KzQx0LmN4"},
		"preauthkeys delete --key 12 --force":                                 {Method: "DELETE", Path: "/api/v1/preauthkey?id=12"},
		"apikeys expire --key flk_7Qd0XhVb2mTa_" + theSecret:                  {Method: "POST", Path: "/api/v1/apikey/expire", Body: `{"key":"7Qd0XhVb2mTa"}`},
		"apikeys expire --prefix flk_7Qd0 --force":                            {Method: "POST", Path: "/api/v1/apikey/expire", Body: `{"prefix":"7Qd0"}`},
		"apikeys expire --prefix flk_7Qd0XhVb2mTa_***":                        {Method: "POST", Path: "/api/v1/apikey/expire", Body: `{"prefix":"7Qd0XhVb2mTa"}`},
		"apikeys expire flk_7Qd0XhVb2mTa_" + theSecret:                        {Method: "POST", Path: "/api/v1/apikey/expire", Body: `{"key":"7Qd0XhVb2mTa"}`},
		"preauthkeys delete flp_b81KzQx0LmN4_" + theSecret + " --force":       {Method: "DELETE", Path: "/api/v1/preauthkey?id=b81KzQx0LmN4"},
		"apikeys delete --key flk_7Qd0XhVb2mTa_" + theSecret + " --force":     {Method: "DELETE", Path: "/api/v1/apikey/7Qd0XhVb2mTa"},
	} {
		socket, log := listen(t, cannedServer())
		r := fairlead(t, socket, strings.Fields(command))
		if diff := cmp.Diff([]request{want}, log.requests()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", command, diff)
		}
		if strings.Contains(r.stdout.String()+r.stderr.String(), theSecret) {
			t.Errorf("%s printed the secret", command)
		}
	}
}

func TestRemoteServerIsAskedWithTheKey(t *testing.T) {
	log := &requestLog{}
	server := httptest.NewServer(log.wrap(cannedServer()))
	defer server.Close()
	noSocket := filepath.Join(t.TempDir(), "none")

	fromEnv := func(env *Env) {
		env.Environ = append(env.Environ, "FAIRLEAD_CLI_SERVER="+server.URL, "FAIRLEAD_CLI_API_KEY=flk_env")
	}
	fairlead(t, noSocket, []string{"apikeys", "list", "--server", server.URL + "/", "--api-key", "flk_flag"})
	fairlead(t, noSocket, []string{"apikeys", "list"}, fromEnv)
	fairlead(t, noSocket, []string{"apikeys", "list", "--api-key", "flk_flag"}, fromEnv)
	fairlead(t, noSocket, []string{"health", "--server", server.URL})
	fairlead(t, noSocket, []string{"health", "--ready", "--server", server.URL})

	want := []request{
		{Method: "GET", Path: "/api/v1/apikey", Authorization: "Bearer flk_flag"},
		{Method: "GET", Path: "/api/v1/apikey", Authorization: "Bearer flk_env"},
		{Method: "GET", Path: "/api/v1/apikey", Authorization: "Bearer flk_flag"},
		{Method: "GET", Path: "/health"},
		{Method: "GET", Path: "/ready"},
	}
	if diff := cmp.Diff(want, log.requests()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSocketComesFromTheConfigurationThenTheEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "server_url: https://mesh.example.com\ndns: {magic_dns: false}\nunix_socket: /configured.sock\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file    string
		environ []string
		want    string
	}{
		{file: file, want: "/configured.sock"},
		{file: file, environ: []string{"FAIRLEAD_UNIX_SOCKET=/environment.sock"}, want: "/environment.sock"},
		{file: file + ".missing", environ: []string{"FAIRLEAD_UNIX_SOCKET=/environment.sock"}, want: "/environment.sock"},
		{file: file + ".missing", want: defaultSocket},
		{environ: []string{"FAIRLEAD_CONFIG=" + file}, want: "/configured.sock"},
	} {
		var stderr strings.Builder
		tool := &tool{Env: Env{Environ: c.environ, Stderr: &stderr}, configFile: c.file}
		if got := tool.socket(); got != c.want {
			t.Errorf("file %q, environment %v: got %s, want %s", c.file, c.environ, got, c.want)
		}
		warning := ""
		if strings.HasSuffix(c.file, ".missing") {
			warning = "Warning: cannot read " + c.file + " (see fairlead config check); using the socket " + c.want + "\n"
		}
		if stderr.String() != warning {
			t.Errorf("file %q, environment %v: stderr %q, want %q", c.file, c.environ, &stderr, warning)
		}
	}
}

func TestFailureIsOneLineThatSaysWhatToDo(t *testing.T) {
	problem := func(status int, detail string) http.Handler {
		return answering(status, "application/problem+json", `{"detail":"`+detail+`"}`)
	}
	for _, c := range []struct {
		server http.Handler
		args   string
		status int
		stderr string
	}{
		{
			problem(404, `unknown user \"zoe\"`), "users delete zoe --force", 1,
			"Error: unknown user \"zoe\"; list users with: fairlead users list\n",
		},
		{
			problem(404, `unknown API key`), "apikeys delete 7 --force", 1,
			"Error: unknown API key; list API keys with: fairlead apikeys list\n",
		},
		{
			problem(404, `unknown pre-auth key; list pre-auth keys with: fairlead preauthkeys list`), "preauthkeys delete 7 --force", 1,
			"Error: unknown pre-auth key; list pre-auth keys with: fairlead preauthkeys list\n",
		},
		{
			problem(400, `name: begin with a letter,\nsuch as \"a1\"`), "users create 1a", 2,
			"Error: name: begin with a letter, such as \"a1\"; see fairlead users create --help\n",
		},
		{
			problem(401, "Authentication failed: invalid API key"), "users list", 1,
			"Error: Authentication failed: invalid API key; sign in with fairlead login, or use a valid key with --api-key or FAIRLEAD_CLI_API_KEY\n",
		},
		{
			answering(502, "text/html", "<html>"), "users list", 1,
			"Error: the response 502 Bad Gateway did not come from Fairlead; check the URL and any proxy\n",
		},
		{
			http.RedirectHandler("https://mesh.example.com/", http.StatusMovedPermanently), "users create alice", 1,
			"Error: the server responded with 301 Moved Permanently and a redirect to https://mesh.example.com/; use that URL with --server\n",
		},
		{
			answering(200, "text/html", "<html>"), "users list", 1,
			"Error: cannot parse the response of the server: invalid character '<' looking for beginning of value; compare the versions with: fairlead version\n",
		},
		{
			answering(503, "application/health+json", `{"status":"fail","checks":{"database":[{"status":"fail","output":"connection refused"}]}}`), "health", 1,
			"Error: the server is not healthy: database fail: connection refused; see its log\n",
		},
		{
			answering(503, "application/health+json", `{"status":"fail","checks":{"service":[{"status":"fail","output":"the server is shutting down"}]}}`), "health --ready", 1,
			"Error: the server is not ready: service fail: the server is shutting down; see its log\n",
		},
		{
			answering(503, "application/health+json", `{"status":"fail"}`), "health", 1,
			"Error: the server is not healthy: no reason given; see its log\n",
		},
		{
			answering(200, "application/json", `{"replica":"r1","revision":"7","digest":"aa","replicas":[{"id":"r2","digestRevision":"7","digest":"bb"}]}`),
			"debug digest", 1,
			"Compared 2 of 2 replicas, at revision 7\nError: replicas differ at revision 7; restart the faulty replica and report this as a bug\n",
		},
		{
			answering(200, "application/json", `{"replica":"r1","replicas":[],"database":{"engine":"postgres","host":"db","role":"primary"},"problems":["no synchronous standby","replica b is missing"],"notes":["two versions"]}`),
			"cluster status", 1,
			"Note: two versions\nError: 2 problems: no synchronous standby; replica b is missing\n",
		},
	} {
		socket, _ := listen(t, c.server)
		r := fairlead(t, socket, strings.Fields(c.args))
		if r.status != c.status || r.stderr.String() != c.stderr {
			t.Errorf("%s: status %d, stderr %q\nwant %d, %q", c.args, r.status, &r.stderr, c.status, c.stderr)
		}
	}
}

func TestReplicaWithoutDigestIsNotCompared(t *testing.T) {
	socket, _ := listen(t, answering(200, "application/json", `{"replica":"r1","revision":"3","digest":"cc",
		"replicas":[{"id":"r1","digestRevision":"0","digest":""},{"id":"r2","digestRevision":"0","digest":"aa"}]}`))
	r := fairlead(t, socket, []string{"debug", "digest"})
	if want := "Compared 1 of 2 replicas, at revision 3\n"; r.status != 0 || r.stderr.String() != want {
		t.Errorf("status %d, stderr %q, want %q", r.status, &r.stderr, want)
	}
}

func TestMissingServerIsNamedByItsSocket(t *testing.T) {
	missing, dead := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(dead, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for socket, why := range map[string]string{missing: "connect: no such file or directory", dead: "connect: connection refused"} {
		r := fairlead(t, socket, []string{"health"})
		want := "Error: no server is listening on the socket " + socket + " (" + why + "); start one with fairlead serve, or use --server\n"
		if r.status != 1 || r.stderr.String() != want {
			t.Errorf("status %d, stderr %q, want %q", r.status, &r.stderr, want)
		}
	}
}

func TestPlainServerBehindAnHTTPSAddressIsNamed(t *testing.T) {
	server := httptest.NewServer(cannedServer())
	defer server.Close()
	address := strings.Replace(server.URL, "http:", "https:", 1)
	r := fairlead(t, "", []string{"health", "--server", address})
	want := "Error: the server at " + address + " uses plain HTTP; use http:// in its URL\n"
	if r.status != 1 || r.stderr.String() != want {
		t.Errorf("status %d, stderr %q, want %q", r.status, &r.stderr, want)
	}
}

func TestForbiddenSocketSaysWhoMayUseIt(t *testing.T) {
	err := overSocket("/s").explain(&net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EACCES)})
	want := "cannot use the socket /s: permission denied; run this command as root or as the user that runs the server, join its group, or use --server"
	if err.Error() != want {
		t.Errorf("got %q", err)
	}
}

func TestSilentServerIsNotWaitedForLongerThanTheLimit(t *testing.T) {
	socket, _ := listen(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	conn := overSocket(socket)
	conn.client.Timeout = 10 * time.Millisecond
	client, err := apiclient.NewClient("http://fairlead", apiclient.WithHTTPClient(conn))
	if err != nil {
		t.Fatal(err)
	}
	_, err = answer(client.Health(t.Context()))
	want := "no response from the server on the socket " + socket + ": timed out; see the server's log"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
