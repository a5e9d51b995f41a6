-- +goose Up

-- What an API key is for, in the words of whoever made it.
ALTER TABLE api_keys ADD COLUMN comment TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE api_keys DROP COLUMN comment;
