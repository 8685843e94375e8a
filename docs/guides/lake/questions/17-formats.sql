-- Which formats are used, and how large are their documents?
SELECT format, count(*) AS versions, count_if(gone IS NULL) AS living, round(avg(size)) AS bytes
FROM versions
GROUP BY format
ORDER BY versions DESC, format
