package h2

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
)

// request returns the request that a header describes, without a body.
func request(f *http2.MetaHeadersFrame) (*http.Request, error) {
	malformed := http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
	method, path := f.PseudoValue("method"), f.PseudoValue("path")
	if f.Truncated { // what is missing may be anything
		method, path = http.MethodGet, "/"
	}
	scheme := f.PseudoValue("scheme")
	if method == "" || method == http.MethodConnect || f.PseudoValue("protocol") != "" || !strings.HasPrefix(path, "/") || scheme != "http" && scheme != "https" && !f.Truncated {
		return nil, malformed
	}
	u, err := url.ParseRequestURI(path)
	if err != nil {
		return nil, malformed
	}
	r := &http.Request{
		Method: method, URL: u, RequestURI: path, Proto: "HTTP/2.0", ProtoMajor: 2, Host: f.PseudoValue("authority"),
		Header: make(http.Header, len(f.RegularFields())), ContentLength: -1,
	}
	for _, field := range f.RegularFields() {
		switch field.Name {
		case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
			return nil, malformed
		case "te":
			if field.Value != "trailers" {
				return nil, malformed
			}
		case "host":
			if r.Host == "" {
				r.Host = field.Value
			}
			continue
		case "content-length":
			n, err := strconv.ParseUint(field.Value, 10, 63)
			if err != nil || r.ContentLength >= 0 && r.ContentLength != int64(n) {
				return nil, malformed
			}
			r.ContentLength = int64(n)
		}
		r.Header.Add(field.Name, field.Value)
	}
	return r, nil
}
