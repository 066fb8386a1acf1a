-- rows
SELECT `user_id` AS `user_id`,
       `recipe` AS `key_1`,
       `seconds` AS `value_1`,
       `day` AS `value_2`,
       `east` AS `value_3`,
       `north` AS `value_4`,
       `country` AS `value_5`
FROM `input`
WHERE ((NOT (`user_id` IS NULL)) AND (NOT (`recipe` IS NULL)));

-- by_user_combined
SELECT `user_id`, `key_1`,
       count(CASE WHEN CAST(`value_1` AS DOUBLE) BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308 THEN CAST(`value_1` AS DOUBLE) END) AS `measure_1_raw_values`,
       CAST(sum(CASE WHEN CAST(`value_1` AS DOUBLE) BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308 THEN CAST(floor(greatest(least((CAST(`value_1` AS DOUBLE) - 3.00000000000000000e+01), 3.00000000000000000e+01), -3.00000000000000000e+01) * 3.27680000000000000e+04 + 0.5e0) AS BIGINT) END) AS BIGINT) AS `measure_1_raw_total`,
       CAST(sum(CAST(floor((CAST(CASE WHEN CAST(`value_1` AS DOUBLE) BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308 THEN CAST(floor(greatest(least((CAST(`value_1` AS DOUBLE) - 3.00000000000000000e+01), 3.00000000000000000e+01), -3.00000000000000000e+01) * 3.27680000000000000e+04 + 0.5e0) AS BIGINT) END AS DOUBLE) * CAST(CASE WHEN CAST(`value_1` AS DOUBLE) BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308 THEN CAST(floor(greatest(least((CAST(`value_1` AS DOUBLE) - 3.00000000000000000e+01), 3.00000000000000000e+01), -3.00000000000000000e+01) * 3.27680000000000000e+04 + 0.5e0) AS BIGINT) END AS DOUBLE) - 4.83183820800000000e+11) * 1.90734863281250000e-06 + 0.5e0) AS BIGINT)) AS BIGINT) AS `measure_1_raw_squares`,
       count(CASE WHEN CAST(unix_micros(TRY_CAST(`value_2` AS TIMESTAMP)) AS DOUBLE) BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308 THEN CAST(unix_micros(TRY_CAST(`value_2` AS TIMESTAMP)) AS DOUBLE) END) AS `measure_2_raw_values`,
       collect_list(CASE WHEN CAST(unix_micros(TRY_CAST(`value_2` AS TIMESTAMP)) AS DOUBLE) BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308 THEN CAST(least(floor((greatest(least(CAST(unix_micros(TRY_CAST(`value_2` AS TIMESTAMP)) AS DOUBLE), 1.79867520000000000e+15), 1.76722560000000000e+15) - 1.76722560000000000e+15) * 1.30240130240130239e-10), 4.09500000000000000e+03) AS INT) END) AS `measure_2_raw_leaves`,
       count(CASE WHEN `value_5` = 'DE' THEN CASE WHEN CAST(`value_1` AS DOUBLE) BETWEEN 0.00000000000000000e+00 AND 6.00000000000000000e+01 THEN CASE WHEN CAST(`value_1` AS DOUBLE) < 2.00000000000000000e+01 THEN CASE WHEN CAST(`value_1` AS DOUBLE) < 1.00000000000000000e+01 THEN 0 ELSE 1 END ELSE 2 END END END) AS `measure_3_raw_values`,
       collect_list(CASE WHEN `value_5` = 'DE' THEN CASE WHEN CAST(`value_1` AS DOUBLE) BETWEEN 0.00000000000000000e+00 AND 6.00000000000000000e+01 THEN CASE WHEN CAST(`value_1` AS DOUBLE) < 2.00000000000000000e+01 THEN CASE WHEN CAST(`value_1` AS DOUBLE) < 1.00000000000000000e+01 THEN 0 ELSE 1 END ELSE 2 END END END) AS `measure_3_raw_leaves`,
       sum(CASE WHEN CAST(`value_3` AS DOUBLE) BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308 THEN CAST(floor(greatest(least(CAST(`value_3` AS DOUBLE), 8.79609302220800000e+12), -8.79609302220800000e+12) * 5.24288000000000000e+05 + 0.5e0) AS DECIMAL(28, 0)) END) AS `measure_4_raw_total_1`,
       sum(CASE WHEN CAST(`value_4` AS DOUBLE) BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308 THEN CAST(floor(greatest(least(CAST(`value_4` AS DOUBLE), 8.79609302220800000e+12), -8.79609302220800000e+12) * 5.24288000000000000e+05 + 0.5e0) AS DECIMAL(28, 0)) END) AS `measure_4_raw_total_2`
