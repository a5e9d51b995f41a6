-- +goose Up
ALTER TABLE users ADD COLUMN provider_groups TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE users DROP COLUMN provider_groups;
