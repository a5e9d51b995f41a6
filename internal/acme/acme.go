// Package acme obtains the server's TLS certificate from an ACME certificate authority such as Let's Encrypt.
//
// It uses x/crypto/acme and not its package autocert, because autocert requests certificates during handshakes: anyone
// who connects could use up the few failures per hour that authorities allow, and errors would never reach the log.
package acme

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
)

const (
	// ALPN is the protocol that an authority negotiates to check that this server has the name.
	ALPN = acme.ALPNProto

	challengePath = "/.well-known/acme-challenge/"
	tlsALPN       = "tls-alpn-01"
	http01        = "http-01"

	requestTimeout = 30 * time.Second
)

// Config says who issues the certificate, for which name, and where it is stored.
type Config struct {
	Directory string // URL of the authority's directory
	Email     string // contact address for the authority; may be empty
	Host      string
	Dir       string // holds the account key and the certificate; autocert uses the same files
	HTTP      bool   // whether Issuer serves port 80, so that the authority can check the name there
	UserAgent string
}

// Issuer obtains certificates for one name. It is safe for concurrent use.
type Issuer struct {
	Config

	mu     sync.Mutex
	proof  *tls.Certificate  // served to the authority while it checks the name; guarded by mu
	tokens map[string]string // responses by path, for checks over HTTP; guarded by mu
}

// New returns an Issuer. It does not contact the authority.
func New(c Config) *Issuer {
	return &Issuer{Config: c, tokens: map[string]string{}}
}

// ErrNotStored means that a certificate was issued, but could not be written to the disk.
var ErrNotStored = errors.New("cannot store the certificate")

// Load returns the stored certificate, even an expired one. The error is fs.ErrNotExist if there is none.
func (i *Issuer) Load() (*tls.Certificate, error) {
	text, err := os.ReadFile(i.certificateFile())
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(text, text)
	if err == nil {
		err = pair.Leaf.VerifyHostname(i.Host)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", i.certificateFile(), err)
	}
	return &pair, nil
}

// Obtain requests a certificate and stores it. With ErrNotStored, it also returns the certificate: authorities issue only
// a few for one name, so it must not be wasted.
func (i *Issuer) Obtain(ctx context.Context) (*tls.Certificate, error) {
	if err := os.MkdirAll(i.Dir, 0o700); err != nil {
		return nil, err
	}
	account, err := i.accountKey()
	if err != nil {
		return nil, err
	}
	client := &acme.Client{
		Key: account, DirectoryURL: i.Directory, UserAgent: i.UserAgent,
		HTTPClient: &http.Client{Timeout: requestTimeout, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}},
	}
	defer client.HTTPClient.CloseIdleConnections()
	if err := i.register(ctx, client); err != nil {
		return nil, fmt.Errorf("cannot register with the certificate authority: %w", err)
	}
	order, err := client.AuthorizeOrder(ctx, acme.DomainIDs(i.Host))
	if err != nil {
		return nil, fmt.Errorf("cannot order a certificate: %w", err)
	}
	for _, authorization := range order.AuthzURLs {
		if err := i.prove(ctx, client, authorization); err != nil {
			return nil, err
		}
	}
	if _, err = client.WaitOrder(ctx, order.URI); err != nil {
		return nil, fmt.Errorf("the certificate authority did not accept the order: %w", err)
	}
	return i.finish(ctx, client, order)
}

func (i *Issuer) register(ctx context.Context, client *acme.Client) error {
	account := &acme.Account{}
	if i.Email != "" {
		account.Contact = []string{"mailto:" + i.Email}
	}
	_, err := client.Register(ctx, account, acme.AcceptTOS)
	if errors.Is(err, acme.ErrAccountAlreadyExists) {
		return nil
	}
	return err
}

// prove lets the authority check that this server has the name.
func (i *Issuer) prove(ctx context.Context, client *acme.Client, authorization string) error {
	auth, err := client.GetAuthorization(ctx, authorization)
	if err != nil {
		return fmt.Errorf("cannot read the authority's challenges: %w", err)
	}
	if auth.Status == acme.StatusValid {
		return nil
	}
	challenge := i.choose(auth.Challenges)
	if challenge == nil {
		return errors.New("the certificate authority offers neither tls-alpn-01 nor http-01 challenges, and no others are supported")
	}
	defer i.forget()
	if err := i.respond(client, challenge); err != nil {
		return err
	}
	if _, err := client.Accept(ctx, challenge); err != nil {
		return fmt.Errorf("cannot accept the challenge: %w", err)
	}
	_, err = client.WaitAuthorization(ctx, auth.URI)
	return i.explain(err, challenge)
}

