-- +goose Up
ALTER TABLE users ADD COLUMN directory_id TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN directory_name TEXT NOT NULL DEFAULT '';
CREATE TABLE user_groups (
    id           INTEGER PRIMARY KEY,
    name         TEXT   NOT NULL,
    display_name TEXT   NOT NULL,
    external_id  TEXT   NOT NULL,
    members      TEXT   NOT NULL,
    created_at   INTEGER NOT NULL
);

-- +goose Down
DROP TABLE user_groups;
ALTER TABLE users DROP COLUMN directory_name;
ALTER TABLE users DROP COLUMN directory_id;
