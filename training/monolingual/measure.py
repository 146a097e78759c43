import json,random,sys,inspect
sys.path.insert(0,'.')
from pathlib import Path
from training.sets import DATA
from training.entailment.rows import task_rows
from steelyard.judges.embedded import support, network
from steelyard.judges.embedded.support import Claim, Reading
from steelyard.judges.embedded.reasons import Voice
from steelyard.text import language_of, sentences
import numpy as np
D=Path('../shared/data'); most=int(sys.argv[1])
by={}
for r in task_rows('dev',D):
    if r.label in('unclear','no_claim'): continue
    l='en' if language_of(r.claim)=='en' else 'zh'
    by.setdefault((l,r.set),[]).append(r)
rows=[(k,r) for k,v in by.items() if len(v)>20 for r in random.Random(11).sample(v,min(len(v),most))]
out=[]
for (l,s),r in rows:
    ctx=r.context if s=='answers' else next((x for x in sentences(r.context) if r.claim in x),'') if s=='uhgeval' else ''
    rd=Reading(r.passages,Voice('en'))
    e=rd.evidence([Claim(r.claim,ctx)])[0]
    o=e.odds; out.append((l,s,e.features(),r.label=='supported',o.contradicted/max(1e-6,o.contradicted+o.neutral),r.label))
json.dump(out,open('weigh2.json','w')); print(len(out))
