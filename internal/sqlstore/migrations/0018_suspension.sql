-- +goose Up
ALTER TABLE users ADD COLUMN suspended_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN suspended_by TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN suspended_at INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE nodes DROP COLUMN suspended_at;
ALTER TABLE users DROP COLUMN suspended_by;
ALTER TABLE users DROP COLUMN suspended_at;
