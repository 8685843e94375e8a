-- How long do Versions of each Group live?
SELECT groupxid, count(*) AS versions, count(gone) AS removed,
       round(avg(datediff(coalesce(gone_time, TIMESTAMP'2026-04-01T00:00:00Z'), born_time)), 1) AS days
FROM versions
GROUP BY groupxid
ORDER BY groupxid
