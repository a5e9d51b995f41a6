package chaos_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"testing"
)

// The format of write-ahead logs: https://www.sqlite.org/fileformat2.html#walformat
const (
	logSuffix   = "-wal"
	logHeader   = 32
	logSalt     = 16 // in the header
	frameHeader = 24
	// In the index of the log, -shm: two copies of a header, and the number of frames that may be in the database already.
	indexHeader = 48
	indexReady  = 12 // a byte of the header
	indexSalt   = 32 // in the header
	attempted   = 128
)

// sqliteLog is the write-ahead log of a database. Frames are counted from zero.
type sqliteLog struct {
	data         []byte
	page         int // bytes
	checkpointed int // frames that may be in the database already
}

// readLog reads the log of a database, which may not exist.
func readLog(path string) (l sqliteLog, err error) {
	l.data, err = os.ReadFile(path + logSuffix)
	if errors.Is(err, fs.ErrNotExist) || len(l.data) < logHeader {
		return sqliteLog{page: 4096}, nil
	}
	if err != nil {
		return l, err
	}
	l.page = int(binary.BigEndian.Uint32(l.data[8:]))
	l.checkpointed = len(l.data) / (frameHeader + l.page)
	index, err := os.ReadFile(path + "-shm")
	if err != nil {
		return l, err
	}
	// Without a complete index of this log, all frames may be in the database: the process was opening the database, or had
	// finished a checkpoint.
	if len(index) >= attempted+4 && index[indexReady] == 1 && bytes.Equal(index[:indexHeader], index[indexHeader:2*indexHeader]) &&
		bytes.Equal(index[indexSalt:indexSalt+8], l.data[logSalt:logSalt+8]) {
		l.checkpointed = int(binary.NativeEndian.Uint32(index[attempted:]))
	}
	return l, nil
}

// offset returns where a frame begins.
func (l sqliteLog) offset(frame int) int { return logHeader + frame*(frameHeader+l.page) }

// commits returns the frames that end a transaction. Frames from before the log was reused do not count.
func (l sqliteLog) commits() (frames []int) {
	for i := 0; l.offset(i+1) <= len(l.data); i++ {
		header := l.data[l.offset(i):]
		if !bytes.Equal(header[8:16], l.data[logSalt:logSalt+8]) {
			break
		}
		if binary.BigEndian.Uint32(header[4:]) != 0 {
			frames = append(frames, i)
		}
	}
	return frames
}

// write replaces the log of a database by its first bytes, and removes the index, which SQLite creates again.
func (l sqliteLog) write(t *testing.T, path string, size int) {
	t.Helper()
	if err := os.WriteFile(path+logSuffix, l.data[:size], 0o600); err != nil {
		t.Fatal(err)
	}
	os.Remove(path + "-shm")
}
