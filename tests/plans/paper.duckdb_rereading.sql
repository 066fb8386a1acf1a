-- rows
SELECT "user_id" AS "user_id",
       "recipe" AS "key_1"
FROM "input"
WHERE ((NOT ("user_id" IS NULL)) AND (NOT ("recipe" IS NULL)));

-- by_user_combined_counted
SELECT "user_id",
       count(*) AS "rows_of_user"
FROM "rows"
GROUP BY "user_id";

-- by_user_combined_many, kept
SELECT "user_id" AS "user_id"
FROM "by_user_combined_counted"
WHERE "rows_of_user" > 64;

-- by_user_combined_of_many
SELECT "user_id", "key_1"
FROM "rows" SEMI JOIN "by_user_combined_many" USING ("user_id");

-- by_user_combined, kept
SELECT "user_id", "key_1"
FROM "by_user_combined_of_many"
GROUP BY "user_id", "key_1";

-- by_user_users, kept
SELECT "user_id", count(*) AS "keys_of_user"
FROM "by_user_combined"
GROUP BY "user_id"
HAVING count(*) > 64;

-- by_user
SELECT "user_id", "key_1", "keys_of_user"
FROM "by_user_combined" LEFT JOIN "by_user_users" USING ("user_id");

-- uncut_of_many
SELECT "user_id", "key_1", NULL AS "keys_of_user"
FROM "by_user_combined" ANTI JOIN "by_user_users" USING ("user_id");

-- by_user_combined_of_few
SELECT "user_id", "key_1"
FROM "rows" ANTI JOIN "by_user_combined_many" USING ("user_id");

-- by_user_combined_few
SELECT "user_id", "key_1"
FROM "by_user_combined_of_few"
GROUP BY "user_id", "key_1";

-- uncut_of_few
SELECT "user_id" AS "user_id",
       "key_1" AS "key_1",
       NULL AS "keys_of_user"
FROM "by_user_combined_few";

-- uncut
SELECT "user_id", "key_1", "keys_of_user"
FROM "uncut_of_many"
UNION ALL
SELECT "user_id", "key_1", "keys_of_user"
FROM "uncut_of_few";

-- uncut_weights
SELECT "key_1" AS "key_1",
       1 AS "weight",
       1 AS "measure_1_records"
FROM "uncut";

-- above_limit, kept
SELECT "user_id" AS "user_id",
       "key_1" AS "key_1",
       "keys_of_user" AS "keys_of_user",
       CAST('0x' || left(md5(concat('{salt}', CAST(length(CAST("user_id" AS VARCHAR)) AS VARCHAR), ':', CAST("user_id" AS VARCHAR), CAST("key_1" AS VARCHAR))), 12) AS BIGINT) AS "key_order"
FROM "by_user"
WHERE "keys_of_user" > 64;

-- bounded
SELECT "user_id", "key_1", "keys_of_user", "key_order"
FROM (SELECT *, row_number() OVER (PARTITION BY "user_id" ORDER BY "key_order", "key_1") AS key_rank
      FROM "above_limit")
WHERE key_rank <= 64;

-- bounded_weights
SELECT "key_1" AS "key_1",
       1 AS "weight",
       0 AS "measure_1_records"
FROM "bounded";

-- weights
SELECT "key_1", "weight", "measure_1_records"
FROM "uncut_weights"
UNION ALL
SELECT "key_1", "weight", "measure_1_records"
FROM "bounded_weights";

-- keyed, kept
SELECT "key_1",
       sum("weight") AS "weight",
       sum("measure_1_records") AS "measure_1_records"
FROM "weights"
GROUP BY "key_1";

-- keyed_marked
SELECT "key_1" AS "key_1",
       "measure_1_records" AS "measure_1_records",
       0 AS "selected"
FROM "keyed";

-- keyed_weights
SELECT "key_1" AS "key_1",
       CAST("weight" AS BIGINT) AS "weight"
FROM "keyed";

-- selected_rows
SELECT "user_id", "key_1", "keys_of_user", "key_order"
FROM "above_limit" SEMI JOIN "selected_keys" USING ("key_1");

-- safe
SELECT "user_id", "key_1", "keys_of_user", "key_order"
FROM (SELECT *, row_number() OVER (PARTITION BY "user_id" ORDER BY "key_order", "key_1") AS key_rank
      FROM "selected_rows")
WHERE key_rank <= 64;

-- safe_contributions
SELECT "key_1" AS "key_1",
       1 AS "measure_1_records"
FROM "safe";

-- safe_contributions_marked
SELECT "key_1" AS "key_1",
       "measure_1_records" AS "measure_1_records",
       0 AS "selected"
FROM "safe_contributions";

-- missing_keys
SELECT "key_1" AS "key_1",
       0 AS "measure_1_records",
       1 AS "selected"
FROM "selected_keys";

-- with_missing_keys
SELECT "key_1", "measure_1_records", "selected"
FROM "keyed_marked"
UNION ALL
SELECT "key_1", "measure_1_records", "selected"
FROM "safe_contributions_marked"
UNION ALL
SELECT "key_1", "measure_1_records", "selected"
FROM "missing_keys";

-- aggregates
SELECT "key_1",
       sum("measure_1_records") AS "measure_1_records",
       max("selected") AS "selected"
FROM "with_missing_keys"
GROUP BY "key_1";

-- exact
SELECT "key_1" AS "key_1",
       CAST("measure_1_records" AS BIGINT) AS "measure_1_records"
FROM "aggregates"
WHERE "selected" = 1;
