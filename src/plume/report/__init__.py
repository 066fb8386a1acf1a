"""Releases as pages to look at. Its modules are imported when a page is made, so that nobody else waits for templates."""
