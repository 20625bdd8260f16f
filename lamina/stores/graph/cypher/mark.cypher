MATCH (i:Installation {id: 'lamina'})
RETURN i.mark
