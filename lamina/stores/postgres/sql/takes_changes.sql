SELECT %(generation)s::smallint IS NULL OR EXISTS (
           SELECT FROM embedding_generations
           WHERE is_active AND generation = %(generation)s AND activations = %(activations)s
       ) AS is_active,
       NOT EXISTS (
           SELECT FROM projection_stores WHERE projection = %(projection)s AND store <> %(store)s
       ) AS is_here
