-- plume sql recipes.sql --table searches=searches.parquet
-- The same as recipes.toml asks, for those who stayed for a second at least, the most popular first.

SELECT WITH DIFFERENTIAL_PRIVACY
  OPTIONS (epsilon = 1.1, delta = 1e-5, max_groups_contributed = 16, privacy_unit_column = user_id)
  recipe,
  COUNT(DISTINCT user_id) AS people,
  COUNT(*, contribution_bounds_per_group => (0, 3)) AS searches,
  AVG(seconds, contribution_bounds_per_group => (0, 300)) AS seconds_mean
FROM searches
WHERE seconds >= 1
GROUP BY recipe
ORDER BY people DESC
