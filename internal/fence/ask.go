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

// Path is the path, below a replica's URL, at which it responds to other replicas.
const Path = "/replica"

const (
	// maxPeers limits how many peers are asked in one round.
	maxPeers = 64
	// maxAnswer and maxNonce limit what is read from a peer.
	maxAnswer = 1 << 10
	maxNonce  = 64

	nonceHeader = "Fairlead-Nonce"
	proofHeader = "Fairlead-Proof"

	// The purposes of proofs, so that a proof for one cannot be used for another.
	question = "does this replica have the database?"
	reply    = "what a replica answered"
)

// answer is what a replica reports about itself.
type answer struct {
	// Replica is its ID, which changes when it restarts.
	Replica string `json:"replica"`
	// Database is how long it has followed the database without interruption; 0 if it
	// does not follow it.
	Database time.Duration `json:"databaseNanos"`
	// State identifies its state, which it read from the database Age ago.
	State string        `json:"state"`
	Age   time.Duration `json:"ageNanos"`
}

// ServeHTTP responds to another replica. For everybody else the path does not exist: only
// replicas can authenticate the question.
func (f *Fence) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	nonce := r.Header.Get(nonceHeader)
	if len(nonce) > maxNonce || !f.config.Key.Signed(r.Header.Get(proofHeader), question, nonce) {
		http.NotFound(w, r)
		return
	}
	now, fresh := time.Now(), f.config.Fresh()
	body, err := json.Marshal(answer{Replica: f.config.Self, Database: fresh.For(now), State: f.config.State(), Age: fresh.Age(now)})
	if err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(proofHeader, f.config.Key.Sign(reply, nonce, string(body)))
	_, _ = w.Write(body) // fails only if the peer has disconnected
}

// asker asks other replicas.
type asker struct{ client *http.Client }

func newAsker(limit time.Duration) asker {
	return asker{&http.Client{
		Timeout: limit,
		Transport: &http.Transport{
			DisableKeepAlives: true, // a question must not use a connection from before the network failed
			// Replicas are called by addresses that no certificate contains. The proof
			// authenticates the response, and the question contains no secret.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ask returns the answer of the replica at the URL of a peer. It identifies the peer by its
// URL, not by its ID: a peer that has restarted has a new ID, which a replica without the
// database cannot learn. The nonce prevents the replay of old answers. The caller must
// check whose answer it is, because somebody between the replicas could forward the
// question to another replica, or back.
func (a asker) ask(ctx context.Context, key *identity.ReplicaKey, p Peer) (*answer, error) {
	if p.URL == "" {
		return nil, errors.New("it does not publish a URL")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(p.URL, "/")+Path, nil)
	if err != nil {
		return nil, err
	}
	nonce := rand.Text()
	r.Header.Set(nonceHeader, nonce)
	r.Header.Set(proofHeader, key.Sign(question, nonce))
	res, err := a.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK || !key.Signed(res.Header.Get(proofHeader), reply, nonce, string(body)) {
		return nil, fmt.Errorf("status %d from a server that is not a replica of this mesh", res.StatusCode)
	}
	var said answer
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, err
	}
	return &said, nil
}
