-- +goose Up

-- The single row that every writer locks, so that log entries are written one after
-- another. Its batch is that of the newest entry.
CREATE TABLE head (
    id       INTEGER PRIMARY KEY,
    rev      INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    batch    BLOB   NOT NULL,
    counters TEXT   NOT NULL
);
INSERT INTO head (id, rev, at, batch, counters) VALUES (1, 0, 0, x'', '');

-- Each entry contains the batch of the previous entry, so that replicas notice if the
-- history was replaced.
CREATE TABLE log (
    rev    INTEGER PRIMARY KEY,
    batch  BLOB   NOT NULL,
    prev   BLOB   NOT NULL,
    at     INTEGER NOT NULL,
    actor  TEXT   NOT NULL,
    events BLOB   NOT NULL
);

CREATE TABLE users (
    id              INTEGER PRIMARY KEY,
    name            TEXT   NOT NULL,
    display_name    TEXT   NOT NULL,
    email           TEXT   NOT NULL,
    provider        TEXT   NOT NULL,
    provider_id     TEXT   NOT NULL,
    profile_pic_url TEXT   NOT NULL,
    created_at      INTEGER NOT NULL
);

CREATE TABLE nodes (
    id             INTEGER PRIMARY KEY,
    owner          INTEGER NOT NULL,
    created_by     INTEGER NOT NULL,
    machine_key    TEXT   NOT NULL,
    node_key       TEXT   NOT NULL,
    hostname       TEXT   NOT NULL,
    name           TEXT   NOT NULL,
    ipv4           TEXT   NOT NULL,
    ipv6           TEXT   NOT NULL,
    tags           TEXT   NOT NULL,
    method         TEXT   NOT NULL,
    preauth_key    INTEGER NOT NULL,
    ephemeral      INTEGER NOT NULL,
    os             TEXT   NOT NULL,
    arch           TEXT   NOT NULL,
    client_version TEXT   NOT NULL,
    routable_ips   TEXT   NOT NULL,
    expiry         INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL
);

-- Data that changes often, separate from data that does not.
CREATE TABLE node_net (
    id         INTEGER PRIMARY KEY,
    endpoints  TEXT   NOT NULL DEFAULT '',
    disco_key  TEXT   NOT NULL DEFAULT '',
    home_relay INTEGER NOT NULL DEFAULT 0,
    online     INTEGER NOT NULL DEFAULT 0,
    replica    TEXT   NOT NULL DEFAULT '',
    conn       INTEGER NOT NULL DEFAULT 0,
    last_seen  INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE preauth_keys (
    id         INTEGER PRIMARY KEY,
    prefix     TEXT   NOT NULL,
    hash       BLOB   NOT NULL,
    user_id    INTEGER NOT NULL,
    reusable   INTEGER NOT NULL,
    ephemeral  INTEGER NOT NULL,
    tags       TEXT   NOT NULL,
    used       INTEGER NOT NULL,
    expiry     INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);

CREATE TABLE api_keys (
    id         INTEGER PRIMARY KEY,
    prefix     TEXT   NOT NULL,
    hash       BLOB   NOT NULL,
    expiry     INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);

CREATE TABLE audit (
    rev         INTEGER NOT NULL,
    idx         INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    actor       TEXT   NOT NULL,
    verb        TEXT   NOT NULL,
    object_kind TEXT   NOT NULL,
    object_id   TEXT   NOT NULL,
    before      BLOB   NOT NULL,
    after       BLOB   NOT NULL,
    PRIMARY KEY (rev, idx)
);

-- Heartbeats of replicas. They are not in the log, so that they do not wake other replicas.
CREATE TABLE replicas (
    id     TEXT   PRIMARY KEY,
    at     INTEGER NOT NULL,
    report TEXT   NOT NULL
);

-- +goose Down
DROP TABLE replicas;
DROP TABLE audit;
DROP TABLE api_keys;
DROP TABLE preauth_keys;
DROP TABLE node_net;
DROP TABLE nodes;
DROP TABLE users;
DROP TABLE log;
DROP TABLE head;
