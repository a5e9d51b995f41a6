-- +goose Up

-- Requests with an idempotency key that were executed, so that none is executed twice.
CREATE TABLE receipts (
    id      BIGINT PRIMARY KEY,
    owner   TEXT NOT NULL,
    key     BYTEA NOT NULL,
    request BYTEA NOT NULL,
    rev     BIGINT NOT NULL,
    object  TEXT NOT NULL,
    answer  TEXT NOT NULL,
    until   BIGINT NOT NULL
);

-- +goose Down
DROP TABLE receipts;
