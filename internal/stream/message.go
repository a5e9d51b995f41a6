package stream

import (
	"encoding/binary"
	"encoding/json"

	"tailscale.com/util/zstdframe"
)

// A message is its length and its body. The body is JSON, compressed as one
// Zstandard frame or as several that make the document together.

// window is as much as a block of peers is long. A larger one would cost memory
// for every encoder and shorten nothing.
const window = 128 << 10

func compress(doc []byte) []byte {
	// Every message is authenticated on its way: a checksum would be a second.
	return zstdframe.AppendEncode(nil, doc, zstdframe.FastestCompression, zstdframe.WithChecksum(false), zstdframe.MaxWindowSize(window))
}

// message is a whole message around one document.
func message(doc []byte, compressed bool) []byte {
	body := doc
	if compressed {
		body = compress(doc)
	}
	return append(length(len(body)), body...)
}

func length(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }

// keepAlive is always the same bytes, by which clients know it without reading
// it.
func keepAlive(compressed bool) []byte { return message([]byte(`{"KeepAlive":true}`), compressed) }

// news is a message that is no keep-alive. Clients take a message of the length
// of the last keep-alive for another one, so it never has that length.
func news(v any, alive []byte, compressed bool) ([]byte, error) {
	doc, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	m := message(doc, compressed)
	for len(m) == len(alive) {
		doc = append(doc, ' ')
		m = message(doc, compressed)
	}
	return m, nil
}
