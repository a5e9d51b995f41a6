-- +goose Up
ALTER TABLE api_keys ADD COLUMN user_id INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE api_keys DROP COLUMN user_id;
