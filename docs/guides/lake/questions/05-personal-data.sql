-- Which existing schemas have fields that hold personal data, by name or by description?
SELECT v.resourcexid, v.versionid, s.path, s.fieldtype
FROM schema_fields s JOIN versions v ON v.xid = s.xid AND v.document = s.document AND v.gone IS NULL
WHERE s.name RLIKE '(?i)^(email|phone|birthday|street|city)$' OR s.doc ILIKE '%personal data%'
ORDER BY v.resourcexid, v.born, s.ordinal
