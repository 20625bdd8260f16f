-- name: read_stamps
-- The state of each scope, in the scopes' order, with the embedding of what is asked there, if it is kept; see
-- lamina/core/stamps.py.
SELECT coalesce(own.epoch, 0) AS namespace_epoch,
       coalesce(whole.epoch, 0) AS workspace_epoch,
       coalesce(shared.shares, '{}') AS shares,
       profile.profile,
       beneath.version || ' ' || extract(epoch FROM beneath.updated_at) AS user_profile,
       chosen.settings, chosen.updated_at AS settings_updated_at,
       NOT EXISTS (
           SELECT 1 FROM outbox o
           WHERE o.projection = ANY(%(projections)s) AND o.seq <= greatest(own.outbox_seq, shared.outbox_seq)
       ) AS is_settled,
       EXISTS (SELECT FROM messages m
               WHERE (m.tenant, m.workspace, m.namespace) = (asked.tenant, asked.workspace, asked.namespace))
           AS has_sessions,
       EXISTS (SELECT FROM notes n
               WHERE (n.tenant, n.workspace, n.namespace) = (asked.tenant, asked.workspace, asked.namespace)
                 AND n.deleted_at IS NULL) AS has_notes,
       EXISTS (SELECT FROM entities e
               WHERE (e.tenant, e.workspace, e.namespace) = (asked.tenant, asked.workspace, asked.namespace))
           AS has_graph,
       EXISTS (SELECT FROM procedures p
               WHERE (p.tenant, p.workspace, p.namespace) = (asked.tenant, asked.workspace, asked.namespace)
                 AND p.deleted_at IS NULL) AS has_procedures,
       EXISTS (SELECT FROM passages p
               WHERE (p.tenant, p.workspace, p.namespace) = (asked.tenant, asked.workspace, asked.namespace))
           AS has_documents,
       kept.embedding, kept.last_used_at AS embedding_used_at
FROM unnest(%(tenants)s::text[], %(workspaces)s::text[], %(namespaces)s::text[], %(agents)s::text[],
            %(users)s::text[], %(text_hashes)s::bytea[])
     WITH ORDINALITY AS asked (tenant, workspace, namespace, agent, user_id, text_hash, place)
LEFT JOIN embedding_cache kept
    ON kept.tenant = asked.tenant AND kept.generation = %(generation)s AND kept.text_hash = asked.text_hash
LEFT JOIN epochs own
    ON (own.tenant, own.workspace, own.namespace) = (asked.tenant, asked.workspace, asked.namespace)
LEFT JOIN epochs whole ON (whole.tenant, whole.workspace, whole.namespace) = (asked.tenant, asked.workspace, '')
LEFT JOIN profiles beneath
    ON (beneath.tenant, beneath.workspace, beneath.namespace, beneath.user_id) = (asked.tenant, '', '', asked.user_id)
LEFT JOIN workspace_settings chosen ON (chosen.tenant, chosen.workspace) = (asked.tenant, asked.workspace)
LEFT JOIN LATERAL (
    SELECT array_agg(json_build_object(
               'id', s.id, 'from_workspace', s.from_workspace, 'from_namespace', s.from_namespace,
               'to_workspace', s.to_workspace, 'segment', s.segment, 'tags', s.tags, 'label', s.label,
               'created_at', s.created_at, 'expires_at', s.expires_at, 'epoch', coalesce(e.epoch, 0)
           ) ORDER BY s.id) AS shares,
           max(e.outbox_seq) AS outbox_seq
    FROM shares s
    LEFT JOIN epochs e ON (e.tenant, e.workspace, e.namespace) = (s.tenant, s.from_workspace, s.from_namespace)
    WHERE s.tenant = asked.tenant AND s.to_workspace = asked.workspace AND s.revoked_at IS NULL
      AND (s.expires_at IS NULL OR s.expires_at > statement_timestamp() - interval '1 hour')
) shared ON true
LEFT JOIN LATERAL (
    SELECT json_build_object(
               'tiers', p.tiers, 'max_context_chunks', p.max_context_chunks, 'min_relevance', p.min_relevance,
               'ttl_days', p.ttl_days, 'prompt_suffix', p.prompt_suffix, 'updated_at', p.updated_at,
               'shows_profile', p.shows_profile,
               'is_verified', coalesce(p.verified_at = p.updated_at, false)
           ) AS profile
    FROM memory_profiles p
    WHERE (p.tenant, p.workspace, p.agent_id) = (asked.tenant, asked.workspace, asked.agent)
) profile ON true
ORDER BY asked.place
