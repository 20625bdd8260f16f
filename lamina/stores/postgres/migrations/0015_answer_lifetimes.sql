-- The answers under Idempotency-Keys go with the user that they were given for, and with time.
ALTER TABLE idempotency_keys ADD COLUMN user_id text;
CREATE INDEX idempotency_keys_by_user ON idempotency_keys (tenant, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (tenant, created_at);