// explain says what to do about a failed check, together with the authority's own reason.
func (i *Issuer) explain(err error, challenge *acme.Challenge) error {
	var failed *acme.AuthorizationError
	if !errors.As(err, &failed) {
		return err
	}
	port := 443
	if challenge.Type == http01 {
		port = 80
	}
	return fmt.Errorf("the certificate authority could not connect to port %d of %s; check its DNS record and your firewall: %w", port, i.Host, errors.Join(failed.Errors...))
}

// choose prefers port 80 if it is served: a proxy or load balancer in front may terminate TLS on port 443.
func (i *Issuer) choose(offered []*acme.Challenge) *acme.Challenge {
	kinds := []string{tlsALPN}
	if i.HTTP {
		kinds = []string{http01, tlsALPN}
	}
	for _, kind := range kinds {
		if at := slices.IndexFunc(offered, func(c *acme.Challenge) bool { return c.Type == kind }); at >= 0 {
			return offered[at]
		}
	}
	return nil
}

func (i *Issuer) respond(client *acme.Client, c *acme.Challenge) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if c.Type == http01 {
		response, err := client.HTTP01ChallengeResponse(c.Token)
		i.tokens[client.HTTP01ChallengePath(c.Token)] = response
		return err
	}
	proof, err := client.TLSALPN01ChallengeCert(c.Token, i.Host)
	i.proof = &proof
	return err
}

func (i *Issuer) forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.proof = nil
	clear(i.tokens)
}

// finish sends the request for the certificate, and stores what the authority issues.
func (i *Issuer) finish(ctx context.Context, client *acme.Client, order *acme.Order) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{i.Host}}, key)
	if err != nil {
		return nil, err
	}
	chain, err := fetch(ctx, client, order, request)
	if err != nil {
		return nil, fmt.Errorf("the certificate authority did not issue the certificate: %w", err)
	}
	text, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	for _, der := range chain {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, err
	}
	if err := pair.Leaf.VerifyHostname(i.Host); err != nil {
		return nil, err
	}
	if err := write(i.certificateFile(), text); err != nil {
		return &pair, fmt.Errorf("%w: %w", ErrNotStored, err)
	}
	return &pair, nil
}

// fetch sends the request and waits for the certificate. CreateOrderCert cannot wait by itself if the response does not
// repeat the location of the order, which is optional.
func fetch(ctx context.Context, client *acme.Client, order *acme.Order, request []byte) ([][]byte, error) {
	chain, _, err := client.CreateOrderCert(ctx, order.FinalizeURL, request, true)
	if err == nil {
		return chain, nil
	}
	issued, failed := client.WaitOrder(ctx, order.URI)
	if failed != nil || issued.Status != acme.StatusValid {
		return nil, cmp.Or(failed, err)
	}
	return client.FetchCert(ctx, issued.CertURL, true)
}

// Proof returns the certificate for a connection of an authority that checks the name. Other connections get nil.
func (i *Issuer) Proof(hello *tls.ClientHelloInfo) *tls.Certificate {
	if !slices.Equal(hello.SupportedProtos, []string{ALPN}) {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.proof
}

// ServeHTTP handles port 80: it answers authorities and redirects everyone else to HTTPS.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	if strings.HasPrefix(r.URL.Path, challengePath) {
		i.mu.Lock()
		response, ok := i.tokens[r.URL.Path]
		i.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte(response)) // the authority retries
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "use HTTPS", http.StatusBadRequest)
		return
	}
	// Not the Host header, which a stranger chooses. Not the URL as a whole: after "GET http:@other", it would change the host.
	to := url.URL{Scheme: "https", Host: i.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	http.Redirect(w, r, to.String(), http.StatusFound)
}

func (i *Issuer) certificateFile() string { return filepath.Join(i.Dir, i.Host) }

// accountKey returns the key that identifies this server to the authority, created on first use.
func (i *Issuer) accountKey() (crypto.Signer, error) {
	file := filepath.Join(i.Dir, "acme_account+key")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		if text, err = encodeKey(key); err != nil {
			return nil, err
		}
		return key, write(file, text)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is not in PEM format: remove it to register again", file)
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove it to register again", file, err)
	}
	return key, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// write replaces a file as a whole, so that a crash leaves the old content or the new.
func write(file string, text []byte) error {
	temporary := file + ".new"
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, file); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
