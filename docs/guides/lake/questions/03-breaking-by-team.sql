-- Which teams made how many breaking Versions? The team is a label of the Group.
SELECT get_json_object(g.attributes, '$.labels.team') AS team,
       count(*) AS versions, count_if(v.breaking) AS breaking, count_if(v.breaking IS NULL) AS unknown
FROM versions v JOIN entity_history g
  ON g.xid = v.groupxid AND g.since <= v.born AND (g.until IS NULL OR g.until > v.born)
GROUP BY team
ORDER BY breaking DESC, team
