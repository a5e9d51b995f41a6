-- +goose Up

-- What clients report about themselves, and what the sweep has found.
ALTER TABLE nodes ADD COLUMN renamed     BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN cap_version BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN host        TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN lapsed      BIGINT NOT NULL DEFAULT 0;

-- Decisions on devices that asked to join without a key.
CREATE TABLE logins (
    id          BIGINT PRIMARY KEY,
    machine_key TEXT NOT NULL,
    node_key    TEXT NOT NULL,
    user_id     BIGINT NOT NULL,
    rejected    TEXT NOT NULL,
    until       BIGINT NOT NULL
);

-- Settings that clients receive, and secrets that replicas share.
CREATE TABLE settings (
    id         BIGINT PRIMARY KEY,
    key        TEXT NOT NULL,
    value      TEXT NOT NULL,
    source     TEXT NOT NULL,
    pinned     BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE settings;
DROP TABLE logins;
ALTER TABLE nodes DROP COLUMN lapsed;
ALTER TABLE nodes DROP COLUMN host;
ALTER TABLE nodes DROP COLUMN cap_version;
ALTER TABLE nodes DROP COLUMN renamed;
