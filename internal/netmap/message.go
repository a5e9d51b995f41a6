package netmap

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"tailscale.com/util/zstdframe"
)

// A message consists of its length, in four bytes, and its body. The body is a JSON
// document. For most clients it is compressed, as one Zstandard frame or as several that
// together hold the document.

// window is the length of a block of peers. A larger window would cost memory in
// every encoder and gain nothing.
const window = 128 << 10

// compress returns a document as a frame. Its buffer is as large as the document, so a frame that is kept should be cloned.
func compress(doc []byte) []byte { return appendFrame(nil, doc) }

// appendFrame appends a document as a frame.
func appendFrame(dst, doc []byte) []byte {
	// Connections authenticate everything that is sent, so a checksum is not needed.
	return zstdframe.AppendEncode(dst, doc, zstdframe.FastestCompression, zstdframe.WithChecksum(false), zstdframe.MaxWindowSize(window))
}

// decompress decodes frame by frame: for many frames at once, the decoder would
// allocate the document again for each.
func decompress(body []byte) (doc []byte, err error) {
	var frame []byte
	for len(body) > 0 {
		n, err := zstdframe.NextSize(body)
		if err != nil {
			return nil, fmt.Errorf("reading a frame: %w", err)
		}
		if frame, err = zstdframe.AppendDecode(frame[:0], body[:n]); err != nil {
			return nil, fmt.Errorf("decompressing: %w", err)
		}
		doc, body = append(doc, frame...), body[n:]
	}
	return doc, nil
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

// keepAliveMessage returns the keep-alive message. Its bytes are always the same, so that
// clients recognize it without decoding it.
func keepAliveMessage(compressed bool) []byte {
	return message([]byte(`{"KeepAlive":true}`), compressed)
}

// responseMessage encodes a response. Clients treat a message with the length of the last
// keep-alive as another keep-alive, so a response never has that length.
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

// readMessages decodes messages that follow each other, as a client does.
func readMessages(sent []byte, compressed bool) (list []*Response, err error) {
	for len(sent) > 0 {
		if len(sent) < 4 {
			return nil, errors.New("truncated message length")
		}
		n := binary.LittleEndian.Uint32(sent)
		sent = sent[4:]
		if uint64(n) > uint64(len(sent)) {
			return nil, fmt.Errorf("truncated message: want %d bytes, got %d", n, len(sent))
		}
		doc := sent[:n]
		sent = sent[n:]
		if compressed {
			if doc, err = decompress(doc); err != nil {
				return nil, err
			}
		}
		r := &Response{}
		if err := json.Unmarshal(doc, r); err != nil {
			return nil, fmt.Errorf("decoding: %w", err)
		}
		list = append(list, r)
	}
	return list, nil
}
