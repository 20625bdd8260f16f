MERGE (i:Installation {id: 'lamina'})
SET i.mark = $mark