FROM (SELECT /*+ REPARTITION(`user_id`) */ * FROM `rows`)
GROUP BY `user_id`, `key_1`;

-- by_user, kept
SELECT `user_id`, `key_1`, `measure_1_raw_values`, `measure_1_raw_total`, `measure_1_raw_squares`, `measure_2_raw_values`, `measure_2_raw_leaves`, `measure_3_raw_values`, `measure_3_raw_leaves`, `measure_4_raw_total_1`, `measure_4_raw_total_2`, CASE WHEN keys_counted > 0 THEN keys_counted END AS `keys_of_user`, `left_of_account`
FROM (SELECT *, count(*) OVER (PARTITION BY `user_id`) AS keys_counted, 1073741824 - CAST(least(floor(least(CAST(sum(CAST(CASE WHEN `measure_1_raw_values` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_1_raw_values`, 3), 0) AS BIGINT) END * CASE WHEN `measure_1_raw_values` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_1_raw_values`, 3), 0) AS BIGINT) END AS DECIMAL(28, 0))) OVER (PARTITION BY `user_id`) AS DOUBLE) * 3.49525351047955221e+05, 201326603e0)) + 2e0, 201326603e0) AS BIGINT) - CAST(least(floor(least(CAST(sum(CAST(CASE WHEN `measure_2_raw_values` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_2_raw_values`, 1), 0) AS BIGINT) END * CASE WHEN `measure_2_raw_values` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_2_raw_values`, 1), 0) AS BIGINT) END AS DECIMAL(28, 0))) OVER (PARTITION BY `user_id`) AS DOUBLE) * 3.14572815943159722e+06, 201326603e0)) + 2e0, 201326603e0) AS BIGINT) - CAST(least(floor(least(CAST(sum(CAST(CASE WHEN `measure_3_raw_values` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_3_raw_values`, 3), 0) AS BIGINT) END * CASE WHEN `measure_3_raw_values` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_3_raw_values`, 3), 0) AS BIGINT) END AS DECIMAL(28, 0))) OVER (PARTITION BY `user_id`) AS DOUBLE) * 3.49525351047955162e+05, 201326603e0)) + 2e0, 201326603e0) AS BIGINT) - CAST(least(floor(least(CAST(sum(CAST(CASE WHEN CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_1` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_1` div 1073741824 END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_1` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_1` div 1073741824 END, 1572864), -1572864) AS BIGINT) END * CASE WHEN CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_1` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_1` div 1073741824 END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_1` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_1` div 1073741824 END, 1572864), -1572864) AS BIGINT) END AS DECIMAL(28, 0)) + CAST(CASE WHEN CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_2` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_2` div 1073741824 END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_2` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_2` div 1073741824 END, 1572864), -1572864) AS BIGINT) END * CASE WHEN CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_2` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_2` div 1073741824 END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_2` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_2` div 1073741824 END, 1572864), -1572864) AS BIGINT) END AS DECIMAL(28, 0))) OVER (PARTITION BY `user_id`) AS DOUBLE) * 1.27156581965375212e-06, 201326603e0)) + 2e0, 201326603e0) AS BIGINT) AS `left_of_account` FROM `by_user_combined`);

-- uncut_again
SELECT `user_id` AS `user_id`,
       `key_1` AS `key_1`,
       `measure_1_raw_values` AS `measure_1_raw_values`,
       `measure_1_raw_total` AS `measure_1_raw_total`,
       `measure_1_raw_squares` AS `measure_1_raw_squares`,
       `measure_2_raw_values` AS `measure_2_raw_values`,
       `measure_2_raw_leaves` AS `measure_2_raw_leaves`,
       `measure_3_raw_values` AS `measure_3_raw_values`,
       `measure_3_raw_leaves` AS `measure_3_raw_leaves`,
       `measure_4_raw_total_1` AS `measure_4_raw_total_1`,
       `measure_4_raw_total_2` AS `measure_4_raw_total_2`
