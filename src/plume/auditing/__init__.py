"""Releases put to the test on made-up neighbours: an audit finds bugs, and its silence proves nothing."""
