-- +goose Up

-- What an API key opens. Keys made before open everything.
ALTER TABLE api_keys ADD COLUMN role TEXT NOT NULL DEFAULT 'admin';
ALTER TABLE api_keys ADD COLUMN scopes TEXT NOT NULL DEFAULT '';

-- +goose Down

-- What knows no roles would take every key for one that opens everything.
DELETE FROM api_keys WHERE role <> 'admin' OR scopes <> '';
ALTER TABLE api_keys DROP COLUMN scopes;
ALTER TABLE api_keys DROP COLUMN role;