FROM `by_user`
WHERE ((`keys_of_user` IS NULL) OR `keys_of_user` <= 64);

-- uncut
SELECT `user_id` AS `user_id`,
       `key_1` AS `key_1`,
       `measure_1_raw_values` AS `measure_1_raw_values`,
       `measure_1_raw_total` AS `measure_1_raw_total`,
       `measure_1_raw_squares` AS `measure_1_raw_squares`,
       `measure_2_raw_values` AS `measure_2_raw_values`,
       `measure_2_raw_leaves` AS `measure_2_raw_leaves`,
       `measure_3_raw_values` AS `measure_3_raw_values`,
       `measure_3_raw_leaves` AS `measure_3_raw_leaves`,
       `measure_4_raw_total_1` AS `measure_4_raw_total_1`,
       `measure_4_raw_total_2` AS `measure_4_raw_total_2`,
       `keys_of_user` AS `keys_of_user`,
       `left_of_account` AS `left_of_account`
FROM `by_user`
WHERE ((`keys_of_user` IS NULL) OR `keys_of_user` <= 64);

-- uncut_weights
SELECT `key_1` AS `key_1`,
       CAST(floor(sqrt(CAST((coalesce(`left_of_account`, 0) * 1024) div greatest(CASE WHEN `keys_of_user` IS NULL THEN 0 ELSE CAST(greatest(least(`keys_of_user`, 64), 1) AS BIGINT) END, 1) AS DOUBLE))) AS BIGINT) AS `weight`
FROM `uncut`;

-- above_limit, kept
SELECT `user_id` AS `user_id`,
       `key_1` AS `key_1`,
       `measure_1_raw_values` AS `measure_1_raw_values`,
       `measure_1_raw_total` AS `measure_1_raw_total`,
       `measure_1_raw_squares` AS `measure_1_raw_squares`,
       `measure_2_raw_values` AS `measure_2_raw_values`,
       `measure_2_raw_leaves` AS `measure_2_raw_leaves`,
       `measure_3_raw_values` AS `measure_3_raw_values`,
       `measure_3_raw_leaves` AS `measure_3_raw_leaves`,
       `measure_4_raw_total_1` AS `measure_4_raw_total_1`,
       `measure_4_raw_total_2` AS `measure_4_raw_total_2`,
       `keys_of_user` AS `keys_of_user`,
       `left_of_account` AS `left_of_account`,
       left(md5(concat('{salt}', CAST(length(CAST(`user_id` AS STRING)) AS STRING), ':', CAST(`user_id` AS STRING), CAST(`key_1` AS STRING))), 12) AS `key_order`
FROM `by_user`
WHERE `keys_of_user` > 64;

-- bounded
SELECT `user_id`, `key_1`, `measure_1_raw_values`, `measure_1_raw_total`, `measure_1_raw_squares`, `measure_2_raw_values`, `measure_2_raw_leaves`, `measure_3_raw_values`, `measure_3_raw_leaves`, `measure_4_raw_total_1`, `measure_4_raw_total_2`, `keys_of_user`, `left_of_account`, `key_order`
FROM (SELECT *, row_number() OVER (PARTITION BY `user_id` ORDER BY `key_order`, `key_1`) AS key_rank
      FROM `above_limit`)
WHERE key_rank <= 64;

-- bounded_weights
SELECT `key_1` AS `key_1`,
       CAST(floor(sqrt(CAST((coalesce(`left_of_account`, 0) * 1024) div greatest(CASE WHEN `keys_of_user` IS NULL THEN 0 ELSE CAST(greatest(least(`keys_of_user`, 64), 1) AS BIGINT) END, 1) AS DOUBLE))) AS BIGINT) AS `weight`
FROM `bounded`;

-- weights
SELECT `key_1`, `weight`
FROM `uncut_weights`
UNION ALL
SELECT `key_1`, `weight`
FROM `bounded_weights`;

-- keyed
SELECT `key_1`,
       sum(`weight`) AS `weight`
FROM `weights`
GROUP BY `key_1`;

