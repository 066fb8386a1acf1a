-- rows
SELECT "user_id" AS "user_id",
       "recipe" AS "key_1",
       "country" AS "key_2",
       "seconds" AS "value_1"
FROM "input"
WHERE ((NOT ("user_id" IS NULL)) AND (NOT ("recipe" IS NULL)) AND (NOT ("country" IS NULL)) AND ("seconds" >= 0 AND "country" <> 'XX'));

-- by_user_combined, kept
SELECT "user_id", "key_1", "key_2",
       count(*) AS "measure_1_raw_records",
       sum(CASE WHEN CAST("value_1" AS DOUBLE) BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308 THEN CAST(floor(greatest(least(CAST("value_1" AS DOUBLE), 1.40737488355328000e+14), -1.40737488355328000e+14) * 3.27680000000000000e+04 + 0.5e0) AS BIGINT) END) AS "measure_3_raw_total"
FROM "rows"
GROUP BY "user_id", "key_1", "key_2";

-- by_user_users, kept
SELECT "user_id", count(*) AS "keys_of_user", 1073741824 - CAST(least(floor(least(CAST(sum(CAST(CASE WHEN "measure_1_raw_records" IS NULL THEN 0 ELSE CAST(greatest(least("measure_1_raw_records", 3), 0) AS BIGINT) END * CASE WHEN "measure_1_raw_records" IS NULL THEN 0 ELSE CAST(greatest(least("measure_1_raw_records", 3), 0) AS BIGINT) END AS BIGINT)) AS DOUBLE) * 4.66033801397273550e+05, 268435470e0)) + 2e0, 268435470e0) AS BIGINT) - CAST(least(floor(least(CAST(count(*) AS DOUBLE) * 4.19430421257546265e+06, 268435470e0)) + 2e0, 268435470e0) AS BIGINT) - CAST(least(floor(least(CAST(sum(CAST(CASE WHEN "measure_3_raw_total" IS NULL THEN 0 ELSE CAST(greatest(least("measure_3_raw_total", 1966080), 0) AS BIGINT) END * CASE WHEN "measure_3_raw_total" IS NULL THEN 0 ELSE CAST(greatest(least("measure_3_raw_total", 1966080), 0) AS BIGINT) END AS BIGINT)) AS DOUBLE) * 1.08506949943786881e-06, 268435470e0)) + 2e0, 268435470e0) AS BIGINT) AS "left_of_account"
FROM "by_user_combined"
GROUP BY "user_id"
HAVING count(*) > 0;

-- by_user
SELECT "user_id", "key_1", "key_2", "measure_1_raw_records", "measure_3_raw_total", "keys_of_user", "left_of_account"
FROM "by_user_combined" JOIN "by_user_users" USING ("user_id");

-- uncut
SELECT "user_id" AS "user_id",
       "key_1" AS "key_1",
       "key_2" AS "key_2",
       "measure_1_raw_records" AS "measure_1_raw_records",
       "measure_3_raw_total" AS "measure_3_raw_total",
       "keys_of_user" AS "keys_of_user",
       "left_of_account" AS "left_of_account"
FROM "by_user"
WHERE (("keys_of_user" IS NULL) OR "keys_of_user" <= 64);

