-- Which Versions break what readers of their ancestors expect, and why?
SELECT resourcexid, ancestorid, versionid, born_caller AS caller, breaking_reason
FROM versions
WHERE breaking
ORDER BY born
