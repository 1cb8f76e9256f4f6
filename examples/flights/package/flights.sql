-- One row per flight: the six fields that a summary needs. The columns that say where a row came
-- from are kept without being named.
SELECT
  tailnum,
  carrier,
  CAST(dep_time AS INT) AS dep_time,
  CAST(dep_delay AS INT) AS dep_delay,
  CAST(distance AS INT) AS distance,
  dest
FROM flights
  LATERAL VIEW json_tuple(
    CAST(value AS STRING), 'tailnum', 'carrier', 'dep_time', 'dep_delay', 'distance', 'dest'
  ) flight AS tailnum, carrier, dep_time, dep_delay, distance, dest
