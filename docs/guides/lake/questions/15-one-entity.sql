-- What happened to one entity in February?
SELECT position, to_date(time) AS day, caller, kind, path, before, after
FROM changes
WHERE month = '2026-02' AND xid = '/schemagroups/shipping' AND kind = 'updated' AND path LIKE 'labels%'
ORDER BY position
