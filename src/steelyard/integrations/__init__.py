"""Steelyard in other tools: one module each, imported only when used."""
