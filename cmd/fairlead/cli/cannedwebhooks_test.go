package cli

import (
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

func webhooks() []openapi.Webhook {
	well := openapi.Webhook{
		ID: "1", URL: "https://receiver.example.com/mesh", Description: "chat of the administrators", Events: []string{"node.*", "policyUpdate"}, Enabled: true,
		CreatedAt: at("2026-02-01T09:10:00Z"), UpdatedAt: at("2026-02-02T00:00:00Z"),
		Delivery: openapi.WebhookState{LastSuccess: new(at("2026-03-01T09:29:00Z"))},
	}
	failing := well
	failing.ID, failing.URL, failing.Description, failing.Events = "2", "http://10.0.0.7:8080/", "", []string{}
	failing.Delivery = openapi.WebhookState{Failures: 7, LastFailure: new(at("2026-03-01T09:29:00Z")), LastAnswer: "503 Service Unavailable"}
	unused := well
	unused.ID, unused.Delivery = "3", openapi.WebhookState{}
	return []openapi.Webhook{well, failing, unused}
}

func (canned) ListWebhooks(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.WebhookList{Webhooks: webhooks()})
}

func secretOfWebhook(w http.ResponseWriter) {
	reply(w, openapi.WebhookSecretResult{Webhook: webhooks()[0], Secret: "flw_the-secret"})
}

func (canned) CreateWebhook(w http.ResponseWriter, _ *http.Request) { secretOfWebhook(w) }

func (canned) RotateWebhookSecret(w http.ResponseWriter, _ *http.Request, _ string) {
	secretOfWebhook(w)
}

func oneWebhook(w http.ResponseWriter, id string) {
	if id == "2" {
		reply(w, openapi.WebhookResult{Webhook: webhooks()[1]})
		return
	}
	reply(w, openapi.WebhookResult{Webhook: webhooks()[0]})
}

func (canned) GetWebhook(w http.ResponseWriter, _ *http.Request, id string)    { oneWebhook(w, id) }
func (canned) ChangeWebhook(w http.ResponseWriter, _ *http.Request, id string) { oneWebhook(w, id) }
func (canned) DeleteWebhook(w http.ResponseWriter, _ *http.Request, _ string) {
	reply(w, openapi.Empty{})
}

func delivery(w http.ResponseWriter, id string) {
	if id == "2" {
		reply(w, openapi.WebhookDelivery{Status: 503, Millis: 7, Reply: "down for repairs", Problem: "503 Service Unavailable"})
		return
	}
	reply(w, openapi.WebhookDelivery{Delivered: true, Status: 204, Millis: 42})
}

func (canned) TestWebhook(w http.ResponseWriter, _ *http.Request, id string) { delivery(w, id) }
func (canned) RedeliverEvent(w http.ResponseWriter, _ *http.Request, id, _ string) {
	delivery(w, id)
}

func (canned) ListFailedEvents(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.ListFailedEventsParams) {
	reply(w, openapi.FailedEventList{Events: []openapi.FailedEvent{
		{ID: "8", EventID: "4712-0", Event: "user.created", Attempts: 0, Answer: "503 Service Unavailable", At: at("2026-03-01T09:30:00Z")},
		{ID: "7", EventID: "4711-0", Event: "node.created", Attempts: 1443, Answer: "503 Service Unavailable", At: at("2026-03-01T09:29:59Z")},
	}})
}
