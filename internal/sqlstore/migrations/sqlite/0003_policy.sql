-- +goose Up

-- The advertised routes that an administrator or the policy approved.
ALTER TABLE nodes ADD COLUMN routes TEXT NOT NULL DEFAULT '';

-- All versions of the access policy; the newest is in force.
CREATE TABLE policies (
    id         INTEGER PRIMARY KEY,
    text       TEXT NOT NULL,
    source     TEXT NOT NULL,
    author     TEXT NOT NULL,
    reason     TEXT NOT NULL,
    saved_at   INTEGER NOT NULL,
    confirm_by INTEGER NOT NULL,
    revert_to  INTEGER NOT NULL
);

-- Decisions on SSH sessions that need approval.
CREATE TABLE ssh_grants (
    id         INTEGER PRIMARY KEY,
    src        INTEGER NOT NULL,
    dst        INTEGER NOT NULL,
    login      TEXT NOT NULL,
    rejected   INTEGER NOT NULL,
    granted_by TEXT NOT NULL,
    until      INTEGER NOT NULL,
    granted_at INTEGER NOT NULL
);

-- +goose Down
DROP TABLE ssh_grants;
DROP TABLE policies;
ALTER TABLE nodes DROP COLUMN routes;
