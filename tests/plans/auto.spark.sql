-- rows
SELECT `user_id` AS `user_id`,
       `recipe` AS `key_1`,
       `country` AS `key_2`,
       `seconds` AS `value_1`
FROM `input`
WHERE ((NOT (`user_id` IS NULL)) AND (NOT (`recipe` IS NULL)) AND (NOT (`country` IS NULL)) AND (`seconds` >= 0 AND `country` <> 'XX'));

-- by_user_combined, kept
SELECT `user_id`, `key_1`, `key_2`,
       count(*) AS `measure_1_raw_records`,
       sum(CASE WHEN CAST(`value_1` AS DOUBLE) BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308 THEN CAST(floor(greatest(least(CAST(`value_1` AS DOUBLE), 1.40737488355328000e+14), -1.40737488355328000e+14) * 3.27680000000000000e+04 + 0.5e0) AS DECIMAL(28, 0)) END) AS `measure_3_raw_total`
FROM (SELECT /*+ REPARTITION(`user_id`) */ * FROM `rows`)
GROUP BY `user_id`, `key_1`, `key_2`;

-- by_user, kept
SELECT `user_id`, `key_1`, `key_2`, `measure_1_raw_records`, `measure_3_raw_total`, CASE WHEN keys_counted > 0 THEN keys_counted END AS `keys_of_user`
FROM (SELECT *, count(*) OVER (PARTITION BY `user_id`) AS keys_counted FROM `by_user_combined`);

-- bounded_uncut
SELECT `user_id` AS `user_id`,
       `key_1` AS `key_1`,
       `key_2` AS `key_2`,
       `measure_1_raw_records` AS `measure_1_raw_records`,
       `measure_3_raw_total` AS `measure_3_raw_total`,
       `keys_of_user` AS `keys_of_user`
FROM `by_user`
WHERE ((`keys_of_user` IS NULL) OR `keys_of_user` <= 64);

-- bounded_above_limit
SELECT `user_id` AS `user_id`,
       `key_1` AS `key_1`,
       `key_2` AS `key_2`,
       `measure_1_raw_records` AS `measure_1_raw_records`,
       `measure_3_raw_total` AS `measure_3_raw_total`,
       `keys_of_user` AS `keys_of_user`,
       left(md5(concat('{salt}', CAST(length(CAST(`user_id` AS STRING)) AS STRING), ':', CAST(`user_id` AS STRING), CAST(length(CAST(`key_1` AS STRING)) AS STRING), ':', CAST(`key_1` AS STRING), CAST(`key_2` AS STRING))), 12) AS `key_order`
FROM `by_user`
WHERE `keys_of_user` > 64;

-- bounded_few
SELECT `user_id`, `key_1`, `key_2`, `measure_1_raw_records`, `measure_3_raw_total`, `keys_of_user`, `key_order`
FROM (SELECT *, row_number() OVER (PARTITION BY `user_id` ORDER BY `key_order`, `key_1`, `key_2`) AS key_rank
      FROM `bounded_above_limit`)
WHERE key_rank <= 64;

-- bounded_cut
SELECT `user_id` AS `user_id`,
       `key_1` AS `key_1`,
       `key_2` AS `key_2`,
       `measure_1_raw_records` AS `measure_1_raw_records`,
       `measure_3_raw_total` AS `measure_3_raw_total`,
       `keys_of_user` AS `keys_of_user`
FROM `bounded_few`;

-- bounded
SELECT `user_id`, `key_1`, `key_2`, `measure_1_raw_records`, `measure_3_raw_total`, `keys_of_user`
FROM `bounded_uncut`
UNION ALL
SELECT `user_id`, `key_1`, `key_2`, `measure_1_raw_records`, `measure_3_raw_total`, `keys_of_user`
FROM `bounded_cut`;

-- weights
SELECT `key_1` AS `key_1`,
       `key_2` AS `key_2`,
       CAST(floor(1.04857600000000000e+06 / sqrt(CAST(CASE WHEN `keys_of_user` IS NULL THEN 0 ELSE CAST(greatest(least(`keys_of_user`, 64), 1) AS BIGINT) END AS DOUBLE))) AS BIGINT) AS `weight`
FROM `bounded`;

