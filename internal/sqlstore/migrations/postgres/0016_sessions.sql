-- +goose Up

-- What people get when they sign in. Only the hash of the secret is stored.
CREATE TABLE sessions (
    id          BIGINT PRIMARY KEY,
    prefix      TEXT NOT NULL,
    hash        BYTEA NOT NULL,
    user_id     BIGINT NOT NULL,
    client      TEXT NOT NULL,
    description TEXT NOT NULL,
    expiry      BIGINT NOT NULL,
    created_at  BIGINT NOT NULL
);

-- When sessions were last used. Separate from the sessions, which do not change.
CREATE TABLE session_uses (
    id   BIGINT PRIMARY KEY,
    at   BIGINT NOT NULL,
    addr TEXT NOT NULL
) WITH (fillfactor = 50);

-- +goose Down
DROP TABLE session_uses;
DROP TABLE sessions;
