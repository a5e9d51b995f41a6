//go:build !race

package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

func TestFactsOfARealClientAreShown(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		n := startNetwork(t, meshtest.Config{})
		n.join(ctx, clienttest.Options{Version: version}, n.key(), "laptop")
		eventually(ctx, t, func() error {
			text, err := n.API(ctx, "GET", "/api/v1/node/laptop", "")
			if err != nil {
				return err
			}
			type region struct {
				ID   int    `json:"id"`
				Code string `json:"code"`
			}
			var shown struct {
				Node struct {
					Host struct {
						OS            string   `json:"os"`
						ClientVersion string   `json:"clientVersion"`
						Endpoints     []string `json:"endpoints"`
						Relay         *region  `json:"relay"`
						Latencies     []struct {
							Region       region  `json:"region"`
							Milliseconds float64 `json:"milliseconds"`
						} `json:"latencies"`
						NAT struct {
							UDP *bool `json:"udp"`
						} `json:"nat"`
					} `json:"host"`
				} `json:"node"`
			}
			if err := json.Unmarshal(text, &shown); err != nil {
				return err
			}
			h := shown.Node.Host
			if h.OS != "linux" || h.ClientVersion == "" || len(h.Endpoints) == 0 || h.Relay == nil || h.Relay.Code == "" ||
				len(h.Latencies) != 1 || h.Latencies[0].Region != *h.Relay || h.Latencies[0].Milliseconds <= 0 || h.NAT.UDP == nil {
				return fmt.Errorf("not all is known: %s", text)
			}
			return nil
		})
	})
}
