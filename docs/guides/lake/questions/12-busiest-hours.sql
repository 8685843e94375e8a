-- In which hours are most requests made?
SELECT hour(time) AS hour, count(*) AS requests, sum(events) AS events
FROM interactions
GROUP BY hour
ORDER BY requests DESC, hour
LIMIT 5
