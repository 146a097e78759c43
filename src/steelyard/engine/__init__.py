"""Driving protocols over samples: one replay, the runner, the journal, kept runs, batches and estimates."""
