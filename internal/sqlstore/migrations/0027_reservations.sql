-- +goose Up

-- Names and addresses kept for devices that have not joined yet.
CREATE TABLE reservations (
    id         INTEGER PRIMARY KEY,
    name       TEXT   NOT NULL,
    hostname   TEXT   NOT NULL,
    user_id    INTEGER NOT NULL,
    tags       TEXT   NOT NULL,
    ipv4       TEXT   NOT NULL,
    ipv6       TEXT   NOT NULL,
    created_at INTEGER NOT NULL
);

-- +goose Down
DROP TABLE reservations;
