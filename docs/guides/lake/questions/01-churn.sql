-- How much is created, changed and removed in each Group and month?
SELECT month, groupxid,
       count(DISTINCT CASE WHEN kind = 'created' THEN xid END) AS created,
       count(DISTINCT CASE WHEN kind = 'updated' THEN xid END) AS updated,
       count(DISTINCT CASE WHEN kind = 'deleted' THEN xid END) AS removed
FROM changes
WHERE groupxid IS NOT NULL AND kind <> 'refreshed'
GROUP BY month, groupxid
ORDER BY month, groupxid
