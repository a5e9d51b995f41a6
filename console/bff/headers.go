package bff

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

const (
	// bareCSP is for responses that no browser should render as a page.
	bareCSP = "default-src 'none'; frame-ancestors 'none'"

	shellCSP = "default-src 'none'; script-src 'self' 'nonce-NONCE'; style-src 'self' 'nonce-NONCE'; img-src 'self' data:; font-src 'self'; " +
		"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types fairlead"

	// plainCSP is for pages that the console renders itself, without scripts.
	plainCSP = "default-src 'none'; style-src 'nonce-NONCE'; img-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; " +
		"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

	permissions = "accelerometer=(), autoplay=(), camera=(), clipboard-read=(), clipboard-write=(self), display-capture=(), " +
		"encrypted-media=(), fullscreen=(), geolocation=(), gyroscope=(), hid=(), idle-detection=(), local-fonts=(), magnetometer=(), " +
		"microphone=(), midi=(), payment=(), picture-in-picture=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), usb=(), " +
		"xr-spatial-tracking=()"

	hsts = "max-age=63072000"

	nonceBytes = 16
)

// guard sets the common headers and the request id of every response, and logs the request.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, h := time.Now(), w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", bareCSP)
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", permissions)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("X-Request-Id", rand.Text())
		v := s.visitor(r)
		if v.trusted() {
			h.Set("Cross-Origin-Opener-Policy", "same-origin")
		}
		if v.secure {
			h.Set("Strict-Transport-Security", hsts)
		}
		seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(seen, r)
		s.log.Debug("request handled", "method", r.Method, "path", clip(r.URL.Path), "status", seen.status, "addr", v.addr.String(),
			"req", h.Get("X-Request-Id"), "took", time.Since(began))
	})
}

// requestID returns the request id that guard set.
func requestID(w http.ResponseWriter) string { return w.Header().Get("X-Request-Id") }

// statusWriter records the status for the log.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap implements the interface that http.ResponseController uses to find optional methods.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// setCSP sets a Content-Security-Policy with a new nonce, and returns the nonce.
func setCSP(w http.ResponseWriter, policy string) (nonce string) {
	random := make([]byte, nonceBytes)
	rand.Read(random) // never fails
	nonce = base64.RawURLEncoding.EncodeToString(random)
	w.Header().Set("Content-Security-Policy", strings.ReplaceAll(policy, "NONCE", nonce))
	return nonce
}

// clip shortens untrusted text for the log.
func clip(text string) string {
	const most = 256
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
