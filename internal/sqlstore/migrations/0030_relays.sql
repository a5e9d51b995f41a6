-- +goose Up

-- Relays that run as processes of their own.
CREATE TABLE relays (
    id          INTEGER PRIMARY KEY,
    name        TEXT    NOT NULL,
    prefix      TEXT    NOT NULL,
    hash        BLOB    NOT NULL,
    region      INTEGER NOT NULL,
    region_code TEXT    NOT NULL,
    region_name TEXT    NOT NULL,
    draining    INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    place       TEXT    NOT NULL
);

-- What each relay last said about its work.
CREATE TABLE relay_reports (
    id             INTEGER PRIMARY KEY,
    at             INTEGER NOT NULL,
    clients        INTEGER NOT NULL,
    bytes_received INTEGER NOT NULL,
    bytes_sent     INTEGER NOT NULL,
    refused        INTEGER NOT NULL,
    latency_micros INTEGER NOT NULL,
    peers          INTEGER NOT NULL
);

-- +goose Down
DROP TABLE relay_reports;
DROP TABLE relays;
