-- Which consumers are behind, and by how much?
SELECT subscription, protocol, lag, deadletters, coalesce(lasterror, '') AS lasterror
FROM deliveries
WHERE taken = (SELECT max(taken) FROM deliveries) AND lag > 0
ORDER BY lag DESC
