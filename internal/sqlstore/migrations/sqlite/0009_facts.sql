-- +goose Up

-- Measurements of devices, as JSON: rewritten from time to time, and read as a whole.
CREATE TABLE node_facts (
    id    INTEGER PRIMARY KEY,
    facts TEXT    NOT NULL
);

-- When keys were last used. Separate from the keys, which hardly ever change.
CREATE TABLE preauth_key_uses (
    id    INTEGER PRIMARY KEY,
    at    INTEGER NOT NULL,
    addr  TEXT    NOT NULL,
    count INTEGER NOT NULL
);
CREATE TABLE api_key_uses (
    id   INTEGER PRIMARY KEY,
    at   INTEGER NOT NULL,
    addr TEXT    NOT NULL
);

-- The primary router of a prefix from a revision on; zero for none.
CREATE TABLE route_leaders (
    prefix TEXT    NOT NULL,
    rev    INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    node   INTEGER NOT NULL,
    name   TEXT    NOT NULL,
    PRIMARY KEY (prefix, rev)
);

-- +goose Down
DROP TABLE route_leaders;
DROP TABLE api_key_uses;
DROP TABLE preauth_key_uses;
DROP TABLE node_facts;
