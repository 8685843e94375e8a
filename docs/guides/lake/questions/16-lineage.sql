-- From which Versions was each living Version made, two steps back?
SELECT v.resourcexid, v.versionid, concat_ws(' > ', older.versionid, old.versionid, v.versionid) AS line
FROM versions v
  LEFT JOIN versions old
    ON old.resourcexid = v.resourcexid AND old.versionid = v.ancestorid AND old.versionid <> v.versionid
  LEFT JOIN versions older
    ON older.resourcexid = old.resourcexid AND older.versionid = old.ancestorid AND older.versionid <> old.versionid
WHERE v.gone IS NULL
ORDER BY v.resourcexid, v.born
