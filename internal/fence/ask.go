package fence

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/identity"
)

// Path is where replicas answer each other, below their URL.
const Path = "/replica"

const (
	// maxPeers bounds one round of questions.
	maxPeers = 64
	// maxAnswer and maxNonce bound what is read from a peer.
	maxAnswer = 1 << 10
	maxNonce  = 64

	nonceHeader = "Fairlead-Nonce"
	proofHeader = "Fairlead-Proof"

	// What a proof is for, so that none can be used for another purpose.
	question = "does this replica have the database?"
	reply    = "what a replica answered"
)

// answer is what a replica says of itself.
type answer struct {
	// DatabaseMillis is for how long it has followed the database without an
	// interruption; 0 if it does not.
	DatabaseMillis int64 `json:"databaseMillis"`
}

// ServeHTTP answers another replica. To everybody else the path does not exist:
// only replicas can prove that they ask, and whom.
func (f *Fence) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	nonce := r.Header.Get(nonceHeader)
	if len(nonce) > maxNonce || !f.config.Key.Signed(r.Header.Get(proofHeader), question, f.config.Self, nonce) {
		http.NotFound(w, r)
		return
	}
	body, err := json.Marshal(answer{DatabaseMillis: f.config.Fresh().For(time.Now()).Milliseconds()})
	if err != nil {
		panic(err) // a number can always be encoded
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(proofHeader, f.config.Key.Sign(reply, f.config.Self, nonce, string(body)))
	_, _ = w.Write(body) // a peer that is gone needs no answer
}

// asker asks other replicas.
type asker struct{ client *http.Client }

func newAsker(limit time.Duration) asker {
	return asker{&http.Client{
		Timeout: limit,
		Transport: &http.Transport{
			DisableKeepAlives: true, // a question must not rest on a connection from before the network broke
			// Replicas are called by addresses that no certificate names. The proof
			// tells who answered, and the question holds no secret.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ask returns for how long a peer has had the database, 0 if it has not.
func (a asker) ask(ctx context.Context, key *identity.ReplicaKey, p Peer) (time.Duration, error) {
	if p.URL == "" {
		return 0, errors.New("it did not say where it can be reached")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(p.URL, "/")+Path, nil)
	if err != nil {
		return 0, err
	}
	nonce := rand.Text()
	r.Header.Set(nonceHeader, nonce)
	r.Header.Set(proofHeader, key.Sign(question, p.ID, nonce))
	res, err := a.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusOK || !key.Signed(res.Header.Get(proofHeader), reply, p.ID, nonce, string(body)) {
		return 0, fmt.Errorf("status %d from something that is not this replica", res.StatusCode)
	}
	var said answer
	if err := json.Unmarshal(body, &said); err != nil {
		return 0, err
	}
	return time.Duration(said.DatabaseMillis) * time.Millisecond, nil
}
