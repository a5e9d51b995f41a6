-- +goose Up

-- The advertised routes that an administrator or the policy approved.
ALTER TABLE nodes ADD COLUMN routes TEXT NOT NULL DEFAULT '';

-- All versions of the access policy; the newest is in force.
CREATE TABLE policies (
    id         BIGINT PRIMARY KEY,
    text       TEXT NOT NULL,
    source     TEXT NOT NULL,
    author     TEXT NOT NULL,
    reason     TEXT NOT NULL,
    saved_at   BIGINT NOT NULL,
    confirm_by BIGINT NOT NULL,
    revert_to  BIGINT NOT NULL
);

-- Decisions on SSH sessions that need approval.
CREATE TABLE ssh_grants (
    id         BIGINT PRIMARY KEY,
    src        BIGINT NOT NULL,
    dst        BIGINT NOT NULL,
    login      TEXT NOT NULL,
    rejected   BIGINT NOT NULL,
    granted_by TEXT NOT NULL,
    until      BIGINT NOT NULL,
    granted_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE ssh_grants;
DROP TABLE policies;
ALTER TABLE nodes DROP COLUMN routes;
