"""A leaderboard as a static site: entries are checked, ranked and written as pages and as JSON."""
