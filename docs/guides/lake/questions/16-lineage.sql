-- From which Versions was each living Version made?
WITH RECURSIVE lineage(resourcexid, versionid, line, ancestorid, depth) AS (
  SELECT resourcexid, versionid, versionid, ancestorid, 0 FROM versions WHERE gone IS NULL
  UNION ALL
  SELECT l.resourcexid, l.versionid, concat(v.versionid, ' > ', l.line), v.ancestorid, l.depth + 1
  FROM lineage l JOIN versions v ON v.resourcexid = l.resourcexid AND v.versionid = l.ancestorid
  WHERE l.ancestorid <> split(l.line, ' > ')[0]
)
SELECT resourcexid, versionid, max_by(line, depth) AS line
FROM lineage
GROUP BY resourcexid, versionid
ORDER BY resourcexid, versionid
