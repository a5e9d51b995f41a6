-- +goose Up

-- The decisions on each route of a node, the routes for which it is the primary
-- router, and whether it is unhealthy.
ALTER TABLE nodes ADD COLUMN all_routes TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN primary_routes TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN unwell BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE nodes DROP COLUMN unwell;
ALTER TABLE nodes DROP COLUMN primary_routes;
ALTER TABLE nodes DROP COLUMN all_routes;
