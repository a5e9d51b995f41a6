-- +goose Up

-- Refresh tokens, sealed, with which the server asks identity providers whether people still have their accounts.
CREATE TABLE rechecks (
    id           INTEGER PRIMARY KEY,
    issuer       TEXT    NOT NULL,
    token        TEXT    NOT NULL,
    due          INTEGER NOT NULL,
    claim        TEXT    NOT NULL,
    claimed_at   INTEGER NOT NULL,
    doubt        INTEGER NOT NULL,
    refused      INTEGER NOT NULL,
    cause        TEXT    NOT NULL,
    confirmed_at INTEGER NOT NULL
);
ALTER TABLE users ADD COLUMN held_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN held_by TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE users DROP COLUMN held_by;
ALTER TABLE users DROP COLUMN held_at;
DROP TABLE rechecks;
