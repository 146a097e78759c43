"""Human labels: what people label, and how far a judge agrees with them."""
