-- +goose Up

-- What an API key is for, as entered by its creator.
ALTER TABLE api_keys ADD COLUMN comment TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE api_keys DROP COLUMN comment;
