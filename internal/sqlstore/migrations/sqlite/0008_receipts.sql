-- +goose Up

-- Requests with an idempotency key that were executed, so that none is executed twice.
CREATE TABLE receipts (
    id      INTEGER PRIMARY KEY,
    owner   TEXT NOT NULL,
    key     BLOB NOT NULL,
    request BLOB NOT NULL,
    rev     INTEGER NOT NULL,
    object  TEXT NOT NULL,
    answer  TEXT NOT NULL,
    until   INTEGER NOT NULL
);

-- +goose Down
DROP TABLE receipts;
