"""How far a judge agrees with people: any judge, over public labelled sets and planted errors. See README.md."""