-- keyed
SELECT `key_1`, `key_2`,
       sum(`weight`) AS `weight`
FROM `weights`
GROUP BY `key_1`, `key_2`;

-- keyed_weights
SELECT `key_1` AS `key_1`,
       `key_2` AS `key_2`,
       CAST(`weight` AS BIGINT) AS `weight`
FROM `keyed`;

-- selected_rows, kept
SELECT /*+ BROADCAST(`selected_keys`) */ `user_id`, `key_1`, `key_2`, `measure_1_raw_records`, `measure_3_raw_total`
FROM `by_user_combined` LEFT SEMI JOIN `selected_keys` USING (`key_1`, `key_2`);

-- users
SELECT `user_id`,
       count(*) AS `keys`,
       CAST(sum((least(abs(CAST(coalesce(CASE WHEN `measure_1_raw_records` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_1_raw_records`, 3), 0) AS BIGINT) END, 0) AS BIGINT)), 3) * 1024 div 3 + least(abs(CAST(coalesce(1, 0) AS BIGINT)), 1) * 1024 div 1 + least(abs(CAST(coalesce(CASE WHEN `measure_3_raw_total` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_3_raw_total`, 1966080), 0) AS BIGINT) END, 0) AS BIGINT)), 1966080) * 1024 div 1966080) div 3) AS BIGINT) AS `fullness`
FROM `selected_rows`
GROUP BY `user_id`;

-- keys_per_user_placed
SELECT CAST(CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) BETWEEN 1.00000000000000000e+00 AND 1.63850000000000000e+04 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 1.83000000000000000e+02 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 2.10000000000000000e+01 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 8.00000000000000000e+00 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 5.00000000000000000e+00 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 3.00000000000000000e+00 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 2.00000000000000000e+00 THEN 0 ELSE 1 END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 4.00000000000000000e+00 THEN 2 ELSE 3 END END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 7.00000000000000000e+00 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 6.00000000000000000e+00 THEN 4 ELSE 5 END ELSE 6 END END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 1.30000000000000000e+01 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 1.10000000000000000e+01 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 9.00000000000000000e+00 THEN 7 ELSE 8 END ELSE 9 END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 1.70000000000000000e+01 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 1.50000000000000000e+01 THEN 10 ELSE 11 END ELSE 12 END END END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 6.50000000000000000e+01 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 4.00000000000000000e+01 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 2.80000000000000000e+01 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 2.40000000000000000e+01 THEN 13 ELSE 14 END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 3.30000000000000000e+01 THEN 15 ELSE 16 END END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 5.50000000000000000e+01 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 4.70000000000000000e+01 THEN 17 ELSE 18 END ELSE 19 END END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 1.09000000000000000e+02 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 9.20000000000000000e+01 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 7.80000000000000000e+01 THEN 20 ELSE 21 END ELSE 22 END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 1.54000000000000000e+02 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 1.29000000000000000e+02 THEN 23 ELSE 24 END ELSE 25 END END END END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 1.72400000000000000e+03 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 6.10000000000000000e+02 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 3.64000000000000000e+02 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 2.57000000000000000e+02 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 2.17000000000000000e+02 THEN 26 ELSE 27 END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 3.06000000000000000e+02 THEN 28 ELSE 29 END END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 5.13000000000000000e+02 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 4.32000000000000000e+02 THEN 30 ELSE 31 END ELSE 32 END END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 1.02500000000000000e+03 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 8.63000000000000000e+02 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 7.26000000000000000e+02 THEN 33 ELSE 34 END ELSE 35 END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 1.45000000000000000e+03 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 1.21900000000000000e+03 THEN 36 ELSE 37 END ELSE 38 END END END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 5.79400000000000000e+03 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 3.44600000000000000e+03 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 2.43700000000000000e+03 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 2.04900000000000000e+03 THEN 39 ELSE 40 END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 2.89800000000000000e+03 THEN 41 ELSE 42 END END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 4.87200000000000000e+03 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 4.09700000000000000e+03 THEN 43 ELSE 44 END ELSE 45 END END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 9.74300000000000000e+03 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 8.19300000000000000e+03 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 6.89000000000000000e+03 THEN 46 ELSE 47 END ELSE 48 END ELSE CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 1.37790000000000000e+04 THEN CASE WHEN CAST(CASE WHEN `keys` IS NULL THEN 0 ELSE CAST(greatest(least(`keys`, 16384), 0) AS BIGINT) END AS DOUBLE) < 1.15870000000000000e+04 THEN 49 ELSE 50 END ELSE 51 END END END END END END AS BIGINT) AS `bucket`,
       1 AS `users`,
       CASE WHEN CASE WHEN `keys` > 1 THEN `fullness` div `keys` ELSE `fullness` END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN `keys` > 1 THEN `fullness` div `keys` ELSE `fullness` END, 1024), 0) AS BIGINT) END AS `fullness`,
       0 AS `listed`
