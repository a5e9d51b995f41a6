-- +goose Up

-- Passkeys with which people without an identity provider sign in.
CREATE TABLE passkeys (
    id         INTEGER PRIMARY KEY,
    user_id    INTEGER NOT NULL,
    credential TEXT   NOT NULL,
    public_key TEXT   NOT NULL,
    syncable   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    last_use   INTEGER NOT NULL,
    uses       INTEGER NOT NULL
);

-- Invitations to create a passkey, and recovery codes.
CREATE TABLE invitations (
    id         INTEGER PRIMARY KEY,
    prefix     TEXT   NOT NULL,
    hash       BLOB   NOT NULL,
    user_id    INTEGER NOT NULL,
    recovery   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expiry     INTEGER NOT NULL
);

-- +goose Down
DROP TABLE invitations;
DROP TABLE passkeys;
