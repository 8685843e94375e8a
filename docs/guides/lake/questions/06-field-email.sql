-- Which schemas have, or had, a field called email?
SELECT resourcexid, min(time) AS since, max(CASE WHEN v.gone IS NULL THEN v.versionid END) AS living_version
FROM schema_fields s JOIN versions v USING (xid, resourcexid)
WHERE s.name = 'email'
GROUP BY resourcexid
ORDER BY resourcexid
