package main

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// seen is a request as the proxy passed it on.
type seen struct {
	By     string // the address that this process listens on
	Method string
	Host   string
	Path   string
	Header http.Header
	Body   int64
}

func main() {
	server := http.Server{Addr: os.Args[1], Handler: http.HandlerFunc(serve), ReadHeaderTimeout: time.Minute}
	if err := server.ListenAndServe(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" {
		echo(w, r)
		return
	}
	h := w.Header()
	// The proxy must replace these headers with its own.
	h.Set("Strict-Transport-Security", "max-age=1")
	h.Set("X-Frame-Options", "SAMEORIGIN")
	h.Set("X-Content-Type-Options", "upstream")
	h.Set("X-XSS-Protection", "0")
	switch r.URL.Path {
	case "/missing":
		w.WriteHeader(http.StatusNotFound)
	case "/redirect":
		h.Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusMovedPermanently)
	case "/stream":
		// Send one message, then nothing until the client disconnects.
		fmt.Fprintln(w, "first")
		if err := http.NewResponseController(w).Flush(); err == nil {
			<-r.Context().Done()
		}
	default:
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		// Ignore the error: the client may be gone.
		_ = json.NewEncoder(w).Encode(seen{os.Args[1], r.Method, r.Host, r.URL.Path, r.Header, n})
	}
}

// echo accepts any protocol upgrade and sends back everything it receives.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n", r.Header.Get("Upgrade"))
	// Some proxies check that the WebSocket handshake follows RFC 6455.
	if key := r.Header.Get("Sec-WebSocket-Key"); key != "" {
		sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		fmt.Fprintf(conn, "Sec-WebSocket-Accept: %s\r\n", base64.StdEncoding.EncodeToString(sum[:]))
	}
	fmt.Fprint(conn, "\r\n")
	// Copy until the client disconnects.
	_, _ = io.Copy(conn, buffered)
}
