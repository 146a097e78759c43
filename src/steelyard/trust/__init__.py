"""Audits of judges, comparisons of runs, gates and experiments."""
