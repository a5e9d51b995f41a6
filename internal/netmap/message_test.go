package netmap_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/util/zstdframe"

	"github.com/fairlead-mesh/fairlead/internal/netmap"
)

// Clients mistake a message with the length of a keep-alive for a keep-alive.
func TestNoMessageHasTheLengthOfAKeepAlive(t *testing.T) {
	keepAlive := len(netmap.NewCache("").KeepAlive(netmap.Viewer{Compress: true}))
	tried := 0
	for n := range 40 {
		v := map[string]string{"Domain": string(slices.Repeat([]byte("q"), n))}
		m, err := netmap.ResponseMessage(v)
		if err != nil {
			t.Fatal(err)
		}
		if len(m) == keepAlive {
			t.Errorf("%v is as long as a keep-alive", v)
		}
		doc, err := zstdframe.AppendDecode(nil, m[4:])
		var back map[string]string
		if err != nil || json.Unmarshal(doc, &back) != nil {
			t.Fatalf("%v: %s", err, doc)
		}
		if diff := cmp.Diff(v, back); diff != "" {
			t.Error(diff)
		}
		if doc[len(doc)-1] == ' ' {
			tried++
		}
	}
	if tried == 0 {
		t.Error("no message had to be made longer")
	}
}
