-- Between which positions is each month, and is an event missing?
SELECT month, min(first) AS first, max(last) AS last, count(*) AS requests, sum(events) AS events,
       max(last) - min(first) + 1 - sum(events) AS missing
FROM interactions
GROUP BY month
ORDER BY month
