SELECT atttypmod AS dimension FROM pg_attribute
WHERE attrelid = 'message_chunks'::regclass AND attname = 'embedding'
