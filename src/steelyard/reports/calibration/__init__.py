"""A calibration: what it says (model.py), and its page (page.py)."""
