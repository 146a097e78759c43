"""People beside judges: what they label, and how far a judge agrees with them."""
