package main

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/util/zstdframe"
)

func decode(t *testing.T, sent []byte) []byte {
	t.Helper()
	text, err := zstdframe.AppendDecode(nil, sent[4:])
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestOnlyKeepAlivesHaveTheirLength(t *testing.T) {
	s := newReference(0, 0)
	if got := decode(t, s.keepAliveSent); string(got) != `{"KeepAlive":true}` {
		t.Errorf("keep-alive is %s", got)
	}
	padded := 0
	for i := range 64 {
		text := []byte(`{"D":"` + strings.Repeat("abcdefghijklmnopqrstuvwxyz", 3)[:i] + `"}`)
		if len(encode(text)) == len(s.keepAliveSent) {
			padded++
		}
		sent := s.message(text)
		if len(sent) == len(s.keepAliveSent) {
			t.Errorf("%s is as long as a keep-alive", text)
		}
		if got := decode(t, sent); !bytes.Equal(bytes.TrimRight(got, " "), text) {
			t.Errorf("%s came back as %s", text, got)
		}
	}
	if padded == 0 {
		t.Error("no input needed padding")
	}
	if empty := s.fullMap(); !json.Valid(decode(t, empty)) || len(empty) == len(s.keepAliveSent) {
		t.Errorf("the empty map is %s in %d bytes", decode(t, empty), len(empty))
	}
}

func TestUpdateBecomesAPatchOnlyAfterTheAnnouncement(t *testing.T) {
	s := newReference(0, 0)
	s.add(&tailcfg.RegisterRequest{Hostinfo: new(tailcfg.Hostinfo), NodeKey: key.NewNode().Public()})
	n := s.nodes[0]
	req := &tailcfg.MapRequest{
		DiscoKey: key.NewDisco().Public(), Endpoints: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")},
		Hostinfo: &tailcfg.Hostinfo{NetInfo: &tailcfg.NetInfo{PreferredDERP: 7}},
	}
	s.update(n, req)
	if n.node.DiscoKey != req.DiscoKey || len(n.node.Endpoints) != 1 || n.node.HomeDERP != 7 {
		t.Errorf("update not taken: %+v", n.node)
	}
	if n.json != nil || s.patched != nil {
		t.Error("a node without a stream was published")
	}
	n.json = []byte("{}") // the node has a stream but has not been announced yet
	s.update(n, req)
	if s.patched != nil || !bytes.Contains(n.json, []byte("192.0.2.1:1")) {
		t.Errorf("before the announcement: %d patches, node %s", len(s.patched), n.json)
	}
	n.announced = true
	s.update(n, req)
	if len(s.patched) != 1 {
		t.Errorf("after the announcement: %d patches", len(s.patched))
	}
}
