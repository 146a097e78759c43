"""Where Steelyard meets other tools; each module is loaded only when it is used."""
