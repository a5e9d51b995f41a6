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

// seen is a request as it came out of the proxy.
type seen struct {
	By     string // the address that was listened on
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
	// What the proxy must replace by its own.
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
		// One message, and then silence until the client goes.
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
		// A client that is gone needs no answer.
		_ = json.NewEncoder(w).Encode(seen{os.Args[1], r.Method, r.Host, r.URL.Path, r.Header, n})
	}
}

// echo agrees to whatever protocol is asked for and sends back all it gets.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n", r.Header.Get("Upgrade"))
	// Some proxies look whether a WebSocket was agreed on as RFC 6455 says.
	if key := r.Header.Get("Sec-WebSocket-Key"); key != "" {
		sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		fmt.Fprintf(conn, "Sec-WebSocket-Accept: %s\r\n", base64.StdEncoding.EncodeToString(sum[:]))
	}
	fmt.Fprint(conn, "\r\n")
	// Until the client goes.
	_, _ = io.Copy(conn, buffered)
}
