-- +goose Up

-- The permissions of an API key. Existing keys allow everything.
ALTER TABLE api_keys ADD COLUMN role TEXT NOT NULL DEFAULT 'admin';
ALTER TABLE api_keys ADD COLUMN scopes TEXT NOT NULL DEFAULT '';

-- +goose Down

-- A version without roles would treat every key as one that allows everything.
DELETE FROM api_keys WHERE role <> 'admin' OR scopes <> '';
ALTER TABLE api_keys DROP COLUMN scopes;
ALTER TABLE api_keys DROP COLUMN role;
