-- Another version ends the agent's responses; the first one that is named does not.
UPDATE response_agents
SET epoch = epoch + CASE WHEN prompt_version <> %(prompt_version)s THEN 1 ELSE 0 END,
    prompt_version = %(prompt_version)s
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND agent = %(agent)s
RETURNING epoch
