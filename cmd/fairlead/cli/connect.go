package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

const (
	answerLimit = 30 * time.Second
	// maxAnswer is the maximum size of a response, larger than a list of a hundred thousand nodes.
	maxAnswer = 512 << 20
)

var errTooSlow = errors.New("timed out")

// getenv returns an environment variable, or "".
func (t *tool) getenv(name string) string {
	for _, entry := range t.Environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// connect returns a client for the server given by flags, environment or configuration. It does not send a
// request yet.
func (t *tool) connect() (*apiclient.Client, error) {
	var err error
	if t.client == nil {
		t.client, err = t.dial()
	}
	return t.client, err
}

// connected returns the RunE of a command that starts with connect.
func (t *tool) connected(run func(ctx context.Context, client *apiclient.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		client, err := t.connect()
		if err != nil {
			return err
		}
		return run(cmd.Context(), client, args)
	}
}

// dial returns a client with its own connections.
func (t *tool) dial() (*apiclient.Client, error) {
	server := cmp.Or(t.server, t.getenv("FAIRLEAD_CLI_SERVER"))
	if server == "" && t.apiKey == "" {
		server = t.lastServer()
	}
	if server == "" {
		if t.apiKey != "" {
			return nil, wrongUsage("--api-key needs --server; the local socket needs no key")
		}
		socket := t.socket()
		// The host is never resolved; it only completes the URL.
		return apiclient.NewClient("http://fairlead", apiclient.WithHTTPClient(overSocket(socket)), apiclient.WithRequestEditorFn(t.edit))
	}
	if err := checkServer(server); err != nil {
		return nil, err
	}
	key := cmp.Or(t.apiKey, t.getenv("FAIRLEAD_CLI_API_KEY"))
	if key == "" {
		key = t.sessionFor(server)
	}
	return apiclient.NewClient(server,
		apiclient.WithHTTPClient(overNetwork(server)),
		apiclient.WithRequestEditorFn(t.edit),
		apiclient.WithRequestEditorFn(func(_ context.Context, req *http.Request) error {
			if key != "" {
				req.Header.Set("Authorization", "Bearer "+key)
			}
			return nil
		}))
}

// checkServer refuses what is not the URL of a server.
func checkServer(server string) error {
	address, err := url.Parse(server)
	if err != nil || address.Host == "" || (address.Scheme != "https" && address.Scheme != "http") {
		return wrongUsage("invalid server URL: use one such as https://mesh.example.com")
	}
	if address.User != nil {
		return wrongUsage("the server URL must not contain a user name or password; set FAIRLEAD_CLI_API_KEY to an API key instead")
	}
	return nil
}

// edit adds a header to requests so that the response includes all changes that this run already knows of.
func (t *tool) edit(_ context.Context, req *http.Request) error {
	if t.minRevision != "" {
		req.Header.Set("Mesh-Min-Revision", t.minRevision)
	}
	return nil
}

// brokenError is a failure that may be temporary: the server was not reached, or could not respond.
type brokenError struct{ error }

// forbiddenError says which permission a key lacks.
type forbiddenError struct{ error }

// connection sends requests to one server. Its errors say what to do.
type connection struct {
	client   http.Client
	explain  func(error) error
	revision string // from the first response since the last reset
}

func (c *connection) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.client.Do(req)
	if err == nil {
		c.revision = cmp.Or(c.revision, resp.Header.Get("Mesh-Revision"))
		return resp, nil
	}
	if urlErr := (*url.Error)(nil); errors.As(err, &urlErr) {
		err = urlErr.Err // omits the URL of the operation
		if urlErr.Timeout() {
			err = errTooSlow
		}
	}
	return nil, brokenError{c.explain(err)}
}

func newConnection(transport *http.Transport, explain func(error) error) *connection {
	return &connection{
		client: http.Client{
			Transport: idempotent{transport},
			Timeout:   answerLimit,
			// A redirected POST would arrive as a GET.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		explain: explain,
	}
}

func overSocket(path string) *connection {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return newConnection(&http.Transport{DialContext: dial}, func(err error) error {
		var opErr *net.OpError
		switch {
		case errors.Is(err, fs.ErrPermission):
			return fmt.Errorf("cannot use the socket %s: permission denied; run this command as root or as the user that runs the server, join its group, or use --server", path)
		case errors.As(err, &opErr) && opErr.Op == "dial":
			return fmt.Errorf("no server is listening on the socket %s (%w); start one with fairlead serve, or use --server", path, opErr.Err)
		default:
			return fmt.Errorf("no response from the server on the socket %s: %w; see the server's log", path, err)
		}
	})
}

func overNetwork(server string) *connection {
	return newConnection(&http.Transport{Proxy: http.ProxyFromEnvironment}, func(err error) error {
		if errors.Is(err, http.ErrSchemeMismatch) {
			return fmt.Errorf("the server at %s uses plain HTTP; use http:// in its URL", server)
		}
		return fmt.Errorf("cannot reach the server at %s: %w; check the URL and the network", server, err)
	})
}

// answer returns the body of a successful response; any other response becomes an error that says what to
// do.
func answer(resp *http.Response, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, brokenError{fmt.Errorf("the response was cut off: %w; try again", err)}
	case len(body) > maxAnswer:
		return nil, errors.New("the response is larger than 512 MiB; check the server URL")
	}
	if resp.StatusCode != http.StatusOK {
		err := refusal(resp, body)
		if resp.StatusCode >= http.StatusInternalServerError {
			err = brokenError{err}
		}
		return body, err
	}
	return body, nil
}

// decode decodes the body that answer returned.
func decode[T any](body []byte, err error) (T, error) {
	var value T
	if err != nil {
		return value, err
	}
	if err := json.Unmarshal(body, &value); err != nil {
		return value, fmt.Errorf("cannot parse the response of the server: %w; compare the versions with: fairlead version", err)
	}
	return value, nil
}

func refusal(resp *http.Response, body []byte) error {
	var problem apiclient.Problem
	if json.Unmarshal(body, &problem) != nil || problem.Detail == "" {
		if place := resp.Header.Get("Location"); place != "" {
			return fmt.Errorf("the server responded with %s and a redirect to %s; use that URL with --server", resp.Status, place)
		}
		return fmt.Errorf("the response %s did not come from Fairlead; check the URL and any proxy", resp.Status)
	}
	detail := strings.Join(strings.Fields(problem.Detail), " ")
	switch resp.StatusCode {
	case http.StatusBadRequest:
		return wrongUsage("%s", detail)
	case http.StatusUnauthorized:
		return fmt.Errorf("%s; sign in with fairlead login, or use a valid key with --api-key or FAIRLEAD_CLI_API_KEY", detail)
	case http.StatusForbidden:
		return forbiddenError{errors.New(detail)}
	case http.StatusNotFound:
		return errors.New(detail + listHint(detail))
	default:
		return errors.New(detail)
	}
}

// listHint names the command that lists objects of the kind that was not found.
func listHint(detail string) string {
	for _, of := range []struct{ thing, plural, command string }{
		{"unknown pre-auth key", "pre-auth keys", "preauthkeys"},
		{"unknown API key", "API keys", "apikeys"},
		{"unknown user ", "users", "users"},
	} {
		if strings.Contains(detail, of.thing) && !strings.Contains(detail, "fairlead") {
			return "; list " + of.plural + " with: fairlead " + of.command + " list"
		}
	}
	return ""
}
