package apiclient

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// ClientWithResponses is a client that also decodes the responses. Operations with a
// response other than JSON, such as the event stream, have a method only in [Client].
type ClientWithResponses struct{ ClientInterface }

// NewClientWithResponses returns a client for the server at this URL.
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

// Response is a decoded response.
type Response[T any] struct {
	HTTPResponse *http.Response
	Body         []byte
	// JSON200 is the body of a response with status 200.
	JSON200 *T
	// Problem is the body of an error response. It is nil after a success, and if the
	// error did not come from Fairlead.
	Problem *Problem
}

// Status returns the status line of the response, such as "200 OK".
func (r *Response[T]) Status() string { return r.HTTPResponse.Status }

// StatusCode returns the status code of the response.
func (r *Response[T]) StatusCode() int { return r.HTTPResponse.StatusCode }

// Parse takes the results of a [Client] method, decodes the response and closes its
// body. It returns err if that is not nil, and an error if the response is truncated or
// is not valid JSON.
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
		return nil, fmt.Errorf("parsing the response body (status %s): %w", resp.Status, err)
	}
	return r, nil
}
