package fence

import (
	"context"
	"errors"
	"net/http"
)

// Via makes a fence ask through a transport of the test.
func (f *Fence) Via(t http.RoundTripper) { f.http.client.Transport = t }

// Asked asks the first peer and returns why it is not believed to have the
// database.
func (f *Fence) Asked(ctx context.Context) error {
	since, err := f.http.ask(ctx, f.config.Key, f.config.Peers()[0])
	if err == nil && since < f.times.SteadyFor {
		err = errors.New("it has not got the database")
	}
	return err
}
