-- name: insert_webhook
-- It gets what is settled from now on.
INSERT INTO webhooks (id, tenant, workspace, url, kinds, secrets, position)
SELECT %(id)s, %(tenant)s, %(workspace)s, %(url)s, %(kinds)s, %(secrets)s, settled_events()
WHERE (SELECT count(*) FROM webhooks WHERE tenant = %(tenant)s) < %(most)s
RETURNING id

-- name: list_webhooks
SELECT w.*, (SELECT count(*) FROM webhook_dead_letters d WHERE d.webhook_id = w.id) AS dead_letters
FROM webhooks w
WHERE w.tenant = %(tenant)s AND (%(id)s::uuid IS NULL OR w.id = %(id)s)
  AND (%(workspace)s::text IS NULL OR w.workspace = %(workspace)s)
  AND (w.created_at, w.id) > (coalesce(%(after_time)s::timestamptz, '-infinity'),
                              coalesce(%(after_id)s::uuid, '00000000-0000-0000-0000-000000000000'))
ORDER BY w.created_at, w.id
LIMIT %(limit)s

-- name: delete_webhook
DELETE FROM webhooks WHERE tenant = %(tenant)s AND id = %(id)s

-- name: rotate_webhook
-- The secrets of before sign until their end.
UPDATE webhooks w
SET secrets = jsonb_build_array(jsonb_build_object('secret', %(secret)s::text, 'until', NULL)) || coalesce((
    SELECT jsonb_agg(s || jsonb_build_object('until', coalesce(s ->> 'until', %(until)s::text)))
    FROM jsonb_array_elements(w.secrets) s
    WHERE s ->> 'until' IS NULL OR (s ->> 'until')::timestamptz > %(now)s
), '[]')
WHERE tenant = %(tenant)s AND id = %(id)s
RETURNING id

-- name: list_dead_letters
SELECT d.event_id, d.seq, d.attempts, d.error, d.died_at, d.is_due
FROM webhook_dead_letters d JOIN webhooks w ON w.id = d.webhook_id
WHERE w.tenant = %(tenant)s AND w.id = %(id)s AND d.seq > %(after_position)s
ORDER BY d.seq
LIMIT %(limit)s

-- name: revive_dead_letters
WITH revived AS (
    UPDATE webhook_dead_letters d SET is_due = true
    FROM webhooks w
    WHERE w.id = d.webhook_id AND w.tenant = %(tenant)s AND w.id = %(id)s
      AND (%(events)s::uuid[] IS NULL OR d.event_id = ANY(%(events)s))
    RETURNING d.webhook_id
), woken AS (
    UPDATE webhooks SET next_at = least(next_at, clock_timestamp()) WHERE id IN (SELECT webhook_id FROM revived)
)
SELECT count(*) AS letters FROM revived

-- name: claim_webhooks
-- Those that have something to send and that no other process sends for; a few of each tenant at a time, so that the
-- addresses of one, which do not answer, take not all places.
WITH held AS (
    SELECT tenant, count(*) AS claims FROM webhooks WHERE claimed_until > clock_timestamp() GROUP BY tenant
), due AS (
    SELECT w.id, row_number() OVER (PARTITION BY w.tenant ORDER BY w.next_at, w.id) + coalesce(h.claims, 0) AS place
    FROM webhooks w
    LEFT JOIN held h ON h.tenant = w.tenant
    WHERE w.next_at <= clock_timestamp() AND (w.claimed_until IS NULL OR w.claimed_until <= clock_timestamp())
      AND (EXISTS (SELECT FROM events e WHERE e.tenant = w.tenant AND e.seq > w.position AND e.seq <= %(settled)s)
           OR EXISTS (SELECT FROM webhook_dead_letters d WHERE d.webhook_id = w.id AND d.is_due))
), chosen AS (
    SELECT w.id FROM webhooks w JOIN due ON due.id = w.id
    WHERE due.place <= %(of_tenant)s AND (w.claimed_until IS NULL OR w.claimed_until <= clock_timestamp())
    ORDER BY w.next_at
    LIMIT %(limit)s
    FOR UPDATE OF w SKIP LOCKED
)
UPDATE webhooks w
SET claimed_by = %(claim)s, claimed_until = clock_timestamp() + make_interval(secs => %(claim_s)s)
FROM chosen WHERE w.id = chosen.id
RETURNING w.*, 0 AS dead_letters

-- name: advance_webhook
-- Only by the process that holds the claim, which is prolonged.
UPDATE webhooks
SET position = greatest(position, %(position)s),
    attempts = CASE WHEN position < %(position)s THEN 0 ELSE attempts END, delivered = delivered + %(delivered)s,
    delivered_at = CASE WHEN %(delivered)s > 0 THEN clock_timestamp() ELSE delivered_at END,
    last_error = CASE WHEN %(delivered)s > 0 THEN NULL ELSE last_error END,
    claimed_until = clock_timestamp() + make_interval(secs => %(claim_s)s)
WHERE id = %(id)s AND claimed_by = %(claim)s
RETURNING id

-- name: postpone_webhook
-- Only an attempt to deliver the next event counts; letters count by themselves.
UPDATE webhooks
SET attempts = attempts + CASE WHEN %(is_letter)s THEN 0 ELSE 1 END, last_error = %(error)s, failed_at = clock_timestamp(),
    next_at = clock_timestamp() + %(pause)s::interval, claimed_by = NULL, claimed_until = NULL
WHERE id = %(id)s AND claimed_by = %(claim)s

-- name: give_up_event
-- The event is a dead letter; the next one is tried after the pause.
WITH advanced AS (
    UPDATE webhooks
    SET position = greatest(position, %(seq)s), attempts = 0, last_error = %(error)s, failed_at = clock_timestamp(),
        next_at = clock_timestamp() + %(pause)s::interval, claimed_by = NULL, claimed_until = NULL
    WHERE id = %(id)s AND claimed_by = %(claim)s
    RETURNING id
)
INSERT INTO webhook_dead_letters AS d (webhook_id, seq, event_id, attempts, error)
SELECT id, %(seq)s, %(event_id)s, %(attempts)s, %(error)s FROM advanced
ON CONFLICT (webhook_id, seq) DO NOTHING

-- name: release_webhook
UPDATE webhooks SET claimed_by = NULL, claimed_until = NULL WHERE id = %(id)s AND claimed_by = %(claim)s

-- name: read_due_letters
SELECT d.seq FROM webhook_dead_letters d WHERE d.webhook_id = %(id)s AND d.is_due ORDER BY d.seq LIMIT %(limit)s

-- name: end_letter
DELETE FROM webhook_dead_letters WHERE webhook_id = %(id)s AND seq = %(seq)s

-- name: keep_letter
-- One that had no attempts yet, since a renaming left it, has as many as an event.
UPDATE webhook_dead_letters
SET is_due = attempts + 1 < %(most)s, attempts = attempts + 1, error = %(error)s, died_at = clock_timestamp()
WHERE webhook_id = %(id)s AND seq = %(seq)s
RETURNING attempts, is_due
