"""How far a result can be trusted: audits of judges, comparisons of runs, gates."""
