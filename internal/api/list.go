package api

import (
	"bufio"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// replyList answers with an object that holds one list, element by element: a
// list may be many times larger than all else that a request needs, and its
// reader slow. The price is that nobody is told its length before.
func replyList[T any](w http.ResponseWriter, snap *mesh.Snapshot, name string, elements iter.Seq[T]) {
	w.Header().Set(revisionHeader, revision(snap.Rev))
	w.Header().Set("Content-Type", "application/json")
	buf := bufio.NewWriterSize(paced{w}, pieceSize)
	_, _ = buf.WriteString(`{"` + name + `":[`) // buf keeps the first error
	separator := ""
	for e := range elements {
		_, _ = buf.WriteString(separator)
		separator = ","
		if _, err := buf.Write(encoded(e)); err != nil {
			break
		}
	}
	_, _ = buf.WriteString("]}")
	if buf.Flush() != nil {
		panic(http.ErrAbortHandler) // part of a list must not look like all of it
	}
}

const (
	pieceSize    = 64 << 10
	pieceTimeout = 30 * time.Second
)

// paced gives a reader time for each piece of an answer rather than for the
// whole: a large answer arrives over a slow line, and one that nobody reads
// ends.
type paced struct{ http.ResponseWriter }

func (p paced) Write(b []byte) (written int, err error) {
	rc := http.NewResponseController(p.ResponseWriter)
	for piece := range slices.Chunk(b, pieceSize) {
		_ = rc.SetWriteDeadline(time.Now().Add(pieceTimeout)) // where it cannot be set nothing can hang
		n, err := p.ResponseWriter.Write(piece)
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}
