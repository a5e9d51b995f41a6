package api

import (
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
)

// noiseKeys handles the operations on the key by which clients recognize the server.
type noiseKeys struct {
	*core
	control *control.NoiseKeys
}

// ShowNoiseKey implements GET /api/v1/server/noise-key.
func (s *noiseKeys) ShowNoiseKey(w http.ResponseWriter, r *http.Request) { s.replyNoiseKey(w, r, nil) }

// RotateNoiseKey implements POST /api/v1/server/noise-key/rotate.
func (s *noiseKeys) RotateNoiseKey(w http.ResponseWriter, r *http.Request) {
	s.replyNoiseKey(w, r, s.control.Rotate(r.Context(), actor(r)))
}

// RetireNoiseKey implements POST /api/v1/server/noise-key/retire.
func (s *noiseKeys) RetireNoiseKey(w http.ResponseWriter, r *http.Request) {
	var in openapi.NoiseKeyRetirement
	err := decode(w, r, &in)
	if err == nil {
		err = s.control.Retire(r.Context(), actor(r), or(in.Force))
	}
	s.replyNoiseKey(w, r, err)
}

func (s *noiseKeys) replyNoiseKey(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, s.ledger.World().Snapshot, s.shape())
}

func (s *noiseKeys) replayNoiseKey(replayed) (any, error) { return s.shape(), nil }

func (s *noiseKeys) shape() openapi.NoiseKeyStatus {
	status := s.control.Status()
	out := openapi.NoiseKeyStatus{PublicKey: status.Current.String(), Nodes: []openapi.NoiseKeyNode{}, Replicas: list(status.Replicas)}
	if status.Previous.IsZero() {
		return out
	}
	out.PreviousKey, out.RotatedAt = new(status.Previous.String()), new(status.RotatedAt.Time())
	for _, n := range status.Waiting {
		node := openapi.NoiseKeyNode{ID: n.ID.String(), Name: n.Name, Online: n.Presence.Online}
		if n.Presence.LastSeen != 0 {
			node.LastSeen = new(n.Presence.LastSeen.Time())
		}
		out.Nodes = append(out.Nodes, node)
	}
	return out
}
