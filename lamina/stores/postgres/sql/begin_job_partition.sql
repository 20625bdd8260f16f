INSERT INTO job_partitions AS p (run_id, partition) VALUES (%(run_id)s, %(partition)s)
ON CONFLICT (run_id, partition) DO UPDATE SET partition = p.partition
RETURNING partition, cursor, is_done
