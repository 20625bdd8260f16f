UPDATE embedding_generations SET thresholds = %(thresholds)s WHERE generation = %(generation)s
