package api

import "net/http"

// documents handles the operations that describe the API.
type documents struct {
	*core
	document []byte                 // openapi.yaml
	page     func() ([]byte, error) // generated from document
}

// OpenapiDocument implements GET /api/v1/openapi.yaml.
func (s *documents) OpenapiDocument(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, "application/yaml", s.document)
}

// DocsPage implements GET /api/v1/docs.
func (s *documents) DocsPage(w http.ResponseWriter, r *http.Request) {
	page, err := s.page()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	write(w, http.StatusOK, "text/html; charset=utf-8", page)
}
