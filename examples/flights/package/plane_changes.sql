-- What the flights of one micro-batch add to the summary of each plane. Nothing is kept: whoever
-- reads the changes adds them up, each once.
SELECT
  tailnum AS key,
  tailnum,
  count(*) AS flights,
  count_if(dep_time IS NULL) AS cancelled,
  coalesce(sum(CAST(dep_delay AS INT)), 0) AS dep_delay_min,
  coalesce(sum(CAST(distance AS INT)) FILTER (WHERE dep_time IS NOT NULL), 0) AS miles,
  max_by(dest, offset) FILTER (WHERE dep_time IS NOT NULL) AS last_airport,
  max_by(carrier, offset) AS carrier
FROM flights
  LATERAL VIEW json_tuple(
    CAST(value AS STRING), 'tailnum', 'carrier', 'dep_time', 'dep_delay', 'distance', 'dest'
  ) flight AS tailnum, carrier, dep_time, dep_delay, distance, dest
WHERE tailnum IS NOT NULL
GROUP BY tailnum
