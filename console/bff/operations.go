package bff

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	bodyLimit   = 256 << 10
	policyLimit = 2 << 20 // of the body: a policy of 1 MB and its escapes
	maxName     = 255     // bytes of a name in a path
	maxQuery    = 1 << 10 // bytes of one value of a query
)

var (
	number = regexp.MustCompile(`^[0-9]{1,19}$`)
	// keyPrefix names an API key. A whole key is none: addresses end up in logs.
	keyPrefix = regexp.MustCompile(`^([0-9]{1,19}|[A-Za-z0-9]{12}|flk_[A-Za-z0-9]{12}_\*\*\*)$`)
)

// operation is one call that a page may make of the service.
type operation struct {
	id     string // as in the API's document
	method string
	path   string // below /api/v1/, with the parameters of the document
	query  string // the parameters that pass
	limit  int64  // of the body; 0 for none
}

// repeatable says that an operation changes nothing, so that it is asked once more
// when the service ends the connection that was to carry it.
func (o operation) repeatable() bool {
	switch o.id {
	case "checkPolicy", "previewPolicy", "askPolicy", "mapAccess":
		return true
	}
	return o.method == http.MethodGet
}

// operations is all that pages may ask of the service. Events are not among them:
// they have a handler of their own.
//
// long: it has one row for each operation
func operations() []operation {
	const (
		get, post, put, patch, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete
		paging                     = " limit cursor"
		times                      = " from to"
	)
	return []operation{
		{"listUsers", get, "user", "name email id" + paging, 0},
		{"createUser", post, "user", "", bodyLimit},
		{"showUser", get, "user/{id}", "", 0},
		{"deleteUser", del, "user/{id}", "deleteTagged", 0},
		{"renameUser", post, "user/{id}/rename/{newName}", "", 0},
		{"changeUsers", post, "user/bulk", "", bodyLimit},

		{"listPreAuthKeys", get, "preauthkey", "user valid" + paging, 0},
		{"createPreAuthKey", post, "preauthkey", "", bodyLimit},
		{"deletePreAuthKey", del, "preauthkey", "id", 0},
		{"expirePreAuthKey", post, "preauthkey/expire", "", bodyLimit},
		{"changePreAuthKeys", post, "preauthkey/bulk", "", bodyLimit},

		{"listApiKeys", get, "apikey", "valid" + paging, 0},
		{"createApiKey", post, "apikey", "", bodyLimit},
		{"expireApiKeys", post, "apikey/expire", "", bodyLimit},
		{"deleteApiKey", del, "apikey/{prefix}", "id", 0},
		{"whoami", get, "whoami", "", 0},

		{"listNodes", get, "node", "user tag online route os search preAuthKey host" + paging, 0},
		{"showNode", get, "node/{nodeId}", "", 0},
		{"deleteNode", del, "node/{nodeId}", "", 0},
		{"expireNode", post, "node/{nodeId}/expire", "expiry disableExpiry", bodyLimit},
		{"resetNodeName", post, "node/{nodeId}/rename", "", 0},
		{"renameNode", post, "node/{nodeId}/rename/{newName}", "", 0},
		{"tagNode", post, "node/{nodeId}/tags", "", bodyLimit},
		{"moveNode", post, "node/{nodeId}/user", "user", bodyLimit},
		{"setNodeAddresses", put, "node/{nodeId}/addresses", "", bodyLimit},
		{"listNodeRoutes", get, "node/{nodeId}/routes", "", 0},
		{"approveRoutes", post, "node/{nodeId}/approve_routes", "", bodyLimit},
		{"showNodePresence", get, "node/{nodeId}/presence", times, 0},
		{"expireNodes", post, "node/expire", "", bodyLimit},
		{"changeNodes", post, "node/bulk", "", bodyLimit},

		{"listRoutes", get, "routes", "node prefix enabled advertised primary" + paging, 0},
		{"changeRoute", patch, "routes/{routeId}", "", bodyLimit},
		{"deleteRoute", del, "routes/{routeId}", "", 0},
		{"showNetworkHistory", get, "routes/history", "prefix limit", 0},
		{"showRouteHistory", get, "routes/{routeId}/history", "limit", 0},
		{"enableRoute", post, "routes/{routeId}/enable", "", 0},
		{"disableRoute", post, "routes/{routeId}/disable", "", 0},

		{"listPendingLogins", get, "auth/pending", "", 0},
		{"registerLogin", post, "auth/register", "", bodyLimit},
		{"approveLogin", post, "auth/approve", "", bodyLimit},
		{"rejectLogin", post, "auth/reject", "", bodyLimit},
		{"listPendingSSH", get, "ssh/pending", "", 0},
		{"approveSSH", post, "ssh/approve", "", bodyLimit},
		{"rejectSSH", post, "ssh/reject", "", bodyLimit},

		{"getDNS", get, "dns", "", 0},
		{"changeDNS", patch, "dns", "", bodyLimit},
		{"resetDNS", del, "dns", "", 0},

		{"getPolicy", get, "policy", "", 0},
		{"setPolicy", put, "policy", "", policyLimit},
		{"checkPolicy", post, "policy/check", "", policyLimit},
		{"confirmPolicy", post, "policy/confirm", "", 0},
		{"revertPolicy", post, "policy/revert", "", 0},
		{"rollbackPolicy", post, "policy/rollback", "", bodyLimit},
		{"listPolicyVersions", get, "policy/versions", "before limit", 0},
		{"getPolicyVersion", get, "policy/versions/{version}", "", 0},
		{"diffPolicies", get, "policy/diff", "effect" + times, 0},
		{"previewPolicy", post, "policy/preview", "", policyLimit},
		{"whyPolicy", get, "policy/why", "port proto" + times, 0},
		{"askPolicy", post, "policy/why", "", policyLimit},
		{"mapAccess", post, "policy/access", "", policyLimit},
		{"testPolicy", post, "policy/test", "", policyLimit},

		{"listAudit", get, "audit", "kind object actor verb" + times + paging, 0},
		{"listPresence", get, "presence", "buckets node cursor" + times, 0},
		{"databaseHealth", get, "health", "", 0},
		{"showServer", get, "server", "", 0},
	}
}

