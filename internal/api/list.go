package api

import (
	"bufio"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// page is the requested part of a list: elements with ids after the given one, at most limit of
// them. A limit of zero means all. Ids are never reused, so additions and removals do not move
// elements from one page to another.
type page struct {
	after int64
	limit int
}

const maxPage = 1000

func pageOf(limit *openapi.Limit, cursor *openapi.Cursor) (p page, err error) {
	if limit != nil {
		if p.limit = *limit; p.limit < 1 || p.limit > maxPage {
			return p, &badRequest{"limit", fmt.Sprintf("limit must be a number from 1 to %d", maxPage)}
		}
	}
	if or(cursor) != "" {
		if p.after, err = strconv.ParseInt(*cursor, 10, 64); err != nil || p.after < 1 {
			return p, &badRequest{"cursor", "invalid cursor: use the value of next from the previous response"}
		}
	}
	return p, nil
}

// rowLimit returns the limit of a list of past changes for the use cases, which treat zero as the
// default and refuse negative numbers. It turns an explicit zero in the request into -1, so that
// this is refused too.
func rowLimit(limit *int) int {
	if limit != nil && *limit == 0 {
		return -1
	}
	return or(limit)
}

// lister describes how a list is encoded: the name of the list's field, and the id and JSON of
// an element.
type lister[T any, ID ~int64] struct {
	name   string
	id     func(T) ID
	encode func(T) []byte
}

// reply streams a page of elements, which are sorted by id, one by one: a list may need much
// more memory than the rest of a request, and its reader may be slow. The drawback is a
// response without Content-Length.
func (l lister[T, ID]) reply(w http.ResponseWriter, snap *mesh.Snapshot, p page, elements iter.Seq[T]) {
	w.Header().Set(revisionHeader, revision(snap.Rev))
	w.Header().Set("Content-Type", "application/json")
	buf := bufio.NewWriterSize(paced{w}, pieceSize)
	_, _ = buf.WriteString(`{"` + l.name + `":[`) // buf keeps the first error
	shown, last, end := 0, ID(0), "]}"
	for e := range elements {
		id := l.id(e)
		if int64(id) <= p.after {
			continue
		}
		if p.limit > 0 && shown == p.limit {
			end = fmt.Sprintf(`],"next":"%d"}`, last)
			break
		}
		if shown > 0 {
			_ = buf.WriteByte(',')
		}
		if _, err := buf.Write(l.encode(e)); err != nil {
			break
		}
		shown, last = shown+1, id
	}
	_, _ = buf.WriteString(end)
	if buf.Flush() != nil {
		panic(http.ErrAbortHandler) // a truncated list must not look complete
	}
}

// where yields the elements that match a filter.
func where[T any](elements iter.Seq[T], wanted func(T) bool) iter.Seq[T] {
	return func(yield func(T) bool) {
		for e := range elements {
			if wanted(e) && !yield(e) {
				return
			}
		}
	}
}

// matches reports whether a property has the value of a filter; nil matches any.
func matches(want *bool, is bool) bool { return want == nil || *want == is }

const (
	pieceSize    = 64 << 10
	pieceTimeout = 30 * time.Second
)

// paced sets a deadline for each piece of a response rather than for the whole: a large
// response may take long on a slow connection, but one that nobody reads is aborted.
type paced struct{ http.ResponseWriter }

func (p paced) Write(b []byte) (written int, err error) {
	rc := http.NewResponseController(p.ResponseWriter)
	for piece := range slices.Chunk(b, pieceSize) {
		_ = rc.SetWriteDeadline(time.Now().Add(pieceTimeout)) // a connection that does not support deadlines does not block
		n, err := p.ResponseWriter.Write(piece)
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}
