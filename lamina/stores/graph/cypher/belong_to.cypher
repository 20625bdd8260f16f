MERGE (i:Installation {id: 'lamina'})
SET i.installation = $installation