-- keyed_weights
SELECT `key_1` AS `key_1`,
       CAST(`weight` AS BIGINT) AS `weight`
FROM `keyed`;

-- uncut_selected
SELECT /*+ BROADCAST(`selected_keys`) */ `user_id`, `key_1`, `measure_1_raw_values`, `measure_1_raw_total`, `measure_1_raw_squares`, `measure_2_raw_values`, `measure_2_raw_leaves`, `measure_3_raw_values`, `measure_3_raw_leaves`, `measure_4_raw_total_1`, `measure_4_raw_total_2`
FROM `uncut_again` LEFT SEMI JOIN `selected_keys` USING (`key_1`);

-- uncut_contributions
SELECT `key_1` AS `key_1`,
       (CASE WHEN `measure_1_raw_values` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_1_raw_values`, 3), 0) AS BIGINT) END * 524288) AS `measure_1_values`,
       CASE WHEN CASE WHEN `measure_1_raw_values` > 3 THEN CAST(CAST(`measure_1_raw_total` AS DECIMAL(38, 0)) * 3 div `measure_1_raw_values` AS BIGINT) ELSE `measure_1_raw_total` END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN `measure_1_raw_values` > 3 THEN CAST(CAST(`measure_1_raw_total` AS DECIMAL(38, 0)) * 3 div `measure_1_raw_values` AS BIGINT) ELSE `measure_1_raw_total` END, 2949120), -2949120) AS BIGINT) END AS `measure_1_total`,
       CASE WHEN CASE WHEN `measure_1_raw_values` > 3 THEN CAST(CAST(`measure_1_raw_squares` AS DECIMAL(38, 0)) * 3 div `measure_1_raw_values` AS BIGINT) ELSE `measure_1_raw_squares` END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN `measure_1_raw_values` > 3 THEN CAST(CAST(`measure_1_raw_squares` AS DECIMAL(38, 0)) * 3 div `measure_1_raw_values` AS BIGINT) ELSE `measure_1_raw_squares` END, 2764800), -2764800) AS BIGINT) END AS `measure_1_squares`,
       CASE WHEN `measure_2_raw_values` <= 1 THEN transform(`measure_2_raw_leaves`, leaf -> named_struct('leaf', leaf, 'weight', CAST(1048576 AS BIGINT))) ELSE transform(array_distinct(`measure_2_raw_leaves`), leaf -> named_struct('leaf', leaf, 'weight', CAST(CAST(size(filter(`measure_2_raw_leaves`, other -> other = leaf)) AS DECIMAL(38, 0)) * 1048576 div `measure_2_raw_values` AS BIGINT))) END AS `measure_2_leaves`,
       CASE WHEN `measure_3_raw_values` <= 3 THEN transform(`measure_3_raw_leaves`, leaf -> named_struct('leaf', leaf, 'weight', CAST(262144 AS BIGINT))) ELSE transform(array_distinct(`measure_3_raw_leaves`), leaf -> named_struct('leaf', leaf, 'weight', CAST(CAST(size(filter(`measure_3_raw_leaves`, other -> other = leaf)) AS DECIMAL(38, 0)) * 786432 div `measure_3_raw_values` AS BIGINT))) END AS `measure_3_leaves`,
       CASE WHEN CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_1` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_1` div 1073741824 END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_1` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_1` div 1073741824 END, 1572864), -1572864) AS BIGINT) END AS `measure_4_total_1`,
       CASE WHEN CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_2` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_2` div 1073741824 END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_2` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_2` div 1073741824 END, 1572864), -1572864) AS BIGINT) END AS `measure_4_total_2`
FROM `uncut_selected`;

-- uncut_contributions_marked
SELECT `key_1` AS `key_1`,
       `measure_1_values` AS `measure_1_values`,
       `measure_1_total` AS `measure_1_total`,
       `measure_1_squares` AS `measure_1_squares`,
       `measure_2_leaves` AS `measure_2_leaves`,
       `measure_3_leaves` AS `measure_3_leaves`,
       `measure_4_total_1` AS `measure_4_total_1`,
       `measure_4_total_2` AS `measure_4_total_2`,
       0 AS `selected`
FROM `uncut_contributions`;

-- selected_rows
SELECT /*+ BROADCAST(`selected_keys`) */ `user_id`, `key_1`, `measure_1_raw_values`, `measure_1_raw_total`, `measure_1_raw_squares`, `measure_2_raw_values`, `measure_2_raw_leaves`, `measure_3_raw_values`, `measure_3_raw_leaves`, `measure_4_raw_total_1`, `measure_4_raw_total_2`, `keys_of_user`, `left_of_account`, `key_order`
FROM `above_limit` LEFT SEMI JOIN `selected_keys` USING (`key_1`);

-- clipped
SELECT `user_id`, `key_1`, `measure_1_raw_values`, `measure_1_raw_total`, `measure_1_raw_squares`, `measure_2_raw_values`, `measure_2_raw_leaves`, `measure_3_raw_values`, `measure_3_raw_leaves`, `measure_4_raw_total_1`, `measure_4_raw_total_2`, `keys_of_user`, `left_of_account`, `key_order`,
       CASE WHEN size_1 <= 576 THEN 1073741824 ELSE CAST(floor(1073741824e0 * sqrt(CAST(576 AS DOUBLE) / CAST(size_1 AS DOUBLE))) AS BIGINT) - 1 END AS `factor_1`,
       CASE WHEN size_2 <= 64 THEN 1073741824 ELSE CAST(floor(1073741824e0 * sqrt(CAST(64 AS DOUBLE) / CAST(size_2 AS DOUBLE))) AS BIGINT) - 1 END AS `factor_2`,
       CASE WHEN size_3 <= 576 THEN 1073741824 ELSE CAST(floor(1073741824e0 * sqrt(CAST(576 AS DOUBLE) / CAST(size_3 AS DOUBLE))) AS BIGINT) - 1 END AS `factor_3`,
       CASE WHEN size_4 <= 158329674399744 THEN 1073741824 ELSE CAST(floor(1073741824e0 * sqrt(CAST(158329674399744 AS DOUBLE) / CAST(size_4 AS DOUBLE))) AS BIGINT) - 1 END AS `factor_4`
FROM (SELECT *,
             sum(CAST(CASE WHEN `measure_1_raw_values` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_1_raw_values`, 3), 0) AS BIGINT) END * CASE WHEN `measure_1_raw_values` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_1_raw_values`, 3), 0) AS BIGINT) END AS DECIMAL(28, 0))) OVER (PARTITION BY `user_id`) AS size_1,
             sum(CAST(CASE WHEN `measure_2_raw_values` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_2_raw_values`, 1), 0) AS BIGINT) END * CASE WHEN `measure_2_raw_values` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_2_raw_values`, 1), 0) AS BIGINT) END AS DECIMAL(28, 0))) OVER (PARTITION BY `user_id`) AS size_2,
             sum(CAST(CASE WHEN `measure_3_raw_values` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_3_raw_values`, 3), 0) AS BIGINT) END * CASE WHEN `measure_3_raw_values` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_3_raw_values`, 3), 0) AS BIGINT) END AS DECIMAL(28, 0))) OVER (PARTITION BY `user_id`) AS size_3,
             sum(CAST(CASE WHEN CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_1` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_1` div 1073741824 END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_1` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_1` div 1073741824 END, 1572864), -1572864) AS BIGINT) END * CASE WHEN CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_1` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_1` div 1073741824 END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_1` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_1` div 1073741824 END, 1572864), -1572864) AS BIGINT) END AS DECIMAL(28, 0)) + CAST(CASE WHEN CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_2` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_2` div 1073741824 END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_2` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_2` div 1073741824 END, 1572864), -1572864) AS BIGINT) END * CASE WHEN CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_2` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_2` div 1073741824 END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_2` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_2` div 1073741824 END, 1572864), -1572864) AS BIGINT) END AS DECIMAL(28, 0))) OVER (PARTITION BY `user_id`) AS size_4
      FROM `selected_rows`);

-- safe_contributions
SELECT `key_1` AS `key_1`,
       (CASE WHEN `measure_1_raw_values` IS NULL THEN 0 ELSE CAST(greatest(least(`measure_1_raw_values`, 3), 0) AS BIGINT) END * 524288) * `factor_1` div 1073741824 AS `measure_1_values`,
       CASE WHEN CASE WHEN `measure_1_raw_values` > 3 THEN CAST(CAST(`measure_1_raw_total` AS DECIMAL(38, 0)) * 3 div `measure_1_raw_values` AS BIGINT) ELSE `measure_1_raw_total` END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN `measure_1_raw_values` > 3 THEN CAST(CAST(`measure_1_raw_total` AS DECIMAL(38, 0)) * 3 div `measure_1_raw_values` AS BIGINT) ELSE `measure_1_raw_total` END, 2949120), -2949120) AS BIGINT) END * `factor_1` div 1073741824 AS `measure_1_total`,
       CASE WHEN CASE WHEN `measure_1_raw_values` > 3 THEN CAST(CAST(`measure_1_raw_squares` AS DECIMAL(38, 0)) * 3 div `measure_1_raw_values` AS BIGINT) ELSE `measure_1_raw_squares` END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN `measure_1_raw_values` > 3 THEN CAST(CAST(`measure_1_raw_squares` AS DECIMAL(38, 0)) * 3 div `measure_1_raw_values` AS BIGINT) ELSE `measure_1_raw_squares` END, 2764800), -2764800) AS BIGINT) END * `factor_1` div 1073741824 AS `measure_1_squares`,
       transform(transform(array_distinct(`measure_2_raw_leaves`), leaf -> named_struct('leaf', leaf, 'weight', CAST(CAST(size(filter(`measure_2_raw_leaves`, other -> other = leaf)) AS DECIMAL(38, 0)) * 1048576 div greatest(`measure_2_raw_values`, 1) AS BIGINT))), pair -> named_struct('leaf', pair.leaf, 'weight', pair.weight * `factor_2` div 1073741824)) AS `measure_2_leaves`,
       transform(transform(array_distinct(`measure_3_raw_leaves`), leaf -> named_struct('leaf', leaf, 'weight', CAST(CAST(size(filter(`measure_3_raw_leaves`, other -> other = leaf)) AS DECIMAL(38, 0)) * 786432 div greatest(`measure_3_raw_values`, 3) AS BIGINT))), pair -> named_struct('leaf', pair.leaf, 'weight', pair.weight * `factor_3` div 1073741824)) AS `measure_3_leaves`,
       CASE WHEN CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_1` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_1` div 1073741824 END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_1` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_1` div 1073741824 END, 1572864), -1572864) AS BIGINT) END * `factor_4` div 1073741824 AS `measure_4_total_1`,
       CASE WHEN CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_2` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_2` div 1073741824 END IS NULL THEN 0 ELSE CAST(greatest(least(CASE WHEN CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) <= 2.47390116249600000e+12 THEN `measure_4_raw_total_2` ELSE CAST(greatest(floor(1.68884986026393600e+15 / sqrt(CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_1`, 0) AS DOUBLE) + CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE) * CAST(coalesce(`measure_4_raw_total_2`, 0) AS DOUBLE))) - 1e0, 0e0) AS DECIMAL(38, 0)) * `measure_4_raw_total_2` div 1073741824 END, 1572864), -1572864) AS BIGINT) END * `factor_4` div 1073741824 AS `measure_4_total_2`
