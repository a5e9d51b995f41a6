-- +goose Up
ALTER TABLE api_keys ADD COLUMN bcrypt TEXT NOT NULL DEFAULT '';
ALTER TABLE preauth_keys ADD COLUMN bcrypt TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE preauth_keys DROP COLUMN bcrypt;
ALTER TABLE api_keys DROP COLUMN bcrypt;
