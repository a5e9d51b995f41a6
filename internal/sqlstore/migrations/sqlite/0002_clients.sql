-- +goose Up

-- What clients report about themselves, and what the sweep has found.
ALTER TABLE nodes ADD COLUMN renamed     INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN cap_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN host        TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN lapsed      INTEGER NOT NULL DEFAULT 0;

-- Decisions on devices that asked to join without a key.
CREATE TABLE logins (
    id          INTEGER PRIMARY KEY,
    machine_key TEXT NOT NULL,
    node_key    TEXT NOT NULL,
    user_id     INTEGER NOT NULL,
    rejected    TEXT NOT NULL,
    until       INTEGER NOT NULL
);

-- Settings that clients receive, and secrets that replicas share.
CREATE TABLE settings (
    id         INTEGER PRIMARY KEY,
    key        TEXT NOT NULL,
    value      TEXT NOT NULL,
    source     TEXT NOT NULL,
    pinned     INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);

-- +goose Down
DROP TABLE settings;
DROP TABLE logins;
ALTER TABLE nodes DROP COLUMN lapsed;
ALTER TABLE nodes DROP COLUMN host;
ALTER TABLE nodes DROP COLUMN cap_version;
ALTER TABLE nodes DROP COLUMN renamed;
