package chaos_test

import (
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
	frameHeader = 24
	// attempted is where the index of the log has the number of frames that may be in the database already.
	attempted = 128
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
	index, err := os.ReadFile(path + "-shm")
	if err != nil {
		return l, err
	}
	l.checkpointed = int(binary.NativeEndian.Uint32(index[attempted:]))
	return l, nil
}

// offset returns where a frame begins.
func (l sqliteLog) offset(frame int) int { return logHeader + frame*(frameHeader+l.page) }

// commits returns the frames that end a transaction. Frames from before the log was reused do not count.
func (l sqliteLog) commits() (frames []int) {
	for i := 0; l.offset(i+1) <= len(l.data); i++ {
		header := l.data[l.offset(i):]
		if string(header[8:16]) != string(l.data[16:24]) {
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
