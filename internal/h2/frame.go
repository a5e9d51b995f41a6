package h2

import (
	"encoding/binary"

	"golang.org/x/net/http2"
)

// appendHead appends the head of a frame.
func appendHead(b []byte, size int, kind http2.FrameType, flags http2.Flags, stream uint32) []byte {
	b = append(b, byte(size>>16), byte(size>>8), byte(size), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(b, stream)
}

func appendSettings(b []byte, settings ...http2.Setting) []byte {
	b = appendHead(b, 6*len(settings), http2.FrameSettings, 0, 0)
	for _, s := range settings {
		b = binary.BigEndian.AppendUint16(b, uint16(s.ID))
		b = binary.BigEndian.AppendUint32(b, s.Val)
	}
	return b
}

func appendPing(b []byte, flags http2.Flags, data [8]byte) []byte {
	return append(appendHead(b, len(data), http2.FramePing, flags, 0), data[:]...)
}

// pingData returns the data of the server's own pings.
func pingData() [8]byte { return [8]byte([]byte("fairlead")) }

func appendReset(b []byte, stream uint32, code http2.ErrCode) []byte {
	return binary.BigEndian.AppendUint32(appendHead(b, 4, http2.FrameRSTStream, 0, stream), uint32(code))
}

func appendWindowUpdate(b []byte, stream uint32, more int64) []byte {
	return binary.BigEndian.AppendUint32(appendHead(b, 4, http2.FrameWindowUpdate, 0, stream), uint32(more))
}

func appendGoAway(b []byte, last uint32, code http2.ErrCode) []byte {
	b = binary.BigEndian.AppendUint32(appendHead(b, 8, http2.FrameGoAway, 0, 0), last)
	return binary.BigEndian.AppendUint32(b, uint32(code))
}

// appendHeaders appends a block of header fields in as many frames as it needs.
func appendHeaders(b []byte, stream uint32, block []byte, end bool) []byte {
	kind, flags := http2.FrameHeaders, http2.Flags(0)
	if end {
		flags = http2.FlagHeadersEndStream
	}
	for {
		n := min(len(block), frameBytes)
		if n == len(block) {
			flags |= http2.FlagHeadersEndHeaders
		}
		b = append(appendHead(b, n, kind, flags, stream), block[:n]...)
		if block = block[n:]; len(block) == 0 {
			return b
		}
		kind, flags = http2.FrameContinuation, 0
	}
}
