-- What happened to one entity?
SELECT position, to_date(time) AS day, caller, kind, path, before, after
FROM changes
WHERE xid = '/schemagroups/shipping' AND kind = 'updated' AND path LIKE 'labels%'
ORDER BY position