FROM `clipped`;

-- safe_contributions_marked
SELECT `key_1` AS `key_1`,
       `measure_1_values` AS `measure_1_values`,
       `measure_1_total` AS `measure_1_total`,
       `measure_1_squares` AS `measure_1_squares`,
       `measure_2_leaves` AS `measure_2_leaves`,
       `measure_3_leaves` AS `measure_3_leaves`,
       `measure_4_total_1` AS `measure_4_total_1`,
       `measure_4_total_2` AS `measure_4_total_2`,
       0 AS `selected`
FROM `safe_contributions`;

-- missing_keys
SELECT `key_1` AS `key_1`,
       0 AS `measure_1_values`,
       0 AS `measure_1_total`,
       0 AS `measure_1_squares`,
       CAST(array() AS ARRAY<STRUCT<leaf: INT, weight: BIGINT>>) AS `measure_2_leaves`,
       CAST(array() AS ARRAY<STRUCT<leaf: INT, weight: BIGINT>>) AS `measure_3_leaves`,
       0 AS `measure_4_total_1`,
       0 AS `measure_4_total_2`,
       1 AS `selected`
FROM `selected_keys`;

-- with_missing_keys, kept
SELECT `key_1`, `measure_1_values`, `measure_1_total`, `measure_1_squares`, `measure_2_leaves`, `measure_3_leaves`, `measure_4_total_1`, `measure_4_total_2`, `selected`
FROM `uncut_contributions_marked`
UNION ALL
SELECT `key_1`, `measure_1_values`, `measure_1_total`, `measure_1_squares`, `measure_2_leaves`, `measure_3_leaves`, `measure_4_total_1`, `measure_4_total_2`, `selected`
FROM `safe_contributions_marked`
UNION ALL
SELECT `key_1`, `measure_1_values`, `measure_1_total`, `measure_1_squares`, `measure_2_leaves`, `measure_3_leaves`, `measure_4_total_1`, `measure_4_total_2`, `selected`
FROM `missing_keys`;

