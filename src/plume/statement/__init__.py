"""BigQuery's differential-privacy SQL, read into a query and the relation below it."""
