"""The card of a judge (card.py), and its pages: sections.py words it, page.py and html.py lay it out."""
