//go:build !race

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// refused checks that "tailscale up" fails at once and prints these texts. It uses a client of its
// own, because a refused client keeps retrying in the background and may show the response to that
// in the next command.
func refused(ctx context.Context, t *testing.T, n network, version, key string, args []string, says ...string) {
	t.Helper()
	d := clienttest.Start(t, clienttest.Options{Version: version})
	args = append([]string{"up", "--login-server=" + n.URL, "--auth-key=" + key, "--timeout=60s"}, args...)
	_, stderr, code := d.CLI(ctx, args...)
	if code != 1 {
		t.Errorf("the command ends with code %d: %s", code, stderr)
	}
	for _, text := range append(says, "Node registration rejected") {
		if !strings.Contains(stderr, text) {
			t.Errorf("the command does not say %q: %s", text, stderr)
		}
	}
}

func TestRefusedKeySaysWhyAndWhatToDo(t *testing.T) {
	t.Parallel()
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		n := startNetwork(t, meshtest.Config{})
		used, expired := n.key(), n.key()
		n.join(ctx, clienttest.Options{Version: version}, used, "first")
		n.CLI("preauthkeys", "expire", "--force", expired)

		const invalid = "Authentication failed: invalid key"
		refused(ctx, t, n, version, used, nil, invalid, "is single-use and was already used; ask your administrator for a new one")
		refused(ctx, t, n, version, strings.Repeat("x", len(used)), nil, invalid, "the key is unknown; ask your administrator for a new one")
		refused(ctx, t, n, version, expired, nil, invalid, "the key has expired; ask your administrator for a new one")
		if got := n.nodes(ctx); len(got) != 1 {
			t.Errorf("a refused client has become a node: %v", got)
		}
	})
}

func TestTaggedKeyGivesTheNodeToItsTags(t *testing.T) {
	t.Parallel()
	ctx := within(t, patience)
	n := startNetwork(t, meshtest.Config{})
	d := n.join(ctx, clienttest.Options{}, n.CLI("preauthkeys", "create", "--tags", "tag:web,tag:db"), "tagged")
	s, err := d.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"tag:db", "tag:web"}
	if s.Self.Tags == nil || !cmp.Equal(s.Self.Tags.AsSlice(), want) {
		t.Errorf("the client has the tags %v, want %v", s.Self.Tags, want)
	}
	if got := n.nodes(ctx)["tagged"].Tags; !cmp.Equal(got, want) {
		t.Errorf("the node has the tags %v, want %v", got, want)
	}
}

func TestTagOwnersDecideWhichTagsAClientMayAskFor(t *testing.T) {
	t.Parallel()
	policy := filepath.Join(t.TempDir(), "policy.hujson")
	err := os.WriteFile(policy, []byte(`{
		"groups":    {"group:ops": ["alice@"]},
		"tagOwners": {"tag:web": ["group:ops"], "tag:root": ["bob@"]},
	}`), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		n := startNetwork(t, meshtest.Config{Set: map[string]string{"policy.path": policy}})
		key := n.key("--reusable")
		refused(ctx, t, n, version, key, []string{"--advertise-tags=tag:web,tag:root"}, "tag not allowed", "tag:root")
		if got := n.nodes(ctx); len(got) != 0 {
			t.Errorf("a refused client has become a node: %v", got)
		}
		n.join(ctx, clienttest.Options{Version: version}, key, "web", "--advertise-tags=tag:web")
		if got, want := n.nodes(ctx)["web"].Tags, []string{"tag:web"}; !cmp.Equal(got, want) {
			t.Errorf("the node has the tags %v, want %v", got, want)
		}
	})
}

func TestEphemeralNodeIsDeletedAtOnceWhenItLogsOut(t *testing.T) {
	t.Parallel()
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		n := startNetwork(t, meshtest.Config{})
		d := n.join(ctx, clienttest.Options{Version: version}, n.key("--ephemeral"), "brief")
		if stdout, stderr, code := d.CLI(ctx, "logout"); code != 0 {
			t.Fatalf("logout ends with code %d: %s%s", code, stdout, stderr)
		}
		if got := n.nodes(ctx); len(got) != 0 {
			t.Errorf("the node is still there: %v", got)
		}
	})
}

func TestEphemeralNodeIsDeletedAfterTheInactivityTimeout(t *testing.T) {
	t.Parallel()
	const timeout = time.Minute // the shortest that the configuration accepts
	ctx := within(t, timeout+patience)
	n := startNetwork(t, meshtest.Config{Set: map[string]string{
		"node.ephemeral.inactivity_timeout": timeout.String(), "node_update_check_interval": "1s",
	}})
	key := n.key("--ephemeral", "--reusable")
	stays := n.join(ctx, clienttest.Options{}, key, "stays")
	gone := n.join(ctx, clienttest.Options{}, key, "gone")
	await(ctx, t, stays, seesOnline("gone"))
	began := time.Now()
	if err := gone.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, func() error {
		if _, there := n.nodes(ctx)["gone"]; there {
			return fmt.Errorf("the node is still there after %v", time.Since(began))
		}
		return nil
	})
	if after := time.Since(began); after < timeout {
		t.Errorf("the node was deleted after %v, too early", after)
	}
	if _, there := n.nodes(ctx)["stays"]; !there {
		t.Error("a node that is connected was deleted")
	}
}
