package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"syscall"
	"time"

	"tailscale.com/net/stun"
)

func listenSTUN(addr string) (*net.UDPConn, error) {
	const setting = "derp.server.stun_listen_addr"
	conn, err := (&net.ListenConfig{}).ListenPacket(context.Background(), "udp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("address already in use: %s %s: stop the process that listens there, choose another port, or turn off the embedded relay with derp.server.enabled: false", setting, addr)
	case err != nil:
		return nil, fmt.Errorf("%s %s: %w", setting, addr, err)
	}
	return conn.(*net.UDPConn), nil
}

// serveSTUN tells clients the address they connect from, until ctx ends. It sends one datagram of about the
// same size for each datagram it receives, and only to mesh clients, so it cannot be used for amplification
// attacks.
func serveSTUN(ctx context.Context, conn *net.UDPConn, log *slog.Logger) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	buf := make([]byte, 1500) // a binding request has a few dozen bytes
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			log.Warn("cannot read from the STUN socket", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second): // the next read may fail just as quickly
			}
			continue
		}
		id, err := stun.ParseBindingRequest(buf[:n])
		if err != nil {
			continue
		}
		seen := netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		_, _ = conn.WriteToUDPAddrPort(stun.Response(id, seen), from) // the client retries if the response is lost
	}
}
