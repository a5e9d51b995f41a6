//go:build !race

package deploytest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBothVersionsOfComposeReadEveryChoice checks that docker-compose 1.29 accepts the
// demo, the high availability trial and every combination of overlays, and that Compose v2 reads the same services from it.
func TestBothVersionsOfComposeReadEveryChoice(t *testing.T) {
	t.Parallel()
	s := NewStack(t, map[string]string{"DOMAIN": "mesh.example.test", "POSTGRES_PASSWORD": "secret"})
	v2 := filepath.Join(s.Dir, "composecheck")
	s.run(filepath.Join(s.Dir, "internal", "test", "deploytest", "composecheck"), "go", "build", "-o", v2, ".")

	env := s.ReadFile(".env")
	choices := []string{"compose.yaml", "deploy/compose/ha.yaml"}
	for _, database := range []string{"", "postgres"} {
		for _, mode := range []string{"dev", "prod", "dev prod"} {
			for _, more := range []string{"", "relay", "monitoring", "relay monitoring"} {
				files := "deploy/compose/base.yaml"
				for name := range strings.FieldsSeq(database + " " + mode + " " + more) {
					files += ":deploy/compose/" + name + ".yaml"
				}
				choices = append(choices, files)
			}
		}
	}
	for _, files := range choices {
		s.WriteFile(".env", env+"COMPOSE_PROFILES=acme,monitoring,grafana\nCOMPOSE_FILE="+files+"\n", 0o600)
		one := sorted(strings.Fields(s.Compose("config", "--services")))
		two := sorted(strings.Fields(s.run(s.Dir, v2)))
		if diff := cmp.Diff(one, two); diff != "" {
			t.Errorf("services of %s (-1.29 +v2):\n%s", files, diff)
		}
	}
	s.WriteFile(".env", env, 0o600)
}

// STUN over IPv6 would report the address of Docker's gateway instead of the client's.
func TestRelayPortIsPublishedOnIPv4Only(t *testing.T) {
	s := NewStack(t, map[string]string{"RELAY_PUBLISH": "", "COMPOSE_FILE": "deploy/compose/base.yaml:deploy/compose/dev.yaml:deploy/compose/relay.yaml"})
	wantText(t, s.Compose("config"), "0.0.0.0:3478:3478/udp")
}
