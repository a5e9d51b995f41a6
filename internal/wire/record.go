package wire

import (
	"sync"

	"tailscale.com/control/controlbase"
)

const (
	// recordBytes is the most that one record of Noise can contain.
	recordBytes = 4096 - 3 - 16
	// recordsBytes is a buffer for the records of a frame of HTTP/2.
	recordsBytes = 20 << 10
)

// noiseConn is a connection on which a write of any size is one write to the network. Noise itself writes each record of 4 kB
// separately, which takes more time than to encrypt it. Only one goroutine may write at a time.
type noiseConn struct {
	*controlbase.Conn
	below   *lazyConn  // the connection below Noise
	buffers *sync.Pool // of *[]byte
}

// Write implements net.Conn. Like any failed write to Noise, one that fails makes the connection unusable.
func (c noiseConn) Write(b []byte) (int, error) {
	if len(b) <= recordBytes {
		return c.Conn.Write(b)
	}
	buf := c.buffers.Get().(*[]byte)
	c.below.kept, c.below.keep = (*buf)[:0], true
	n, err := c.Conn.Write(b)
	records := c.below.kept
	c.below.kept, c.below.keep = nil, false
	if err == nil {
		_, err = c.below.Conn.Write(records)
	}
	if cap(records) <= recordsBytes {
		*buf = records[:0]
		c.buffers.Put(buf)
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

func newRecords() any {
	b := make([]byte, 0, recordsBytes)
	return &b
}
