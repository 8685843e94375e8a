-- Which living Versions are not known to be compatible with their ancestors?
SELECT resourcexid, versionid, format, coalesce(compatibilityvalidatedreason, 'not asked for') AS reason
FROM versions
WHERE gone IS NULL AND compatibilityvalidated IS NOT TRUE
ORDER BY resourcexid, born