-- aggregates
SELECT `key_1`,
       sum(`measure_1_values`) AS `measure_1_values`,
       sum(`measure_1_total`) AS `measure_1_total`,
       sum(`measure_1_squares`) AS `measure_1_squares`,
       collect_list(CASE WHEN tally = 1 THEN named_struct('leaf', leaf, 'weight', CAST(leaf_weight AS BIGINT)) END) AS `measure_2_leaves`,
       collect_list(CASE WHEN tally = 2 THEN named_struct('leaf', leaf, 'weight', CAST(leaf_weight AS BIGINT)) END) AS `measure_3_leaves`,
       sum(`measure_4_total_1`) AS `measure_4_total_1`,
       sum(`measure_4_total_2`) AS `measure_4_total_2`,
       max(`selected`) AS `selected`
FROM (SELECT `key_1`, tally, leaf, sum(leaf_weight) AS leaf_weight, sum(`measure_1_values`) AS `measure_1_values`, sum(`measure_1_total`) AS `measure_1_total`, sum(`measure_1_squares`) AS `measure_1_squares`, sum(`measure_4_total_1`) AS `measure_4_total_1`, sum(`measure_4_total_2`) AS `measure_4_total_2`, max(`selected`) AS `selected`
      FROM (SELECT /*+ REPARTITION(`key_1`) */ *
      FROM (SELECT `key_1`, 0 AS tally, 0 AS leaf, CAST(0 AS BIGINT) AS leaf_weight, `measure_1_values`, `measure_1_total`, `measure_1_squares`, `measure_4_total_1`, `measure_4_total_2`, `selected` FROM `with_missing_keys`
            UNION ALL SELECT `key_1`, 1 AS tally, found.leaf, found.weight, 0 AS `measure_1_values`, 0 AS `measure_1_total`, 0 AS `measure_1_squares`, 0 AS `measure_4_total_1`, 0 AS `measure_4_total_2`, 0 AS `selected` FROM (SELECT `key_1`, explode(`measure_2_leaves`) AS found FROM `with_missing_keys`)
            UNION ALL SELECT `key_1`, 2 AS tally, found.leaf, found.weight, 0 AS `measure_1_values`, 0 AS `measure_1_total`, 0 AS `measure_1_squares`, 0 AS `measure_4_total_1`, 0 AS `measure_4_total_2`, 0 AS `selected` FROM (SELECT `key_1`, explode(`measure_3_leaves`) AS found FROM `with_missing_keys`)))
      GROUP BY `key_1`, tally, leaf)
GROUP BY `key_1`;

-- exact
SELECT `key_1` AS `key_1`,
       CAST(`measure_1_values` AS BIGINT) AS `measure_1_values`,
       CAST(`measure_1_total` AS BIGINT) AS `measure_1_total`,
       CAST(`measure_1_squares` AS BIGINT) AS `measure_1_squares`,
       `measure_2_leaves` AS `measure_2_leaves`,
       `measure_3_leaves` AS `measure_3_leaves`,
       CAST(`measure_4_total_1` AS BIGINT) AS `measure_4_total_1`,
       CAST(`measure_4_total_2` AS BIGINT) AS `measure_4_total_2`
FROM `aggregates`
WHERE `selected` = 1;
