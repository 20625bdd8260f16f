// Of a label of its own: no audit counts it.
MATCH (i:Installation {id: 'lamina'})
RETURN i.installation
