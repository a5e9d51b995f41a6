-- +goose Up

-- The single row that every writer locks, so that log entries are written one after
-- another. Its batch is that of the newest entry.
CREATE TABLE head (
    id       BIGINT PRIMARY KEY,
    rev      BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    batch    BYTEA  NOT NULL,
    counters TEXT   NOT NULL
);
INSERT INTO head (id, rev, at, batch, counters) VALUES (1, 0, 0, '', '');

-- Each entry contains the batch of the previous entry, so that replicas notice if the
-- history was replaced.
CREATE TABLE log (
    rev    BIGINT PRIMARY KEY,
    batch  BYTEA  NOT NULL,
    prev   BYTEA  NOT NULL,
    at     BIGINT NOT NULL,
    actor  TEXT   NOT NULL,
    events BYTEA  NOT NULL
);

CREATE TABLE users (
    id              BIGINT PRIMARY KEY,
    name            TEXT   NOT NULL,
    display_name    TEXT   NOT NULL,
    email           TEXT   NOT NULL,
    provider        TEXT   NOT NULL,
    provider_id     TEXT   NOT NULL,
    profile_pic_url TEXT   NOT NULL,
    created_at      BIGINT NOT NULL
);

CREATE TABLE nodes (
    id             BIGINT PRIMARY KEY,
    owner          BIGINT NOT NULL,
    created_by     BIGINT NOT NULL,
    machine_key    TEXT   NOT NULL,
    node_key       TEXT   NOT NULL,
    hostname       TEXT   NOT NULL,
    name           TEXT   NOT NULL,
    ipv4           TEXT   NOT NULL,
    ipv6           TEXT   NOT NULL,
    tags           TEXT   NOT NULL,
    method         TEXT   NOT NULL,
    preauth_key    BIGINT NOT NULL,
    ephemeral      BIGINT NOT NULL,
    os             TEXT   NOT NULL,
    arch           TEXT   NOT NULL,
    client_version TEXT   NOT NULL,
    routable_ips   TEXT   NOT NULL,
    expiry         BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL
);

-- Data that changes often, separate from data that does not. With half-empty pages and
-- no index except the key, PostgreSQL can update rows in place.
CREATE TABLE node_net (
    id         BIGINT PRIMARY KEY,
    endpoints  TEXT   NOT NULL DEFAULT '',
    disco_key  TEXT   NOT NULL DEFAULT '',
    home_relay BIGINT NOT NULL DEFAULT 0,
    online     BIGINT NOT NULL DEFAULT 0,
    replica    TEXT   NOT NULL DEFAULT '',
    conn       BIGINT NOT NULL DEFAULT 0,
    last_seen  BIGINT NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE preauth_keys (
    id         BIGINT PRIMARY KEY,
    prefix     TEXT   NOT NULL,
    hash       BYTEA  NOT NULL,
    user_id    BIGINT NOT NULL,
    reusable   BIGINT NOT NULL,
    ephemeral  BIGINT NOT NULL,
    tags       TEXT   NOT NULL,
    used       BIGINT NOT NULL,
    expiry     BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE api_keys (
    id         BIGINT PRIMARY KEY,
    prefix     TEXT   NOT NULL,
    hash       BYTEA  NOT NULL,
    expiry     BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE audit (
    rev         BIGINT NOT NULL,
    idx         BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    actor       TEXT   NOT NULL,
    verb        TEXT   NOT NULL,
    object_kind TEXT   NOT NULL,
    object_id   TEXT   NOT NULL,
    before      BYTEA  NOT NULL,
    after       BYTEA  NOT NULL,
    PRIMARY KEY (rev, idx)
);

-- Heartbeats of replicas. They are not in the log, so that they do not wake other replicas.
CREATE TABLE replicas (
    id     TEXT   PRIMARY KEY,
    at     BIGINT NOT NULL,
    report TEXT   NOT NULL
);

-- +goose Down
DROP TABLE replicas, audit, api_keys, preauth_keys, node_net, nodes, users, log, head;
