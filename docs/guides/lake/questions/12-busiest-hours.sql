-- In which hours are most requests made, since February?
SELECT hour(time) AS hour, count(*) AS requests, sum(events) AS events
FROM interactions
WHERE month >= '2026-02'
GROUP BY hour
ORDER BY requests DESC, hour
LIMIT 5
