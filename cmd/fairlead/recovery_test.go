package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

// The drills below run the commands of docs/recovery.md. Each names the section that it proves.

// Section "A leaked Noise key". The test of package wire shows that clients with both keys are served.
func TestDrillLeakedNoiseKey(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s settings) {
		p := serve(t, s)
		before := noiseKey(t, p)
		status := func(args ...string) (keys struct{ PublicKey, PreviousKey string }) {
			t.Helper()
			if err := json.Unmarshal([]byte(mustCommand(t, s, append(args, "--output", "json")...)), &keys); err != nil {
				t.Fatal(err)
			}
			return keys
		}
		rotated := status("noise-key", "rotate")
		after := noiseKey(t, p)
		if !strings.Contains(before, rotated.PreviousKey) || !strings.Contains(after, rotated.PublicKey) || before == after {
			t.Fatalf("/key was %s and is %s after %+v", before, after, rotated)
		}
		says(t, mustCommand(t, s, "audit", "list", "--kind", "noisekey"), "noisekey", "changed")
		says(t, p.client("").must(t, http.StatusOK, "GET", "/health", ""), "fairlead noise-key status")
		if r := command(t, s, "noise-key", "rotate"); r.status == 0 || !strings.Contains(r.stderr, "retire it first") {
			t.Errorf("rotated twice: %+v", r)
		}
		p.stop(t)
		p = serve(t, s)
		if noiseKey(t, p) != after || status("noise-key", "status") != rotated {
			t.Error("a restart forgot the rotation")
		}
		if retired := status("noise-key", "retire"); retired.PublicKey != rotated.PublicKey || retired.PreviousKey != "" {
			t.Errorf("%+v", retired)
		}
		p.stop(t)
		if p = serve(t, s); noiseKey(t, p) != after {
			t.Error("a restart after retirement has another key")
		}
	})
}

// Section "A lost Noise key".
func TestDrillLostNoiseKey(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	p := serve(t, s)
	before := noiseKey(t, p)
	mustCommand(t, s, "users", "create", "alice")
	p.stop(t)
	if err := os.Remove(s["noise.private_key_path"]); err != nil {
		t.Fatal(err)
	}
	if p = start(t, s, nil, "serve"); p.status(t, startLimit) == 0 {
		t.Fatal("the server started without its key")
	}
	p = start(t, s, nil, "serve", "--new-key")
	p.awaitReady(t)
	after := noiseKey(t, p)
	if after == before {
		t.Error("the key is the same")
	}
	p.stop(t)
	if p = serve(t, s); noiseKey(t, p) != after {
		t.Error("the next start has another key")
	}
	says(t, mustCommand(t, s, "users", "list"), "alice")
}

// Section "A restore to a point in time".
func TestDrillRestoreToAPointInTime(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, pgtest.Options{Args: pgtest.ArchiveArgs()})
	s := onPostgres(t, server)
	p := serve(t, s)
	mustCommand(t, s, "users", "create", "alice")
	backup, err := server.BaseBackup()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := backup.Stop(); err != nil {
			t.Error(err)
		}
	})
	mustCommand(t, s, "users", "create", "bob")
	before := time.Now()
	mustCommand(t, s, "users", "delete", "alice", "--force")
	p.stop(t)
	if err := backup.RestoreTo(before); err != nil {
		t.Fatal(err)
	}
	s = s.with("database.postgres.port", fmt.Sprint(backup.Port))
	serve(t, s)
	says(t, mustCommand(t, s, "health"), "pass")
	says(t, mustCommand(t, s, "users", "list"), "alice", "bob")
	mustCommand(t, s, "users", "create", "carol")
}

// Section "A compromised API key".
func TestDrillCompromisedAPIKey(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	p := serve(t, s)
	stolen := strings.TrimSpace(mustCommand(t, s, "apikeys", "create"))
	thief := p.client(stolen)
	thief.must(t, http.StatusOK, "POST", "/api/v1/user", `{"name":"mallory"}`)
	thief.must(t, http.StatusOK, "POST", "/api/v1/apikey", `{}`)
	mustCommand(t, s, "apikeys", "expire", "1")
	thief.must(t, http.StatusUnauthorized, "GET", "/api/v1/user", "")
	says(t, mustCommand(t, s, "audit", "list", "--actor", "key:1"), "user", "apikey", "created")
}

// Section "A policy that locks everyone out".
func TestDrillPolicyThatLocksEveryoneOut(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	p := serve(t, s)
	file := t.TempDir() + "/closed.hujson"
	if err := os.WriteFile(file, []byte(`{"acls": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	mustCommand(t, s, "users", "create", "alice")
	mustCommand(t, s, "policy", "set", "testdata/policy/ops.hujson", "--force")
	good := mustCommand(t, s, "policy", "get")
	mustCommand(t, s, "policy", "set", file, "--force")
	p.stop(t)
	serve(t, s)
	says(t, mustCommand(t, s, "policy", "history"), "1", "2")
	mustCommand(t, s, "policy", "rollback", "1")
	if got := mustCommand(t, s, "policy", "get"); got != good {
		t.Errorf("the policy is %s", got)
	}
}
