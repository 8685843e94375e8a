-- Which hash proves the state of the registry at the end of each month?
SELECT month, max(last) AS position, left(lower(hex(max_by(chain, last))), 16) AS chain,
       left(lower(hex(max_by(statehash, last))), 16) AS state
FROM interactions
GROUP BY month
ORDER BY month
