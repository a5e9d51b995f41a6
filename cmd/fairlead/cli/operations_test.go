package cli

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	apispec "github.com/fairlead-mesh/fairlead/api"
)

// commandOf returns a command line for every operation of the API.
func commandOf() map[string]string {
	return map[string]string{
		"listUsers": "users list", "showUser": "users show alice", "createUser": "users create alice", "renameUser": "users rename alice bob", "setUserRole": "users set-role alice operator", "approveUser": "users approve alice", "deleteUser": "users delete alice --force",
		"linkUser": "users link alice https://id.example.com/7", "unlinkUser": "users unlink alice",
		"suspendUser": "users suspend alice", "restoreUser": "users restore alice",
		"listPreAuthKeys": "preauthkeys list", "createPreAuthKey": "preauthkeys create --user alice",
		"expirePreAuthKey": "preauthkeys expire 1", "deletePreAuthKey": "preauthkeys delete 1 --force",
		"listApiKeys": "apikeys list", "createApiKey": "apikeys create", "expireApiKeys": "apikeys expire 1", "deleteApiKey": "apikeys delete 1 --force",
		"listSessions": "sessions list", "listMySessions": "sessions list --mine", "revokeSession": "sessions revoke 1", "revokeMySession": "sessions revoke 1 --mine",
		"listNodes": "nodes list", "showNode": "nodes show 1", "deleteNode": "nodes delete 1 --force", "expireNode": "nodes expire 1 --never",
		"expireNodes": "nodes expire --all --force", "renameNode": "nodes rename 1 web", "resetNodeName": "nodes rename 1 --reset",
		"tagNode": "nodes tag 1 --tags tag:a", "changeNodes": "nodes delete 1 2 --force", "changePreAuthKeys": "preauthkeys expire 1 12", "changeUsers": "users delete alice alice --force", "moveNode": "nodes move 1 --user bob", "setNodeAddresses": "nodes address 1 --ipv4 100.64.0.9",
		"setNodeNote": "nodes note 1 rack", "setNodeApproval": "nodes approve 1",
		"listReservations": "reservations list", "createReservation": "reservations create web --user alice", "deleteReservation": "reservations delete web",
		"inviteUser": "users invite alice", "listPasskeys": "users passkeys list", "deletePasskey": "users passkeys delete 1 --force",
		"approveRoutes": "nodes approve-routes 1 --routes 10.0.0.0/8", "showNodePresence": "nodes presence 1", "listPresence": "nodes presence",
		"enrolMachine": "nodes enrol web --auth-key a --machine-key b --node-key c",
		"listRoutes":   "routes list", "changeRoute": "routes prefer 7 --preference 1", "deleteRoute": "routes delete 7 --force",
		"enableRoute": "routes enable 7", "disableRoute": "routes disable 7", "showRouteHistory": "routes history 7", "showNetworkHistory": "routes history --prefix 10.0.0.0/8",
		"listPendingLogins": "auth list", "approveLogin": "auth approve 7K3M-9QXD --user alice", "rejectLogin": "auth reject 7K3M-9QXD",
		"listPendingSSH": "ssh list", "approveSSH": "ssh approve 7K3M-9QXD", "rejectSSH": "ssh reject 7K3M-9QXD",
		"getDNS": "dns show", "changeDNS": "dns set --magic-dns", "resetDNS": "dns reset --force",
		"getPolicy": "policy get", "setPolicy": "policy set testdata/policy.hujson", "confirmPolicy": "policy confirm", "revertPolicy": "policy revert",
		"rollbackPolicy": "policy rollback 6", "listPolicyVersions": "policy history", "getPolicyVersion": "policy get --version 6",
		"diffPolicies": "policy diff", "previewPolicy": "policy preview testdata/policy.hujson", "whyPolicy": "policy why a b", "askPolicy": "policy why a b --policy testdata/policy.hujson", "mapAccess": "policy access", "testPolicy": "policy test",
		"listAudit": "audit list", "streamEvents": "events",
		"listWebhooks": "webhooks list", "createWebhook": "webhooks create https://receiver.example.com", "getWebhook": "webhooks show 1",
		"changeWebhook": "webhooks update 1 --enable", "deleteWebhook": "webhooks delete 1 --force", "rotateWebhookSecret": "webhooks rotate 1",
		"testWebhook": "webhooks test 1", "listFailedEvents": "webhooks failed 1", "redeliverEvent": "webhooks redeliver 1 7",
		"listRelays": "relays list", "createRelay": "relays create ams-1 --region ams", "getRelay": "relays show ams-1", "drainRelay": "relays drain ams-1", "deleteRelay": "relays delete ams-1 --force",
		"whoami": "whoami", "health": "health", "ready": "health --ready", "showServer": "status", "showCluster": "cluster status", "drainReplica": "drain", "showNoiseKey": "noise-key status", "rotateNoiseKey": "noise-key rotate", "retireNoiseKey": "noise-key retire", "version": "version", "openapiDocument": "openapi", "debugDigest": "debug digest",
		"debugProfile": "debug bundle --file -",
	}
}

// withoutCommand returns the operations that need no command, and why.
func withoutCommand() map[string]string {
	return map[string]string{
		"checkPolicy":       "policy check finds the same without a server",
		"listNodeRoutes":    "routes list --node asks listRoutes, which knows more",
		"backfillNodeIPs":   "does nothing; for tools of Headscale's API",
		"registerNode":      "an older form of approveLogin",
		"registerLogin":     "an older form of approveLogin",
		"databaseHealth":    "a part of health, for tools that read this form",
		"docsPage":          "a page for browsers",
		"createSession":     "fairlead login needs a browser; TestLoginStoresASession",
		"startDeviceSignIn": "login --device needs --server; TestLoginOnAnotherDevice", "pollDeviceSignIn": "login --device needs --server; TestLoginOnAnotherDevice",
		"showSignIn": "fairlead login needs a browser; TestLoginStoresASession",
	}
}

func TestEveryOperationOfTheAPIHasACommand(t *testing.T) {
	var document struct {
		Paths map[string]map[string]yaml.Node
	}
	if err := yaml.Unmarshal(apispec.Document, &document); err != nil {
		t.Fatal(err)
	}
	mux, ids := http.NewServeMux(), map[string]string{}
	for path, members := range document.Paths {
		for method, node := range members {
			var operation struct {
				OperationID string `yaml:"operationId"`
			}
			if node.Kind == yaml.MappingNode && node.Decode(&operation) == nil && operation.OperationID != "" {
				pattern := strings.ToUpper(method) + " " + path
				mux.Handle(pattern, http.NotFoundHandler())
				ids[pattern] = operation.OperationID
			}
		}
	}
	commands, reasons := commandOf(), withoutCommand()
	for _, id := range ids {
		if (commands[id] == "") == (reasons[id] == "") {
			t.Errorf("%s needs either a command or a reason to have none", id)
		}
	}
	socket, log := listen(t, cannedServer())
	for id, line := range commands {
		before := len(log.requests())
		fairlead(t, socket, strings.Fields(line))
		var asked []string
		for _, req := range log.requests()[before:] {
			_, pattern := mux.Handler(httptest.NewRequestWithContext(t.Context(), req.Method, req.Path, http.NoBody))
			asked = append(asked, ids[pattern])
		}
		if !slices.Contains(asked, id) {
			t.Errorf("fairlead %s asked for %v, not for %s", line, asked, id)
		}
	}
}
