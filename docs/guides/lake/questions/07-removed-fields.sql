-- Which fields did a Version remove that its ancestor had?
SELECT v.resourcexid, v.ancestorid, v.versionid, old.path
FROM versions v
  JOIN versions a ON a.resourcexid = v.resourcexid AND a.versionid = v.ancestorid AND a.versionid <> v.versionid
  JOIN schema_fields old ON old.xid = a.xid AND old.document = a.document
  LEFT ANTI JOIN schema_fields new ON new.xid = v.xid AND new.document = v.document AND new.path = old.path
ORDER BY v.born, old.ordinal
