-- +goose Up
ALTER TABLE users ADD COLUMN needs_approval INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE users DROP COLUMN needs_approval;
