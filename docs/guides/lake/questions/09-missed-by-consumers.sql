-- Which changes of Versions has each consumer not received yet?
SELECT d.subscription, count(DISTINCT c.xid) AS versions, min(c.time) AS oldest
FROM deliveries d JOIN changes c
  ON c.position > d.position AND c.type LIKE '%.versions' AND c.kind IN ('created', 'deleted')
WHERE d.taken = (SELECT max(taken) FROM deliveries)
GROUP BY d.subscription
ORDER BY d.subscription
