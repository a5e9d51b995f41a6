package identity

import (
	"encoding/hex"
	"strconv"
)

// RelayMeshKeys are the keys with which the relays of a region recognize each other. They are derived from the server's first
// secret, which rotations keep: a relay cannot change its key while it runs, so relays that started before and after a rotation
// would not recognize each other.
type RelayMeshKeys struct{ secrets *ServerSecrets }

// NewRelayMeshKeys returns the keys of all regions.
func NewRelayMeshKeys(s *ServerSecrets) *RelayMeshKeys { return &RelayMeshKeys{s} }

// Key returns the key of a region, in the form that relays expect.
func (k *RelayMeshKeys) Key(region int) string {
	return hex.EncodeToString(derive(k.secrets.first().Value, nil, "relays of region "+strconv.Itoa(region)))
}
