// Command webhook-receiver receives the events of a webhook, checks their signatures and
// prints them, one per line. It is an example to start from and uses only the standard
// library.
//
//	WEBHOOK_SECRET_FILE=secret go run ./docs/examples/webhook-receiver 127.0.0.1:9000
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	maxBody = 1 << 20
	// maxAge is how old a request may be, so that an intercepted one cannot be replayed
	// later.
	maxAge = 5 * time.Minute
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "give the address to listen on, such as 127.0.0.1:9000")
		os.Exit(2)
	}
	server := &http.Server{Addr: os.Args[1], Handler: http.HandlerFunc(receive), ReadHeaderTimeout: time.Minute}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	os.Exit(1)
}

func receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	secret, err := os.ReadFile(os.Getenv("WEBHOOK_SECRET_FILE")) // read each time, so that a new secret takes effect immediately
	if err != nil || !genuine(strings.TrimSpace(string(secret)), r.Header, body) {
		http.Error(w, "the signature is wrong", http.StatusUnauthorized)
		return
	}
	// An event may be delivered twice: a receiver that acts on it should remember this
	// id.
	var event struct{ ID, Event, Type, Kind, Object string }
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "the body is not JSON", http.StatusBadRequest)
		return
	}
	fmt.Println(event.ID, event.Event, event.Type, event.Kind, event.Object)
	w.WriteHeader(http.StatusNoContent)
}

// genuine reports whether a request was recently signed with the secret.
func genuine(secret string, h http.Header, body []byte) bool {
	timestamp := h.Get("Mesh-Timestamp")
	sent, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(sent, 0)).Abs() > maxAge {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	want := "v1=" + hex.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(h.Get("Mesh-Signature")), []byte(want)) // takes constant time
}
