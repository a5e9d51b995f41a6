-- +goose Up

-- Measurements of devices, as JSON: rewritten from time to time, and read as a whole.
CREATE TABLE node_facts (
    id    BIGINT PRIMARY KEY,
    facts TEXT   NOT NULL
) WITH (fillfactor = 50);

-- When keys were last used. Separate from the keys, which hardly ever change.
CREATE TABLE preauth_key_uses (
    id    BIGINT PRIMARY KEY,
    at    BIGINT NOT NULL,
    addr  TEXT   NOT NULL,
    count BIGINT NOT NULL
);
CREATE TABLE api_key_uses (
    id   BIGINT PRIMARY KEY,
    at   BIGINT NOT NULL,
    addr TEXT   NOT NULL
) WITH (fillfactor = 50);

-- The primary router of a prefix from a revision on; zero for none.
CREATE TABLE route_leaders (
    prefix TEXT   NOT NULL,
    rev    BIGINT NOT NULL,
    at     BIGINT NOT NULL,
    node   BIGINT NOT NULL,
    name   TEXT   NOT NULL,
    PRIMARY KEY (prefix, rev)
);

-- +goose Down
DROP TABLE route_leaders, api_key_uses, preauth_key_uses, node_facts;
