SELECT DISTINCT tenant FROM epochs ORDER BY tenant
