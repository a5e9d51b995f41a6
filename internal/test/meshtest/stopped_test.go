//go:build !race

package meshtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tailscale.com/tailcfg"

	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

// failover is a mesh whose database fails over while one replica is stopped.
type failover struct {
	primary, standby *pgtest.Server
	way              *Balancer // connects the stopped replica to the database
	running, stopped *Server
	apiKey           string
	late             *Node  // registered in the old history only
	link             string // path of its login page
}

func startFailover(t *testing.T) *failover {
	t.Helper()
	f := &failover{primary: startPostgres(t, pgtest.Options{})}
	f.standby = startStandby(t, f.primary)
	f.way = NewBalancer(t, net.JoinHostPort(f.primary.Host, strconv.Itoa(f.primary.Port)))
	_, port, err := net.SplitHostPort(f.way.Addr)
	must(t, err)
	config := Config{Binary: fairlead, Postgres: f.primary, Database: f.primary.Database(t), NoiseKey: filepath.Join(t.TempDir(), "noise.key")}
	config.Set = map[string]string{"database.postgres.host": f.primary.Host + "," + f.standby.Host}
	f.running = Start(t, config)
	config.Set = map[string]string{"database.postgres.port": port}
	f.stopped = Start(t, config)
	f.running.CLI("users", "create", "alice")
	authKey := f.running.PreAuthKey("alice", "--reusable")
	f.apiKey = f.running.APIKey()
	must(t, f.standby.Detach())

	f.running.CLI("users", "create", "lost")
	f.late = NewCrowd(t, f.stopped.URL).Node("late")
	answer, err := f.late.register(t.Context(), tailcfg.RegisterRequest{})
	must(t, err)
	link, err := url.Parse(answer.AuthURL)
	must(t, err)
	f.link = link.Path
	must(t, f.late.Register(t.Context(), authKey))
	f.late.Disconnect()
	for name, probe := range f.probes() {
		eventually(t, patience, func() error {
			if old, err := probe(t.Context()); err != nil || !old {
				return fmt.Errorf("%s does not show the old history: %v, %w", name, old, err)
			}
			return nil
		})
	}
	return f
}

var errRefused = errors.New("refused")

// probes holds functions that report whether the stopped replica responds from the old
// history, or why it does not respond.
func (f *failover) probes() map[string]func(context.Context) (old bool, err error) {
	shows := func(ctx context.Context, method, path, body string, want int, what string) (bool, error) {
		status, text, err := ask(ctx, f.stopped, method, path, f.apiKey, body)
		if err == nil && status != want {
			err = fmt.Errorf("%w: %d %s", errRefused, status, text)
		}
		return strings.Contains(text, what), err
	}
	relay, _ := json.Marshal(tailcfg.DERPAdmitClientRequest{NodePublic: f.late.key.Public()}) // cannot fail
	return map[string]func(context.Context) (bool, error){
		"API": func(ctx context.Context) (bool, error) {
			return shows(ctx, http.MethodGet, usersPath, "", http.StatusOK, `"lost"`)
		},
		"login page": func(ctx context.Context) (bool, error) {
			return shows(ctx, http.MethodGet, f.link, "", http.StatusOK, "This device has joined")
		},
		"relay verification": func(ctx context.Context) (bool, error) {
			return shows(ctx, http.MethodPost, "/verify", string(relay), http.StatusOK, `"Allow":true`)
		},
		"map": func(ctx context.Context) (bool, error) {
			defer f.late.drop()
			req := f.late.mapRequest()
			req.Stream = true
			res, err := f.late.post(ctx, "/machine/map", req)
			switch {
			case err != nil && strings.Contains(err.Error(), " 404 "):
				return false, nil // unknown node
			case err != nil:
				return false, err
			}
			res.Body.Close()
			return true, nil
		},
	}
}

// The pause is shorter than the 10 seconds after which a replica without the
// database is fenced. The old primary falls silent, so that no connection breaks.
func TestReplicaStoppedDuringAFailoverServesNothingOfTheOldHistory(t *testing.T) {
	t.Parallel()
	const paused, watched = 3 * time.Second, 4 * time.Second
	f := startFailover(t)
	f.stopped.Signal(syscall.SIGSTOP)
	began := time.Now()
	f.way.Freeze()
	failOver(t, f.primary, f.standby)
	eventually(t, patience, func() error { return lossReported(t.Context(), f.running) })
	<-time.After(paused - time.Since(began))
	f.stopped.Signal(syscall.SIGCONT)
	resumed := time.Now()
	t.Logf("resumed after %v", resumed.Sub(began).Round(time.Millisecond))

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wait sync.WaitGroup
	for name, probe := range f.probes() {
		wait.Go(func() {
			refused := 0
			for ctx.Err() == nil {
				old, err := probe(t.Context())
				switch {
				case old:
					t.Errorf("%s: the old history was served %v after the replica had resumed", name, time.Since(resumed).Round(time.Millisecond))
					return
				case err == nil:
					t.Logf("%s: the new history was served %v after the replica had resumed, after %d refusals", name, time.Since(resumed).Round(time.Millisecond), refused)
					return
				}
				refused++
				<-time.After(pollEvery)
			}
			t.Errorf("%s was not served again", name)
		})
	}
	<-time.After(watched)
	// The address of the database moves to the new primary.
	f.way.Remove(net.JoinHostPort(f.primary.Host, strconv.Itoa(f.primary.Port)))
	f.way.Add(net.JoinHostPort(f.standby.Host, strconv.Itoa(f.standby.Port)))
	f.way.Thaw()
	eventually(t, patience, func() error { return lossReported(t.Context(), f.stopped) })
	give := time.AfterFunc(patience, stop)
	defer give.Stop()
	wait.Wait()
	mustAgree(t, f.running, f.stopped)
}