-- uncut_weights
SELECT "key_1" AS "key_1",
       "key_2" AS "key_2",
       CAST(floor(sqrt(CAST((coalesce("left_of_account", 0) * 1024) // greatest(CASE WHEN "keys_of_user" IS NULL THEN 0 ELSE CAST(greatest(least("keys_of_user", 64), 1) AS BIGINT) END, 1) AS DOUBLE))) AS BIGINT) AS "weight",
       (CASE WHEN "measure_1_raw_records" IS NULL THEN 0 ELSE CAST(greatest(least("measure_1_raw_records", 3), 0) AS BIGINT) END * 524288) AS "measure_1_records",
       (1 * 1048576) AS "measure_2_users",
       CASE WHEN "measure_3_raw_total" IS NULL THEN 0 ELSE CAST(greatest(least("measure_3_raw_total", 1966080), 0) AS BIGINT) END AS "measure_3_total"
FROM "uncut";

-- above_limit, kept
SELECT "user_id" AS "user_id",
       "key_1" AS "key_1",
       "key_2" AS "key_2",
       "measure_1_raw_records" AS "measure_1_raw_records",
       "measure_3_raw_total" AS "measure_3_raw_total",
       "keys_of_user" AS "keys_of_user",
       "left_of_account" AS "left_of_account",
       CAST('0x' || left(md5(concat('{salt}', CAST(length(CAST("user_id" AS VARCHAR)) AS VARCHAR), ':', CAST("user_id" AS VARCHAR), CAST(length(CAST("key_1" AS VARCHAR)) AS VARCHAR), ':', CAST("key_1" AS VARCHAR), CAST("key_2" AS VARCHAR))), 12) AS BIGINT) AS "key_order"
FROM "by_user"
WHERE "keys_of_user" > 64;

-- bounded
SELECT "user_id", "key_1", "key_2", "measure_1_raw_records", "measure_3_raw_total", "keys_of_user", "left_of_account", "key_order"
FROM (SELECT *, row_number() OVER (PARTITION BY "user_id" ORDER BY "key_order", "key_1", "key_2") AS key_rank
      FROM "above_limit")
WHERE key_rank <= 64;

-- bounded_weights
SELECT "key_1" AS "key_1",
       "key_2" AS "key_2",
       CAST(floor(sqrt(CAST((coalesce("left_of_account", 0) * 1024) // greatest(CASE WHEN "keys_of_user" IS NULL THEN 0 ELSE CAST(greatest(least("keys_of_user", 64), 1) AS BIGINT) END, 1) AS DOUBLE))) AS BIGINT) AS "weight",
       0 AS "measure_1_records",
       0 AS "measure_2_users",
       0 AS "measure_3_total"
FROM "bounded";

-- weights
SELECT "key_1", "key_2", "weight", "measure_1_records", "measure_2_users", "measure_3_total"
FROM "uncut_weights"
UNION ALL
SELECT "key_1", "key_2", "weight", "measure_1_records", "measure_2_users", "measure_3_total"
FROM "bounded_weights";

-- keyed, kept
SELECT "key_1", "key_2",
       sum("weight") AS "weight",
       sum("measure_1_records") AS "measure_1_records",
       sum("measure_2_users") AS "measure_2_users",
       sum("measure_3_total") AS "measure_3_total"
FROM "weights"
GROUP BY "key_1", "key_2";

-- keyed_marked
SELECT "key_1" AS "key_1",
       "key_2" AS "key_2",
       "measure_1_records" AS "measure_1_records",
       "measure_2_users" AS "measure_2_users",
       "measure_3_total" AS "measure_3_total",
       0 AS "selected"
FROM "keyed";

-- keyed_weights
SELECT "key_1" AS "key_1",
       "key_2" AS "key_2",
       CAST("weight" AS BIGINT) AS "weight"
FROM "keyed";

-- selected_rows
SELECT "user_id", "key_1", "key_2", "measure_1_raw_records", "measure_3_raw_total", "keys_of_user", "left_of_account", "key_order"
FROM "above_limit" SEMI JOIN "selected_keys" USING ("key_1", "key_2");

-- clipped
SELECT "user_id", "key_1", "key_2", "measure_1_raw_records", "measure_3_raw_total", "keys_of_user", "left_of_account", "key_order",
       CASE WHEN size_1 <= 576 THEN 1073741824 ELSE CAST(floor(1073741824e0 * sqrt(CAST(576 AS DOUBLE) / CAST(size_1 AS DOUBLE))) AS BIGINT) - 1 END AS "factor_1",
       CASE WHEN size_2 <= 64 THEN 1073741824 ELSE CAST(floor(1073741824e0 * sqrt(CAST(64 AS DOUBLE) / CAST(size_2 AS DOUBLE))) AS BIGINT) - 1 END AS "factor_2",
       CASE WHEN size_3 <= 247390116249600 THEN 1073741824 ELSE CAST(floor(1073741824e0 * sqrt(CAST(247390116249600 AS DOUBLE) / CAST(size_3 AS DOUBLE))) AS BIGINT) - 1 END AS "factor_3"
FROM (SELECT *,
             sum(CAST(CASE WHEN "measure_1_raw_records" IS NULL THEN 0 ELSE CAST(greatest(least("measure_1_raw_records", 3), 0) AS BIGINT) END * CASE WHEN "measure_1_raw_records" IS NULL THEN 0 ELSE CAST(greatest(least("measure_1_raw_records", 3), 0) AS BIGINT) END AS BIGINT)) OVER (PARTITION BY "user_id") AS size_1,
             sum(CAST(1 * 1 AS BIGINT)) OVER (PARTITION BY "user_id") AS size_2,
             sum(CAST(CASE WHEN "measure_3_raw_total" IS NULL THEN 0 ELSE CAST(greatest(least("measure_3_raw_total", 1966080), 0) AS BIGINT) END * CASE WHEN "measure_3_raw_total" IS NULL THEN 0 ELSE CAST(greatest(least("measure_3_raw_total", 1966080), 0) AS BIGINT) END AS BIGINT)) OVER (PARTITION BY "user_id") AS size_3
      FROM "selected_rows");

-- safe_contributions
SELECT "key_1" AS "key_1",
       "key_2" AS "key_2",
       (CASE WHEN "measure_1_raw_records" IS NULL THEN 0 ELSE CAST(greatest(least("measure_1_raw_records", 3), 0) AS BIGINT) END * 524288) * "factor_1" // 1073741824 AS "measure_1_records",
       (1 * 1048576) * "factor_2" // 1073741824 AS "measure_2_users",
       CASE WHEN "measure_3_raw_total" IS NULL THEN 0 ELSE CAST(greatest(least("measure_3_raw_total", 1966080), 0) AS BIGINT) END * "factor_3" // 1073741824 AS "measure_3_total"
FROM "clipped";

-- safe_contributions_marked
SELECT "key_1" AS "key_1",
       "key_2" AS "key_2",
       "measure_1_records" AS "measure_1_records",
       "measure_2_users" AS "measure_2_users",
       "measure_3_total" AS "measure_3_total",
       0 AS "selected"
FROM "safe_contributions";

-- missing_keys
SELECT "key_1" AS "key_1",
       "key_2" AS "key_2",
       0 AS "measure_1_records",
       0 AS "measure_2_users",
       0 AS "measure_3_total",
       1 AS "selected"
FROM "selected_keys";

-- with_missing_keys
SELECT "key_1", "key_2", "measure_1_records", "measure_2_users", "measure_3_total", "selected"
FROM "keyed_marked"
UNION ALL
SELECT "key_1", "key_2", "measure_1_records", "measure_2_users", "measure_3_total", "selected"
FROM "safe_contributions_marked"
UNION ALL
SELECT "key_1", "key_2", "measure_1_records", "measure_2_users", "measure_3_total", "selected"
FROM "missing_keys";

-- aggregates
SELECT "key_1", "key_2",
       sum("measure_1_records") AS "measure_1_records",
       sum("measure_2_users") AS "measure_2_users",
       sum("measure_3_total") AS "measure_3_total",
       max("selected") AS "selected"
FROM "with_missing_keys"
GROUP BY "key_1", "key_2";

-- exact
SELECT "key_1" AS "key_1",
       "key_2" AS "key_2",
       CAST("measure_1_records" AS BIGINT) AS "measure_1_records",
       CAST("measure_2_users" AS BIGINT) AS "measure_2_users",
       CAST("measure_3_total" AS BIGINT) AS "measure_3_total"
FROM "aggregates"
WHERE "selected" = 1;