// takes reports whether a text is a value of a parameter in a path.
func takes(parameter, text string) bool {
	switch parameter {
	case "newName":
		return isName(text)
	case "prefix":
		return keyPrefix.MatchString(text)
	default: // ids and versions
		return number.MatchString(text)
	}
}

// isName is looser than the rules for names, so that the service can tell what is
// wrong with one, and strict about what would make another path of it.
func isName(text string) bool {
	return text != "" && len(text) <= maxName && utf8.ValidString(text) && strings.Trim(text, ".") != "" &&
		!strings.ContainsFunc(text, func(c rune) bool { return strings.ContainsRune(`/\%?#;`, c) || !unicode.IsPrint(c) })
}

// match finds the operation of a method and an escaped path below /api/v1/, and
// returns the path to send, written anew from its parts. allow names the methods
// that the path has when it has not this one.
func match(all []operation, method, escaped string) (found operation, path string, allow []string) {
	for _, op := range all {
		p, ok := op.fill(escaped)
		switch {
		case !ok:
		case op.method == method:
			return op, p, nil
		default:
			allow = append(allow, op.method)
		}
	}
	return operation{}, "", allow
}

// fill reads the parameters of a path and writes them into the operation's own.
func (op operation) fill(escaped string) (path string, ok bool) {
	template, given := strings.Split(op.path, "/"), strings.Split(escaped, "/")
	if len(template) != len(given) {
		return "", false
	}
	for i, part := range template {
		parameter, isParameter := strings.CutPrefix(part, "{")
		if !isParameter {
			if given[i] != part {
				return "", false
			}
			continue
		}
		text, err := url.PathUnescape(given[i])
		if err != nil || !takes(strings.TrimSuffix(parameter, "}"), text) {
			return "", false
		}
		template[i] = url.PathEscape(text)
	}
	return strings.Join(template, "/"), true
}

// filter reads a query and writes anew what the operation takes. It returns the
// name of a parameter that may not pass.
func (op operation) filter(raw string) (query, refused string) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return "", "(unreadable)"
	}
	allowed := strings.Fields(op.query)
	for _, name := range sortedKeys(values) {
		for _, text := range values[name] {
			if !slices.Contains(allowed, name) || len(text) > maxQuery || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
				return "", name
			}
		}
	}
	return values.Encode(), ""
}
