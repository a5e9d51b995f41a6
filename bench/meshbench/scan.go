package main

import (
	"bytes"
	"errors"
)

// mapSink receives the parts of a MapResponse that a virtual node needs. Everything else in the message is
// skipped without being decoded.
type mapSink interface {
	selfID(id int64)      // Node.ID
	fullPeers()           // the start of a full Peers list, which replaces the previous one
	peerKey(hex []byte)   // the 64 hex digits of a peer's node key, in Peers or PeersChanged
	peerRemoved(id int64) // an ID in PeersRemoved
	peerPatched(id int64) // a NodeID in PeersChangedPatch
	keptAlive()           // KeepAlive is true
}

var errJSON = errors.New("malformed JSON in map response")

// scanMap walks the top level of one MapResponse and reports to s.
func scanMap(b []byte, s mapSink) error {
	_, err := walkObject(b, skipSpace(b, 0), func(k []byte, i int) (int, error) {
		switch string(k) {
		case "Node":
			return scanSelf(b, i, s)
		case "KeepAlive":
			if i < len(b) && b[i] == 't' {
				s.keptAlive()
			}
			return skipValue(b, i)
		case "Peers":
			if i < len(b) && b[i] == '[' {
				s.fullPeers()
			}
			return scanNodeKeys(b, i, s)
		case "PeersChanged":
			return scanNodeKeys(b, i, s)
		case "PeersRemoved":
			return walkArray(b, i, func(i int) (int, error) {
				id, j := readInt(b, i)
				s.peerRemoved(id)
				return j, nil
			})
		case "PeersChangedPatch":
			return walkArray(b, i, func(i int) (int, error) {
				return walkObject(b, i, func(k []byte, i int) (int, error) {
					if string(k) == "NodeID" {
						id, j := readInt(b, i)
						s.peerPatched(id)
						return j, nil
					}
					return skipValue(b, i)
				})
			})
		}
		return skipValue(b, i)
	})
	return err
}

func scanSelf(b []byte, i int, s mapSink) (int, error) {
	if i < len(b) && b[i] != '{' {
		return skipValue(b, i)
	}
	return walkObject(b, i, func(k []byte, i int) (int, error) {
		if string(k) == "ID" {
			id, j := readInt(b, i)
			s.selfID(id)
			return j, nil
		}
		return skipValue(b, i)
	})
}

const nodeKeyPrefix = "nodekey:"

// scanNodeKeys skips a value and reports every string in it of the form
// "nodekey:<64 hex digits>".
func scanNodeKeys(b []byte, i int, s mapSink) (int, error) {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			end := stringEnd(b, i)
			if end < 0 {
				return 0, errJSON
			}
			if end-i == 2+8+64 && string(b[i+1:i+9]) == nodeKeyPrefix {
				s.peerKey(b[i+9 : i+73])
			}
			i = end
			if depth == 0 {
				return i, nil
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i, nil // end of the enclosing container: scalar value
			}
			depth--
			if depth == 0 {
				return i + 1, nil
			}
		case ',':
			if depth == 0 {
				return i, nil
			}
		}
		i++
	}
	return 0, errJSON
}

type discardSink struct{}

func (discardSink) selfID(int64)      {}
func (discardSink) fullPeers()        {}
func (discardSink) peerKey([]byte)    {}
func (discardSink) peerRemoved(int64) {}
func (discardSink) peerPatched(int64) {}
func (discardSink) keptAlive()        {}

func skipValue(b []byte, i int) (int, error) { return scanNodeKeys(b, i, discardSink{}) }

// stringEnd returns the index just past the string starting at b[i], or -1.
func stringEnd(b []byte, i int) int {
	j := i + 1
	for {
		k := bytes.IndexByte(b[j:], '"')
		if k < 0 {
			return -1
		}
		j += k
		bs := 0
		for p := j - 1; p > i && b[p] == '\\'; p-- {
			bs++
		}
		j++
		if bs%2 == 0 {
			return j
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

func readInt(b []byte, i int) (int64, int) {
	var n int64
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		n = n*10 + int64(b[i]-'0')
		i++
	}
	return n, i
}

// walkObject calls fn with each key and the index of its value; fn returns
// the index just past the value.
func walkObject(b []byte, i int, fn func(k []byte, i int) (int, error)) (int, error) {
	if i >= len(b) || b[i] != '{' {
		return skipValue(b, i)
	}
	i++
	for {
		i = skipSpace(b, i)
		if i >= len(b) {
			return 0, errJSON
		}
		switch b[i] {
		case '}':
			return i + 1, nil
		case ',':
			i++
			continue
		case '"':
		default:
			return 0, errJSON
		}
		end := stringEnd(b, i)
		if end < 0 {
			return 0, errJSON
		}
		k := b[i+1 : end-1]
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ':' {
			return 0, errJSON
		}
		var err error
		if i, err = fn(k, skipSpace(b, i+1)); err != nil {
			return 0, err
		}
	}
}

// walkArray calls fn with the index of each element; fn returns the index
// just past it. A value that is not an array is skipped.
func walkArray(b []byte, i int, fn func(i int) (int, error)) (int, error) {
	if i >= len(b) || b[i] != '[' {
		return skipValue(b, i)
	}
	i++
	for {
		i = skipSpace(b, i)
		if i >= len(b) {
			return 0, errJSON
		}
		if b[i] == ']' {
			return i + 1, nil
		}
		if b[i] == ',' {
			i++
			continue
		}
		end, err := fn(i)
		if err != nil {
			return 0, err
		}
		if end == i {
			return 0, errJSON
		}
		i = end
	}
}
