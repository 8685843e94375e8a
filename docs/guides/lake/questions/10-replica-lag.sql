-- How far behind are the replicas, over time?
SELECT to_date(taken) AS day, link, state, lag, lagseconds
FROM replication
ORDER BY day, link
