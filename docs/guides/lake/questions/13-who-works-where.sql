-- Who works on what?
SELECT caller, groupxid, count(DISTINCT xregcorrelationid) AS requests, max(to_date(time)) AS last
FROM changes
WHERE groupxid IS NOT NULL AND kind <> 'refreshed'
GROUP BY caller, groupxid
ORDER BY caller, requests DESC, groupxid
