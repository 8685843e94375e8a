-- Which schemas existed on a day?
SELECT type, count(*) AS entities
FROM entity_history
WHERE type LIKE 'schemagroups%' AND since_time < TIMESTAMP'2026-03-01T00:00:00Z'
  AND (until_time IS NULL OR until_time >= TIMESTAMP'2026-03-01T00:00:00Z')
GROUP BY type
ORDER BY type
