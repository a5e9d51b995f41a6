package bff

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

//go:embed pages/*.html
var pages embed.FS

// knownPage matches the paths of pages below /admin/. The web bundle has the same list; this one is used to
// respond to unknown paths with the right status.
var knownPage = regexp.MustCompile(`^(|my|nodes|nodes/new|nodes/\d{1,19}|users|users/\d{1,19}|routes|keys|requests|` +
	`policy|policy/versions|policy/versions/\d{1,19}|access|timeline|cluster|settings|settings/(api-keys|appearance|cluster|dns|server|sessions|webhooks))$`)

const (
	bundleIndex = "index.html"
	// memberPage is the page with the person's own devices.
	memberPage = "my"
	// Placeholders in the bundle's index.html, replaced in each response.
	nonceWord = "__CSP_NONCE__"
	csrfWord  = "__CSRF__"
	interFont = "inter-latin-wght-normal"
)

// bundle is the web application that the browser loads.
type bundle struct {
	index  string // empty if the bundle was not built
	assets map[string]asset
	icon   string // path of the favicon
	font   string // path of the text font
}

// asset is one file, uncompressed and compressed.
type asset struct {
	contentType     string
	plain, gzip, br []byte
}

// readBundle reads all files of the bundle into memory.
func readBundle(files fs.FS) (*bundle, error) {
	b := &bundle{assets: map[string]asset{}}
	if index, err := fs.ReadFile(files, bundleIndex); err == nil {
		b.index = string(index)
	}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || slices.Contains([]string{"", ".br", ".gz", ".map", ".html"}, path.Ext(name)) || path.Base(name)[0] == '.' {
			return err
		}
		a := asset{contentType: contentType(name)}
		if a.plain, err = fs.ReadFile(files, name); err != nil {
			return err
		}
		// A compressed copy may be missing; it is then not used.
		a.gzip, _ = fs.ReadFile(files, name+".gz")
		a.br, _ = fs.ReadFile(files, name+".br")
		b.assets[name] = a
		switch base := path.Base(name); {
		case strings.HasPrefix(base, interFont) && strings.HasSuffix(base, ".woff2"):
			b.font = adminPath + name
		case strings.HasPrefix(base, "mark") && strings.HasSuffix(base, ".svg"):
			b.icon = adminPath + name
		}
		return nil
	})
	return b, err
}

// contentType returns the content type for a file name. Unlike mime.TypeByExtension, it does not depend on
// the MIME types installed on the machine.
func contentType(name string) string {
	known := map[string]string{
		".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".woff2": "font/woff2",
		".json": "application/json", ".webmanifest": "application/manifest+json", ".png": "image/png", ".ico": "image/x-icon", ".txt": "text/plain; charset=utf-8",
	}
	if t, ok := known[path.Ext(name)]; ok {
		return t
	}
	return "application/octet-stream"
}

// serve sends the smallest copy that the browser accepts. Names below assets/ contain a hash of the content,
// so browsers may cache them forever.
func (a asset) serve(w http.ResponseWriter, r *http.Request, name string) {
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "public, max-age=3600")
	if strings.HasPrefix(name, "assets/") {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	content := a.plain
	switch accepted := r.Header.Get("Accept-Encoding"); {
	case a.br != nil && accepts(accepted, "br"):
		content = a.br
		h.Set("Content-Encoding", "br")
	case a.gzip != nil && accepts(accepted, "gzip"):
		content = a.gzip
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", fmt.Sprint(len(content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // fails only if the browser has disconnected
	}
}

func accepts(header, coding string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, parameters, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err == nil && name == coding && !slices.Contains([]string{"0", "0.0", "0.00", "0.000"}, parameters["q"]) {
			return true
		}
	}
	return false
}

