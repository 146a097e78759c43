import json,numpy as np
out=json.load(open('weigh2.json'))
def bal(f,w): return (f[w].mean()+ (~f[~w]).mean())/2 if w.any() and (~w).any() else float('nan')
lines={}
for L in('en','zh'):
    R=[o for o in out if o[0]==L]; X=np.array([o[2] for o in R]); y=np.array([o[3] for o in R]); S=np.array([o[1] for o in R]); ag=np.array([o[4] for o in R])
    w=np.zeros(len(R))
    for s in set(S):
        for b in(True,False):
            m=(S==s)&(y==b); 
            if m.any(): w[m]=1/m.sum()
    w/=w.sum(); A=np.hstack([X,np.ones((len(X),1))]); t=np.zeros(A.shape[1]); rg=.002*np.eye(A.shape[1]); rg[-1,-1]=0
    for _ in range(30):
        p=1/(1+np.exp(-A@t)); g=A.T@(w*(p-y))+rg@t; H=(A.T*(w*p*(1-p)))@A+rg; t-=np.linalg.solve(H,g)
    p=1/(1+np.exp(-A@t)); cuts=np.linspace(.2,.8,61); b=[np.mean([bal(p[S==s]>=c,y[S==s]) for s in set(S)]) for c in cuts]; c=cuts[int(np.nanargmax(b))]
    print(L,'weights',t.round(3),'cut',c)
    for s in sorted(set(S)): print('  ',s,(S==s).sum(),'balanced',round(bal(p[S==s]>=c,y[S==s]),3),'net alone',round(bal(X[S==s,0]>=0,y[S==s]),3))
    k=[i for i,o in enumerate(R) if not y[i] and (o[5] in('contradicted','neutral') or o[1] in('written','factcheckgpt','kvpi'))]
    con=np.array([R[i][5]=='contradicted' for i in k]); b2=[bal(ag[k]>=q,con) for q in cuts]; q=cuts[int(np.nanargmax(b2))]
    print('  contradicted vs neutral',max(b2),q)
    lines[L]=dict(weights=[round(float(x),4) for x in t[:-1]],bias=round(float(t[-1]),4),supported=round(float(c),2),contradicted=round(float(q),2))
json.dump(lines,open('lines.json','w'),indent=1); print(lines)
