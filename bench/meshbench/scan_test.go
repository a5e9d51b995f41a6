package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// told records what a scan reported.
type told struct {
	Self             int64
	Full             int
	Keys             []string
	Removed, Patched []int64
	Alive            int
}

func (t *told) selfID(id int64)      { t.Self = id }
func (t *told) fullPeers()           { t.Full++ }
func (t *told) peerKey(hex []byte)   { t.Keys = append(t.Keys, string(hex)) }
func (t *told) peerRemoved(id int64) { t.Removed = append(t.Removed, id) }
func (t *told) peerPatched(id int64) { t.Patched = append(t.Patched, id) }
func (t *told) keptAlive()           { t.Alive++ }

func scan(t *testing.T, text string) told {
	t.Helper()
	var got told
	if err := scanMap([]byte(text), &got); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return got
}

func TestScanFindsPeersAmongEverythingElse(t *testing.T) {
	k1, k2, self := key.NewNode().Public(), key.NewNode().Public(), key.NewNode().Public()
	m := &tailcfg.MapResponse{
		Node:              &tailcfg.Node{ID: 42, Key: self, Name: `we"ird\\.`},
		Peers:             []*tailcfg.Node{{ID: 1, Key: k1}, {ID: 2, Key: k2}},
		PeersRemoved:      []tailcfg.NodeID{7, 8},
		PeersChangedPatch: []*tailcfg.PeerChange{{NodeID: 9, DERPRegion: 3}},
		Domain:            `a"}],\`,
	}
	want := told{Self: 42, Full: 1, Removed: []int64{7, 8}, Patched: []int64{9}, Keys: []string{k1.String()[len(nodeKeyPrefix):], k2.String()[len(nodeKeyPrefix):]}}
	dense, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	spaced, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{dense, spaced} {
		if diff := cmp.Diff(want, scan(t, string(text))); diff != "" {
			t.Errorf("%s\n%s", text, diff)
		}
	}
}

func TestKeepAliveIsTheMemberOfTheMapOnly(t *testing.T) {
	for text, want := range map[string]told{
		`{"Peers":null,"KeepAlive":true}`: {Alive: 1},
		`{"KeepAlive":false}`:             {},
		`{"Node":{"KeepAlive":true}}`:     {},
	} {
		if diff := cmp.Diff(want, scan(t, text)); diff != "" {
			t.Errorf("%s\n%s", text, diff)
		}
	}
}

func TestTruncatedMapIsAnError(t *testing.T) {
	for _, text := range []string{`{"Peers":[{"Key":"nodek`, `{"Peers":[{"Key":1}`, `{"Node"`, `{`} {
		if err := scanMap([]byte(text), new(told)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

func FuzzScanEndsOnAnyInput(f *testing.F) {
	f.Add([]byte(`{"Node":{"ID":1},"PeersRemoved":[2],"PeersChangedPatch":[{"NodeID":3}],"Peers":[{"Endpoints":["10.99.0.1:20002"]}]}`))
	f.Add([]byte(`{"PeersRemoved":[-]}`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		_ = scanMap(text, new(told))
		for _, rest := nextChange(text); rest != nil; _, rest = nextChange(rest) {
		}
	})
}
