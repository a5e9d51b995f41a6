package netmap

import (
	"encoding/binary"
	"encoding/json"

	"tailscale.com/util/zstdframe"
)

// A message is its length, in four bytes, and its body. The body is a JSON
// document, for most clients compressed: as one Zstandard frame, or as several
// that together hold the document.

// window is the length of a block of peers. A larger window would cost memory in
// every encoder and gain nothing.
const window = 128 << 10

func compress(doc []byte) []byte {
	// Connections authenticate everything that is sent, so a checksum is not needed.
	return zstdframe.AppendEncode(nil, doc, zstdframe.FastestCompression, zstdframe.WithChecksum(false), zstdframe.MaxWindowSize(window))
}

// message returns a whole message with one document.
func message(doc []byte, compressed bool) []byte {
	body := doc
	if compressed {
		body = compress(doc)
	}
	return append(length(len(body)), body...)
}

func length(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }

// keepAliveMessage returns the message that says nothing. It is always the same
// bytes: clients recognise it without reading it.
func keepAliveMessage(compressed bool) []byte {
	return message([]byte(`{"KeepAlive":true}`), compressed)
}

// responseMessage encodes a response. Clients take a message that is as long as
// the last keep-alive for another keep-alive, so it never has that length.
func responseMessage(r any, keepAlive []byte, compressed bool) ([]byte, error) {
	doc, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	m := message(doc, compressed)
	for len(m) == len(keepAlive) {
		doc = append(doc, ' ')
		m = message(doc, compressed)
	}
	return m, nil
}