FROM `users`;

-- keys_per_user_listed
SELECT `bucket` AS `bucket`,
       0 AS `users`,
       0 AS `fullness`,
       1 AS `listed`
FROM `keys_per_user_buckets`;

-- keys_per_user_with_buckets
SELECT `bucket`, `users`, `fullness`, `listed`
FROM `keys_per_user_placed`
UNION ALL
SELECT `bucket`, `users`, `fullness`, `listed`
FROM `keys_per_user_listed`;

-- keys_per_user_histogram
SELECT `bucket`,
       sum(`users`) AS `users`,
       sum(`fullness`) AS `fullness`,
       max(`listed`) AS `listed`
FROM `keys_per_user_with_buckets`
GROUP BY `bucket`;

-- keys_per_user_exact
SELECT `bucket` AS `bucket`,
       CAST(`users` AS BIGINT) AS `users`,
       CAST(`fullness` AS BIGINT) AS `fullness`
FROM `keys_per_user_histogram`
WHERE `listed` = 1;

-- by_user_again, kept
SELECT `user_id`, `key_1`, `key_2`, `measure_1_raw_records`, `measure_3_raw_total`, CASE WHEN keys_counted > 64 THEN keys_counted END AS `keys_of_user`
FROM (SELECT *, count(*) OVER (PARTITION BY `user_id`) AS keys_counted FROM `selected_rows`);

-- uncut
SELECT `user_id` AS `user_id`,
       `key_1` AS `key_1`,
       `key_2` AS `key_2`,
       `measure_1_raw_records` AS `measure_1_raw_records`,
       `measure_3_raw_total` AS `measure_3_raw_total`,
       `keys_of_user` AS `keys_of_user`
FROM `by_user_again`
WHERE ((`keys_of_user` IS NULL) OR `keys_of_user` <= 64);

-- uncut_contributions
SELECT `key_1` AS `key_1`,
       `key_2` AS `key_2`,
       (CASE WHEN `measure_1_raw_records` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_1_raw_records`, 3), 0) AS BIGINT) END * 524288) AS `measure_1_records`,
       (1 * 1048576) AS `measure_2_users`,
       CASE WHEN `measure_3_raw_total` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_3_raw_total`, 1966080), 0) AS BIGINT) END AS `measure_3_total`
FROM `uncut`;

-- uncut_contributions_marked
SELECT `key_1` AS `key_1`,
       `key_2` AS `key_2`,
       `measure_1_records` AS `measure_1_records`,
       `measure_2_users` AS `measure_2_users`,
       `measure_3_total` AS `measure_3_total`,
       0 AS `selected`
FROM `uncut_contributions`;

-- above_limit
SELECT `user_id` AS `user_id`,
       `key_1` AS `key_1`,
       `key_2` AS `key_2`,
       `measure_1_raw_records` AS `measure_1_raw_records`,
       `measure_3_raw_total` AS `measure_3_raw_total`,
       `keys_of_user` AS `keys_of_user`,
       left(md5(concat('{salt}', CAST(length(CAST(`user_id` AS STRING)) AS STRING), ':', CAST(`user_id` AS STRING), CAST(length(CAST(`key_1` AS STRING)) AS STRING), ':', CAST(`key_1` AS STRING), CAST(`key_2` AS STRING))), 12) AS `key_order`
FROM `by_user_again`
WHERE `keys_of_user` > 64;

