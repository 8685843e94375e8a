-- Who reverted whom? A revert gives an attribute the value that it had before someone else changed it.
SELECT a.xid, a.path, a.caller AS changed_by, b.caller AS reverted_by, datediff(b.time, a.time) AS days
FROM changes a JOIN changes b
  ON b.xid = a.xid AND b.path = a.path AND b.position > a.position
 AND b.before <=> a.after AND b.after <=> a.before AND b.caller <> a.caller
WHERE a.kind = 'updated' AND b.kind = 'updated' AND a.type NOT LIKE '%.versions'
  AND a.path NOT IN ('epoch', 'modifiedat')
ORDER BY a.position, a.path
