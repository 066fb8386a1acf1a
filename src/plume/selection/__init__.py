"""Which keys may be shown: the paper's DP_RETAIN_KEY."""
