package fence

import (
	"context"
	"errors"
	"net/http"
)

// Via makes a fence send its requests through a transport of the test.
func (f *Fence) Via(t http.RoundTripper) { f.http.client.Transport = t }

// Asked asks the first peer. It returns nil if the peer counts as having the database,
// and otherwise the reason why not.
func (f *Fence) Asked(ctx context.Context) error {
	peers := f.config.Peers()
	a, err := f.http.ask(ctx, f.config.Key, peers[0])
	if err != nil {
		return err
	}
	answers := make([]*answer, len(peers))
	answers[0] = a
	f.dropMisdirected(peers, answers)
	if answers[0] == nil {
		return errors.New("another replica answered")
	}
	if a.Database < f.times.SteadyFor {
		return errors.New("it has not got the database")
	}
	return nil
}
