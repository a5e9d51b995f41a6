package apiclient

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// ClientWithResponses is a client that reads the answers, too. An operation that answers
// with something else than JSON, such as the stream of events, has no method here but
// that of [Client].
type ClientWithResponses struct{ ClientInterface }

// NewClientWithResponses returns a client of the server with this URL.
func NewClientWithResponses(server string, opts ...ClientOption) (*ClientWithResponses, error) {
	client, err := NewClient(server, opts...)
	if err != nil {
		return nil, err
	}
	return &ClientWithResponses{client}, nil
}

// WithBaseURL overrides the URL of the server.
func WithBaseURL(baseURL string) ClientOption {
	return func(c *Client) error {
		base, err := url.Parse(baseURL)
		if err != nil {
			return err
		}
		c.Server = base.String()
		return nil
	}
}

// Response is an answer.
type Response[T any] struct {
	HTTPResponse *http.Response
	Body         []byte
	// JSON200 is the body of an answer with status 200.
	JSON200 *T
	// Problem is the body of an error; nil if something other than Fairlead answered.
	Problem *Problem
}

// Status returns the status of the answer as text.
func (r *Response[T]) Status() string { return r.HTTPResponse.Status }

// StatusCode returns the status of the answer.
func (r *Response[T]) StatusCode() int { return r.HTTPResponse.StatusCode }

// Parse reads the answer to a call of [Client] and closes it. It returns the error of the
// call, or one of its own if the answer broke off or is not the JSON that it claims to be.
func Parse[T any](resp *http.Response, err error) (*Response[T], error) {
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	r := &Response[T]{HTTPResponse: resp, Body: body}
	mediaType, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	var dest any
	switch {
	case resp.StatusCode == http.StatusOK && strings.HasSuffix(mediaType, "json"):
		r.JSON200 = new(T)
		dest = r.JSON200
	case mediaType == "application/problem+json", mediaType == "application/json":
		r.Problem = new(Problem)
		dest = r.Problem
	default:
		return r, nil
	}
	if err := json.Unmarshal(body, dest); err != nil {
		return nil, fmt.Errorf("the body of the answer, status %s: %w", resp.Status, err)
	}
	return r, nil
}
