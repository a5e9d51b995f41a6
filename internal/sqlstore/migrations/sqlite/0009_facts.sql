-- +goose Up

-- What devices measured, as JSON: rewritten now and then, read as a whole.
CREATE TABLE node_facts (
    id    INTEGER PRIMARY KEY,
    facts TEXT    NOT NULL
);

-- When keys were last used, apart from the keys, which hardly change.
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

-- Which node leads to a prefix from a revision on; zero for none.
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
