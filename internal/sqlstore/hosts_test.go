package sqlstore_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// silent listens on a loopback address, accepts connections and never responds. It returns
// the address with its port.
func silent(t *testing.T, host string) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// Unresponsive hosts listed before the primary cost a short delay, not the full
// timeout of each.
func TestSilentHostsDoNotKeepFromThePrimary(t *testing.T) {
	hosts := []string{silent(t, "127.0.0.11"), silent(t, "127.0.0.12"), silent(t, "127.0.0.13"), fmt.Sprintf("%s:%d", pg.Host, pg.Port)}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	config := sqlstore.PostgresConfig{
		Host: strings.Join(hosts, ","), Port: 1, Name: pg.Database(t), User: pg.User, SSLMode: "disable", MaxOpenConns: 4,
	}
	s, err := sqlstore.OpenPostgres(ctx, config, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Load(ctx); err != nil {
		t.Fatal(err)
	}
	// The primary is known now, so connecting does not wait for the other hosts.
	began := time.Now()
	if _, err := s.Beat(ctx, store.Report{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 4*time.Second { // the timeout of one host
		t.Errorf("a connection took %v", took)
	}
	raw, err := sqlstore.OpenRaw(ctx, sqlstore.Location{Postgres: config}, sqlstore.Look)
	if err != nil {
		t.Fatal(err)
	}
	raw.Close()
}
