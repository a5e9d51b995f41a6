package bff

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"
)

const probeTimeout = 5 * time.Second

// Probe checks the health of a console on this machine, which listens on listenAddr.
func Probe(ctx context.Context, listenAddr string) error {
	host, port, err := net.SplitHostPort(listenAddr)
	if err != nil {
		return fmt.Errorf("listen_addr: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/health", nil)
	if err != nil {
		return err
	}
	answer, err := new(http.Client).Do(r)
	if err != nil {
		return fmt.Errorf("the console is not responding: %w", err)
	}
	defer answer.Body.Close()
	var health Health
	if err := json.NewDecoder(answer.Body).Decode(&health); err != nil || health.Status != "pass" {
		return fmt.Errorf("the console is unhealthy: %s", answer.Status)
	}
	return nil
}
