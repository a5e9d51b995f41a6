-- +goose Up

-- Receivers of events. The secret of each is derived from its salt and the key by
-- which clients recognise the server.
CREATE TABLE webhooks (
    id          INTEGER PRIMARY KEY,
    url         TEXT NOT NULL,
    description TEXT NOT NULL,
    events      TEXT NOT NULL,
    disabled    INTEGER NOT NULL,
    salt        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
);

-- How far events were delivered to each webhook, and by which replica.
CREATE TABLE webhook_progress (
    id           INTEGER PRIMARY KEY,
    rev          INTEGER NOT NULL,
    idx          INTEGER NOT NULL,
    replica      TEXT NOT NULL,
    until        INTEGER NOT NULL,
    failures     INTEGER NOT NULL,
    last_success INTEGER NOT NULL,
    last_failure INTEGER NOT NULL,
    last_answer  TEXT NOT NULL
);

-- Events that a receiver did not accept in time.
CREATE TABLE dead_letters (
    id       INTEGER PRIMARY KEY,
    webhook  INTEGER NOT NULL,
    rev      INTEGER NOT NULL,
    idx      INTEGER NOT NULL,
    event    TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    answer   TEXT NOT NULL,
    at       INTEGER NOT NULL
);
CREATE INDEX dead_letters_webhook ON dead_letters (webhook, id);

-- +goose Down
DROP TABLE dead_letters;
DROP TABLE webhook_progress;
DROP TABLE webhooks;
