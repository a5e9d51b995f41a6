package relay

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"tailscale.com/derp"
	"tailscale.com/derp/derphttp"
	"tailscale.com/net/netmon"
)

// RunPeer forwards packets to the clients of another relay of the region, until ctx ends. It needs a mesh key. The other
// relay does the same in the opposite direction. connected is called when the connection is made and when it breaks.
func (s *Server) RunPeer(ctx context.Context, p Peer, connected func(bool)) error {
	debug := func(format string, args ...any) {
		if s.config.Log.Enabled(ctx, slog.LevelDebug) {
			s.config.Log.DebugContext(ctx, "relay mesh event", "peer", p.Name, "event", fmt.Sprintf(format, args...))
		}
	}
	c, err := derphttp.NewClient(s.config.Key, p.URL+"/derp", debug, netmon.NewStatic())
	if err != nil {
		return fmt.Errorf("relay %s: %w", p.Name, err)
	}
	if p.Addr != "" {
		c.SetURLDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, p.Addr)
		})
	}
	c.MeshKey = s.derp.MeshKey()
	c.WatchConnectionChanges = true
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // the loop ends only if the client is closed too
	defer stop()
	up := false
	change := func(now bool) {
		if now != up {
			up = now
			connected(now)
		}
	}
	defer change(false)
	c.RunWatchConnectionLoop(ctx, s.derp.PublicKey(), func(format string, args ...any) { debug(format, args...) },
		func(m derp.PeerPresentMessage) {
			change(true) // the other relay lists at least this connection
			s.derp.AddPacketForwarder(m.Key, c)
		},
		func(m derp.PeerGoneMessage) { s.derp.RemovePacketForwarder(m.Peer, c) },
		func(err error) {
			change(false)
			debug("connection broken: %v", err)
		})
	return nil
}
