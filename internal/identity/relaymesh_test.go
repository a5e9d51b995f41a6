package identity_test

import (
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/identity"
)

func TestRelaysRecognizeEachOtherAfterARotation(t *testing.T) {
	first := identity.NewServerSecret(1)
	secrets := identity.NewServerSecrets(first)
	keys := identity.NewRelayMeshKeys(secrets)
	before := keys.Key(900)
	secrets.Replace(first, identity.NewServerSecret(2))
	if keys.Key(900) != before {
		t.Error("the rotation changed the key of a region")
	}
	if keys.Key(901) == before {
		t.Error("two regions have the same key")
	}
	if other := identity.NewRelayMeshKeys(identity.NewServerSecrets(identity.NewServerSecret(1))); other.Key(900) == before {
		t.Error("two servers have the same key")
	}
}
