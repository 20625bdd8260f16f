"""The decisions of the maintenance jobs, as pure functions; ``lamina.maintenance`` reads rows for them and acts.

sweep: lifespan. decay, edges, entities: decay. dedup: duplicate_groups, over set_join. summaries: summary_periods.
consolidation: clusters. compaction: session_budget.
"""