// page handles a path below /admin/ that is neither an API call nor a file.
func (s *Server) page(w http.ResponseWriter, r *http.Request, name string) {
	known := knownPage.MatchString(name)
	if !known {
		s.logNoRoute(r)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if known {
			notAllowed(w, "GET, HEAD")
			return
		}
		http.NotFound(w, r)
		return
	}
	v, now := s.visitor(r), s.now()
	held, ok, why := s.heldSession(r, v, now)
	var found keyCheck
	if ok {
		found = s.checkKey(r.Context(), held, v, requestID(w))
	}
	if errors.Is(found.err, errEnded) {
		ok, why = false, held.revokedBy()
	}
	switch {
	case !ok && !known:
		s.plainPage(w, r, http.StatusNotFound, "notfound", plainPage{})
	case !ok:
		if why != "" {
			s.setCookie(w, v, cookieName, string(why), toldMarkTime)
		}
		s.loginPage(w, r, v, http.StatusOK, r.URL.RequestURI(), why.text())
	case found.caller != nil && !mayUse(found.caller):
		s.accountPage(w, r, v, held, http.StatusForbidden, "")
	case found.caller != nil && found.caller.Role == roleMember && !known:
		s.plainPage(w, r, http.StatusNotFound, "notfound", plainPage{})
	case found.caller != nil && found.caller.Role == roleMember && name != memberPage:
		http.Redirect(w, r, adminPath+memberPage, http.StatusSeeOther)
	default:
		s.renew(w, v, held, now) // loading a page is activity of a person
		s.shell(w, r, held, known)
	}
}

// mayUse reports whether the pages can show anything to a caller. Everything they show needs one of these roles. Members
// may use only memberPage.
func mayUse(caller *apiclient.Caller) bool {
	return caller.Role == roleMember || slices.Contains([]apiclient.Role{apiclient.RoleRead, apiclient.RoleOperator, apiclient.RoleAdmin}, apiclient.Role(caller.Role))
}

// shell sends the page that loads the bundle.
func (s *Server) shell(w http.ResponseWriter, r *http.Request, held session, known bool) {
	status := http.StatusOK
	if !known {
		status = http.StatusNotFound
	}
	token := s.seals.csrfToken(held.ID)
	if s.bundle.index == "" {
		w.Header().Set("Referrer-Policy", "same-origin") // needed because the page has a form
		s.plainPage(w, r, status, "missing", plainPage{Token: token})
		return
	}
	nonce := setCSP(w, shellCSP)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = strings.NewReplacer(nonceWord, nonce, csrfWord, token).WriteString(w, s.bundle.index) // as above
	}
}

// plainPage is the data of the pages without scripts.
type plainPage struct {
	Nonce, Font, Icon            string
	Host, Version, ServerVersion string
	Token, Message, OwnKey       string
	Unencrypted, Unreachable     bool
	Person                       string
	Restricted                   bool // the role of the person gives no access to the other pages
	Sessions                     []accountSession
	Providers                    []signInLink
}

// signInLink is a link on the login page.
type signInLink struct{ Name, URL string }

// signInLinks returns the ways to sign in with an identity provider.
func (s *Server) signInLinks(known facts, token string) (links []signInLink) {
	for _, p := range known.signIn.Providers {
		links = append(links, signInLink{p.Name, signInPath + "?" + url.Values{"provider": {p.ID}, "token": {token}}.Encode()})
	}
	return links
}

func (s *Server) plainPage(w http.ResponseWriter, r *http.Request, status int, name string, p plainPage) {
	p.Nonce = setCSP(w, plainCSP)
	p.Font, p.Icon, p.Version = s.bundle.font, s.bundle.icon, s.version
	if p.Host == "" {
		p.Host = s.host()
	}
	var page bytes.Buffer
	if err := s.templates.ExecuteTemplate(&page, name, p); err != nil {
		s.log.Error("cannot render page", "page", name, "err", err)
		http.Error(w, "internal error in the console", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(page.Bytes()) // as above
	}
}

func parseTemplates() (*template.Template, error) { return template.ParseFS(pages, "pages/*.html") }