-- clipped
SELECT `user_id`, `key_1`, `key_2`, `measure_1_raw_records`, `measure_3_raw_total`, `keys_of_user`, `key_order`,
       CASE WHEN size_1 <= 576 THEN 1073741824 ELSE CAST(floor(1073741824e0 * sqrt(CAST(576 AS DOUBLE) / CAST(size_1 AS DOUBLE))) AS BIGINT) - 1 END AS `factor_1`,
       CASE WHEN size_2 <= 64 THEN 1073741824 ELSE CAST(floor(1073741824e0 * sqrt(CAST(64 AS DOUBLE) / CAST(size_2 AS DOUBLE))) AS BIGINT) - 1 END AS `factor_2`,
       CASE WHEN size_3 <= 247390116249600 THEN 1073741824 ELSE CAST(floor(1073741824e0 * sqrt(CAST(247390116249600 AS DOUBLE) / CAST(size_3 AS DOUBLE))) AS BIGINT) - 1 END AS `factor_3`
FROM (SELECT *,
             sum(CAST(CASE WHEN `measure_1_raw_records` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_1_raw_records`, 3), 0) AS BIGINT) END * CASE WHEN `measure_1_raw_records` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_1_raw_records`, 3), 0) AS BIGINT) END AS DECIMAL(28, 0))) OVER (PARTITION BY `user_id`) AS size_1,
             sum(CAST(1 * 1 AS DECIMAL(28, 0))) OVER (PARTITION BY `user_id`) AS size_2,
             sum(CAST(CASE WHEN `measure_3_raw_total` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_3_raw_total`, 1966080), 0) AS BIGINT) END * CASE WHEN `measure_3_raw_total` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_3_raw_total`, 1966080), 0) AS BIGINT) END AS DECIMAL(28, 0))) OVER (PARTITION BY `user_id`) AS size_3
      FROM `above_limit`);

-- safe_contributions
SELECT `key_1` AS `key_1`,
       `key_2` AS `key_2`,
       (CASE WHEN `measure_1_raw_records` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_1_raw_records`, 3), 0) AS BIGINT) END * 524288) * `factor_1` div 1073741824 AS `measure_1_records`,
       (1 * 1048576) * `factor_2` div 1073741824 AS `measure_2_users`,
       CASE WHEN `measure_3_raw_total` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_3_raw_total`, 1966080), 0) AS BIGINT) END * `factor_3` div 1073741824 AS `measure_3_total`
FROM `clipped`;

-- safe_contributions_marked
SELECT `key_1` AS `key_1`,
       `key_2` AS `key_2`,
       `measure_1_records` AS `measure_1_records`,
       `measure_2_users` AS `measure_2_users`,
       `measure_3_total` AS `measure_3_total`,
       0 AS `selected`
FROM `safe_contributions`;

-- missing_keys
SELECT `key_1` AS `key_1`,
       `key_2` AS `key_2`,
       0 AS `measure_1_records`,
       0 AS `measure_2_users`,
       0 AS `measure_3_total`,
       1 AS `selected`
FROM `selected_keys`;

-- with_missing_keys
SELECT `key_1`, `key_2`, `measure_1_records`, `measure_2_users`, `measure_3_total`, `selected`
FROM `uncut_contributions_marked`
UNION ALL
SELECT `key_1`, `key_2`, `measure_1_records`, `measure_2_users`, `measure_3_total`, `selected`
FROM `safe_contributions_marked`
UNION ALL
SELECT `key_1`, `key_2`, `measure_1_records`, `measure_2_users`, `measure_3_total`, `selected`
FROM `missing_keys`;

-- aggregates
SELECT `key_1`, `key_2`,
       sum(`measure_1_records`) AS `measure_1_records`,
       sum(`measure_2_users`) AS `measure_2_users`,
       sum(`measure_3_total`) AS `measure_3_total`,
       max(`selected`) AS `selected`
FROM `with_missing_keys`
GROUP BY `key_1`, `key_2`;

-- exact
SELECT `key_1` AS `key_1`,
       `key_2` AS `key_2`,
       CAST(`measure_1_records` AS BIGINT) AS `measure_1_records`,
       CAST(`measure_2_users` AS BIGINT) AS `measure_2_users`,
       CAST(`measure_3_total` AS BIGINT) AS `measure_3_total`
FROM `aggregates`
WHERE `selected` = 1;
