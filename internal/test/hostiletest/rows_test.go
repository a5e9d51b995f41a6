package hostiletest

// row is one route that strangers can reach, and a request for it. Every attack on routes (slow
// headers, slow bodies, slow readers, oversized bodies, decompression bombs) uses every row.
type row struct {
	pattern string // as the router spells it
	method  string
	path    string // with values for the pattern's wildcards
	header  string // further header lines, each ending with \r\n
	body    string // start of a body that the route accepts; empty if it accepts none
}

// publicRows returns the routes of the public listener.
func publicRows() []row {
	const (
		upgrade   = "Connection: Upgrade\r\nUpgrade: tailscale-control-protocol\r\n"
		websocket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
		derp      = "Connection: Upgrade\r\nUpgrade: DERP\r\n"
		jsonBody  = "Content-Type: application/json\r\n"
		formBody  = "Content-Type: application/x-www-form-urlencoded\r\n"
		signIn    = "Cookie: fairlead_signin_x=x\r\n"
	)
	return []row{
		{pattern: "GET /bootstrap-dns", method: "GET", path: "/bootstrap-dns?q=x"},
		{pattern: "GET /generate_204", method: "GET", path: "/generate_204"},
		{pattern: "GET /key", method: "GET", path: "/key?v=120"},
		{pattern: "GET /replica", method: "GET", path: "/replica", header: "Fairlead-Nonce: x\r\nFairlead-Proof: x\r\n"},
		{pattern: "POST /ts2021", method: "POST", path: "/ts2021", header: upgrade},
		{pattern: "GET /ts2021", method: "GET", path: "/ts2021", header: websocket},
		{pattern: "POST /verify", method: "POST", path: "/verify", header: jsonBody, body: `{"NodePublic":"nodekey:`},
		{pattern: "GET /relay/v1/follow", method: "GET", path: "/relay/v1/follow", header: "Authorization: Bearer flr_x_y\r\n"},
		{pattern: "POST /relay/v1/report", method: "POST", path: "/relay/v1/report", header: jsonBody + "Authorization: Bearer flr_x_y\r\n", body: `{"url":"`},
		{pattern: "GET /auth/{token}", method: "GET", path: "/auth/x"},
		{pattern: "GET /register/{token}", method: "GET", path: "/register/x"},
		{pattern: "GET /oidc/start/{provider}/{token}", method: "GET", path: "/oidc/start/0/x"},
		{pattern: "GET /oidc/session", method: "GET", path: "/oidc/session?return_url=http://127.0.0.1:1/callback&state=x&code_challenge_method=S256&code_challenge=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
		{pattern: "GET /oidc/device/{token}", method: "GET", path: "/oidc/device/x"},
		{pattern: "GET /oidc/ssh/{code}", method: "GET", path: "/oidc/ssh/ABCD-EFGH"},
		{pattern: "GET /oidc/callback", method: "GET", path: "/oidc/callback?state=x&code=x", header: signIn},
		{pattern: "POST /oidc/backchannel-logout", method: "POST", path: "/oidc/backchannel-logout", header: formBody, body: "logout_token=e30.e30.x"},
		{pattern: "GET /oidc/confirm/{id}", method: "GET", path: "/oidc/confirm/x", header: signIn},
		{pattern: "POST /oidc/confirm/{id}", method: "POST", path: "/oidc/confirm/x", header: signIn + formBody, body: "csrf="},
		{pattern: "GET /{$}", method: "GET", path: "/"},
		{pattern: "GET /apple", method: "GET", path: "/apple"},
		{pattern: "GET /windows", method: "GET", path: "/windows"},
		{pattern: "GET /android", method: "GET", path: "/android"},
		{pattern: "GET /derp", method: "GET", path: "/derp", header: derp},
		{pattern: "/derp/probe", method: "GET", path: "/derp/probe"},
		{pattern: "/derp/latency-check", method: "GET", path: "/derp/latency-check"},
		{pattern: "/derp/", method: "GET", path: "/derp/x"}, // a path that the relay does not handle
		{pattern: "/", method: "GET", path: "/x"},           // a path that nothing handles
		{pattern: "GET /health", method: "GET", path: "/health"},
		{pattern: "GET /ready", method: "GET", path: "/ready"},
		{pattern: "GET /version", method: "GET", path: "/version"},
		{pattern: "GET /api/v1/openapi.yaml", method: "GET", path: "/api/v1/openapi.yaml"},
		{pattern: "GET /api/v1/docs", method: "GET", path: "/api/v1/docs"},
		{pattern: "POST /api/v1/machine", method: "POST", path: "/api/v1/machine", header: jsonBody, body: `{"preAuthKey":"`},
		{pattern: "POST /api/v1/session", method: "POST", path: "/api/v1/session", header: jsonBody, body: `{"code":"`},
		{pattern: "POST /api/v1/session/device", method: "POST", path: "/api/v1/session/device", header: jsonBody, body: `{"challenge":"`},
		{pattern: "POST /api/v1/session/device/token", method: "POST", path: "/api/v1/session/device/token", header: jsonBody, body: `{"deviceCode":"`},
		{pattern: "GET /api/v1/signin", method: "GET", path: "/api/v1/signin"},
		{pattern: protected, method: "POST", path: "/api/v1/user", header: jsonBody, body: `{"name":"`},
	}
}

// protected stands for all operations that reject strangers. They reject them before they know
// which operation is requested.
const protected = "operations that need an API key"

// machineRows returns the routes inside Noise. Anyone who completes a handshake reaches them, even
// with an unknown machine key.
func machineRows() []row {
	return []row{
		{pattern: "POST /machine/register", method: "POST", path: "/machine/register", body: `{"Version":120,"NodeKey":"`},
		{pattern: "POST /machine/map", method: "POST", path: "/machine/map", body: `{"Version":120,"NodeKey":"`},
		{pattern: "GET /machine/ssh/action/{src}/to/{dst}", method: "GET", path: "/machine/ssh/action/1/to/2"},
		{pattern: "GET /machine/ping/{token}", method: "GET", path: "/machine/ping/x"},
		{pattern: "POST /machine/set-dns", method: "POST", path: "/machine/set-dns", body: `{"Name":"`},
		{pattern: "POST /machine/update-health", method: "POST", path: "/machine/update-health", body: `{"Subsys":"`},
		{pattern: "POST /machine/audit-log", method: "POST", path: "/machine/audit-log", body: `{"Action":"`},
		{pattern: "POST /machine/feature/query", method: "POST", path: "/machine/feature/query", body: `{"Feature":"`},
	}
}

// consoleRows returns the routes of the console that need no session, and one for each kind of
// request that needs one.
func consoleRows() []row {
	const form = "Content-Type: application/x-www-form-urlencoded\r\n"
	return []row{
		{pattern: "/health", method: "GET", path: "/health"},
		{pattern: "/admin/login", method: "POST", path: "/admin/login", header: form, body: "key="},
		{pattern: "/admin/logout", method: "POST", path: "/admin/logout", header: form, body: "csrf="},
		{pattern: "/admin/signin", method: "GET", path: "/admin/signin?provider=0&token="},
		{pattern: "/admin/signin/callback", method: "GET", path: "/admin/signin/callback?code=x&state=x"},
		{pattern: "/admin/account", method: "GET", path: "/admin/account"},
		{pattern: "/admin/api/session", method: "GET", path: "/admin/api/session"},
		{pattern: "/admin/api/v1/events", method: "GET", path: "/admin/api/v1/events"},
		{pattern: "calls", method: "POST", path: "/admin/api/v1/user", header: "Content-Type: application/json\r\n", body: `{"name":"`},
		{pattern: "pages", method: "GET", path: "/admin/nodes"},
		{pattern: "files", method: "GET", path: "/admin/assets/x.js"},
		{pattern: "unknown paths", method: "GET", path: "/x"},
	}
}
