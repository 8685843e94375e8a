-- How long was it from a deprecation to the removal, and was the removal on the announced day?
WITH deprecated AS (
  SELECT resourcexid, min(time) AS deprecated_time, max_by(after, position) AS stated
  FROM changes
  WHERE path = 'meta.deprecated' AND after IS NOT NULL AND kind <> 'deleted'
  GROUP BY resourcexid
),
removed AS (
  SELECT xid, max(time) AS removed_time FROM changes
  WHERE kind = 'deleted' AND xid = resourcexid
  GROUP BY xid
)
SELECT resourcexid, to_date(deprecated_time) AS deprecated, left(get_json_object(stated, '$.removal'), 10) AS announced,
       to_date(removed_time) AS removed, datediff(removed_time, deprecated_time) AS days
FROM deprecated LEFT JOIN removed ON xid = resourcexid
ORDER BY deprecated_time
