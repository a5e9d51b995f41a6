-- +goose Up

-- What people get when they sign in. Only the hash of the secret is stored.
CREATE TABLE sessions (
    id          INTEGER PRIMARY KEY,
    prefix      TEXT NOT NULL,
    hash        BLOB NOT NULL,
    user_id     INTEGER NOT NULL,
    client      TEXT NOT NULL,
    description TEXT NOT NULL,
    expiry      INTEGER NOT NULL,
    created_at  INTEGER NOT NULL
);

-- When sessions were last used. Separate from the sessions, which do not change.
CREATE TABLE session_uses (
    id   INTEGER PRIMARY KEY,
    at   INTEGER NOT NULL,
    addr TEXT NOT NULL
);

-- +goose Down
DROP TABLE session_uses;
DROP TABLE sessions;
