-- +goose Up

-- Receivers of events. The secret of each is derived from its salt and the key by
-- which clients recognise the server.
CREATE TABLE webhooks (
    id          BIGINT PRIMARY KEY,
    url         TEXT NOT NULL,
    description TEXT NOT NULL,
    events      TEXT NOT NULL,
    disabled    BIGINT NOT NULL,
    salt        TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);

-- How far events were delivered to each webhook, and by which replica.
CREATE TABLE webhook_progress (
    id           BIGINT PRIMARY KEY,
    rev          BIGINT NOT NULL,
    idx          BIGINT NOT NULL,
    replica      TEXT NOT NULL,
    until        BIGINT NOT NULL,
    failures     BIGINT NOT NULL,
    last_success BIGINT NOT NULL,
    last_failure BIGINT NOT NULL,
    last_answer  TEXT NOT NULL
);

-- Events that a receiver did not accept in time.
CREATE TABLE dead_letters (
    id       BIGINT PRIMARY KEY,
    webhook  BIGINT NOT NULL,
    rev      BIGINT NOT NULL,
    idx      BIGINT NOT NULL,
    event    TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    answer   TEXT NOT NULL,
    at       BIGINT NOT NULL
);
CREATE INDEX dead_letters_webhook ON dead_letters (webhook, id);

-- +goose Down
DROP TABLE dead_letters;
DROP TABLE webhook_progress;
DROP TABLE webhooks;
