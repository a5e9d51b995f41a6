package main_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// registration returns a request body that registers a new node.
func registration(key, hostname string) string {
	random := func() string {
		b := make([]byte, 32)
		_, _ = rand.Read(b) // never fails
		return hex.EncodeToString(b)
	}
	return fmt.Sprintf(`{"preAuthKey": %q, "machineKey": "mkey:%s", "nodeKey": "nodekey:%s", "hostname": %q, "os": "linux"}`, key, random(), random(), hostname)
}

// provoke makes the server log one line of each kind that operators search for, and
// returns the secrets that the server has seen.
func provoke(t *testing.T, p *process, s settings) (secrets []string) {
	t.Helper()
	apiKey := newKey(t, s)
	mustCommand(t, s, "users", "create", "alice")
	authKey := strings.TrimSpace(mustCommand(t, s, "preauthkeys", "create", "--user", "alice"))
	stranger := p.client("flk_aaaaaaaaaaaa_" + rand.Text())
	stranger.must(t, 401, "GET", "/api/v1/user", "")
	nobody := p.client("x")
	nobody.key = ""
	nobody.must(t, 401, "GET", "/api/v1/user", "")
	nobody.must(t, 200, "POST", "/api/v1/machine", registration(authKey, "laptop"))
	nobody.must(t, 401, "POST", "/api/v1/machine", registration(authKey, "desktop"))
	p.client(apiKey).must(t, 200, "GET", "/api/v1/user", "")
	return []string{apiKey, authKey, stranger.key}
}

// phrases are the messages that provoke causes, in order.
var phrases = []string{"authentication failed", "unauthorized", "node registered", "authentication failed"}

func TestMessagesAreThePhrasesOperatorsSearchFor(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	p := serve(t, s)
	provoke(t, p, s)
	p.stop(t)
	var got []string
	for _, r := range p.log.records() {
		if message := r["msg"].(string); slices.Contains(phrases, message) {
			got = append(got, message)
		}
	}
	if diff := cmp.Diff(phrases, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if lines := strings.Count(p.log.String(), "\n"); lines != len(p.log.records()) {
		t.Errorf("of %d lines %d are json", lines, len(p.log.records()))
	}
}

func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s settings) {
		s = s.with("log.level", "trace")
		p := serve(t, s)
		secrets := provoke(t, p, s)
		places := map[string]string{"log": p.log.String(), "metrics": p.metricsText(t), "database": stored(t, s)}
		for _, key := range secrets {
			prefix, secret := key[:len("flk_aaaaaaaaaaaa")], key[len("flk_aaaaaaaaaaaa_"):]
			for place, text := range places {
				for _, form := range []string{secret, hex.EncodeToString([]byte(secret))} {
					if strings.Contains(text, form) {
						t.Errorf("the %s holds the secret of %s", place, prefix)
					}
				}
			}
		}
		if id := secrets[0][len("flk_"):][:12]; !strings.Contains(places["database"], id) {
			t.Error("the database does not hold the key: the search is blind")
		}
	})
}

func (p *process) metricsText(t *testing.T) string {
	t.Helper()
	c := p.client("x")
	c.base = "http://" + p.metrics
	return c.must(t, 200, "GET", "/metrics", "")
}

// stored returns the whole content of the database as text.
func stored(t *testing.T, s settings) string {
	t.Helper()
	var all strings.Builder
	if s["database.type"] == "sqlite" {
		for _, end := range []string{"", "-wal"} {
			text, err := os.ReadFile(s["database.sqlite.path"] + end)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		return all.String()
	}
	conn, err := pgx.Connect(t.Context(), pg.URL(s["database.postgres.name"]))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		var text string
		if err := conn.QueryRow(t.Context(), "SELECT coalesce(string_agg(t::text, ' '), '') FROM "+table+" t").Scan(&text); err != nil {
			t.Fatal(err)
		}
		all.WriteString(text)
	}
	return all.String()
}

// serveUnread starts a server on a known port and waits until it responds, without
// reading its log.
func serveUnread(t *testing.T, s settings) *process {
	t.Helper()
	address := porttest.Addr(t)
	p := start(t, s.with("listen_addr", address), nil, "serve")
	p.api = address
	eventually(t, func() error {
		_, _, err := p.client("").do("GET", "/health", "")
		return err
	})
	return p
}

func TestLogAsText(t *testing.T) {
	t.Parallel()
	p := serveUnread(t, onSQLite(t).with("log.format", "text"))
	provoke(t, p, p.settings)
	p.stop(t)
	line := regexp.MustCompile(`^time=\S+Z level=(DEBUG|INFO|WARN|ERROR) msg=("[^"]+"|\w+)( \S+=.+)?\n$`)
	for text := range strings.Lines(p.log.String()) {
		if !line.MatchString(text) {
			t.Errorf("%q is not a line of log as text", text)
		}
	}
	says(t, p.log.String(), `level=WARN msg="authentication failed" addr=127.0.0.1`, `level=WARN msg=unauthorized `, `level=INFO msg="node registered" actor=`)
}

func TestQuietServiceLogsNothing(t *testing.T) {
	t.Parallel()
	p := serveUnread(t, onSQLite(t).with("log.level", "error"))
	provoke(t, p, p.settings)
	p.stop(t)
	if p.log.String() != "" {
		t.Errorf("at level error it logs %s", p.log)
	}
}
