package wire_test

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"tailscale.com/control/controlbase"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/wire"
)

// counted counts the writes to a connection.
type counted struct {
	net.Conn
	writes atomic.Int32
}

func (c *counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// What is written inside Noise arrives unchanged, and each write is one write to the network, whatever its size.
func TestWriteInsideNoiseIsOneWrite(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	below, private := &counted{Conn: far}, key.NewMachine()
	type dialed struct {
		conn *controlbase.Conn
		err  error
	}
	clients := make(chan dialed, 1)
	go func() {
		conn, err := controlbase.Client(t.Context(), near, key.NewMachine(), private.Public(), uint16(tailcfg.CurrentCapabilityVersion))
		clients <- dialed{conn, err}
	}()
	server, err := wire.NoiseOver(t.Context(), below, private)
	if err != nil {
		t.Fatal(err)
	}
	client := <-clients
	if client.err != nil {
		t.Fatal(client.err)
	}
	for _, size := range []int{1, 4077, 4078, 9, 16<<10 + 9, 100, 200_000, 5} {
		sent, got := make([]byte, size), make([]byte, size)
		_, _ = rand.Read(sent)
		before := below.writes.Load()
		failed := make(chan error, 1)
		go func() {
			_, err := server.Write(sent)
			failed <- err
		}()
		if _, err := io.ReadFull(client.conn, got); err != nil || !bytes.Equal(sent, got) {
			t.Fatalf("%d bytes do not arrive: %v", size, err)
		}
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
		if n := below.writes.Load() - before; n != 1 {
			t.Errorf("%d bytes: %d writes", size, n)
		}
	}
	near.Close()
	if _, err := server.Write(make([]byte, 10_000)); err == nil {
		t.Error("a write to a closed connection succeeds")
	}
}
