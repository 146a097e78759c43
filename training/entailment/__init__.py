"""One reader for both languages, in the making: entailment pairs, our own texts and the sets teach the lower layers of
multilingual-e5-small to read passages and a claim together. Nothing of it is shipped yet (README.md)."""
