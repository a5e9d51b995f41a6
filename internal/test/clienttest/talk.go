package clienttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Echo sends back what it receives on every connection to a port of loopback, until the test ends.
func Echo(t testing.TB) (port int) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(ctx, func() { conn.Close() })
			wait.Go(func() {
				_, _ = io.Copy(conn, conn)
				conn.Close()
			})
		}
	})
	t.Cleanup(func() { l.Close(); stop(); wait.Wait() })
	return l.Addr().(*net.TCPAddr).Port
}

// Talk is a TCP stream that sends random bytes and compares what comes back.
type Talk struct {
	conn    net.Conn
	wait    sync.WaitGroup
	err     error // may be read after wait
	bytes   atomic.Int64
	stalled atomic.Int64 // the longest time for one round, in nanoseconds
}

// StartTalk starts to talk, with a message after each pause.
func StartTalk(conn net.Conn, pause time.Duration) *Talk {
	k := &Talk{conn: conn}
	k.wait.Go(func() { k.err = k.run(pause) })
	return k
}

func (k *Talk) run(pause time.Duration) error {
	random := rand.NewChaCha8([32]byte{1})
	sent, got := make([]byte, 4096), make([]byte, 4096)
	pace := time.NewTicker(pause)
	defer pace.Stop()
	for ; ; <-pace.C {
		begun := time.Now()
		_, _ = random.Read(sent) // never fails
		if _, err := k.conn.Write(sent); err != nil {
			return err
		}
		if _, err := io.ReadFull(k.conn, got); err != nil {
			return err
		}
		if !bytes.Equal(sent, got) {
			return fmt.Errorf("after %d bytes others came back than were sent", k.bytes.Load())
		}
		k.bytes.Add(int64(len(got)))
		k.stalled.Store(max(k.stalled.Load(), int64(time.Since(begun))))
	}
}

// Bytes returns how many bytes have come back so far.
func (k *Talk) Bytes() int64 { return k.bytes.Load() }

// Stalled returns the longest time until a message came back.
func (k *Talk) Stalled() time.Duration {
	return time.Duration(k.stalled.Load()).Round(time.Millisecond)
}

// End closes the stream. It returns an error if the stream broke before.
func (k *Talk) End() error {
	k.conn.Close()
	k.wait.Wait()
	if !errors.Is(k.err, net.ErrClosed) {
		return fmt.Errorf("the TCP stream broke: %w", k.err)
	}
	return nil
}
