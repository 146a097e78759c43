import torch, torch.nn as nn, torch.nn.functional as F
HEADS=12; FROZEN={'en':1,'zh':0}; THOUGHT=128
class Layer(nn.Module):
    def __init__(s,H,W):
        super().__init__(); s.look,s.take=nn.Linear(H,3*H),nn.Linear(H,H); s.widen,s.narrow=nn.Linear(H,W),nn.Linear(W,H)
        s.seen,s.told=nn.LayerNorm(H,eps=1e-12),nn.LayerNorm(H,eps=1e-12); s.drop=nn.Dropout(.1)
    def forward(s,x,m):
        B,L,H=x.shape; d=H//HEADS
        q,k,v=s.look(x).view(B,L,3,HEADS,d).permute(2,0,3,1,4)
        a=((q*(d**-.5))@k.transpose(-1,-2)+m).softmax(-1)@v
        x=s.seen(x+s.drop(s.take(a.transpose(1,2).reshape(B,L,H))))
        return s.told(x+s.drop(s.narrow(F.gelu(s.widen(x)))))
class Net(nn.Module):
    def __init__(s,w):
        super().__init__(); V,H=w['word.weight'].shape
        s.word=nn.Embedding(V,H); s.place=nn.Embedding(len(w['place.weight']),H); s.kind=nn.Embedding(len(w['kind.weight']),H); s.bare=nn.LayerNorm(H,eps=1e-12)
        s.layers=nn.ModuleList(Layer(H,len(w['layers.0.widen.weight'])) for _ in range(sum(n.endswith('.look.weight') for n in w)))
        s.think,s.say=nn.Linear(3*H,THOUGHT),nn.Linear(THOUGHT,3); s.grade,s.rank=nn.Linear(3*H,THOUGHT),nn.Linear(THOUGHT,3); s.drop=nn.Dropout(.1)
        miss=s.load_state_dict(w,strict=False); s.word.weight.requires_grad_(False)
    def freeze(s,k):
        if k:
            for p in (s.place,s.kind,s.bare,*s.layers[:k]): p.requires_grad_(False)
    def forward(s,ids,roles):
        m=torch.zeros(roles.shape,dtype=torch.float32).masked_fill(roles==0,-1e9)[:,None,None,:]
        x=s.drop(s.bare(s.word(ids)+s.place.weight[:ids.shape[1]]+s.kind((roles==3).long())))
        for l in s.layers: x=l(x,m)
        c=(roles==2).unsqueeze(-1).float(); p=(roles==3).unsqueeze(-1).float()
        cm=(x*c).sum(1)/c.sum(1).clamp(min=1); pm=(x*p).sum(1)/p.sum(1).clamp(min=1)
        cx=(x-1e4*(1-c)).amax(1)
        lab=s.say(s.drop(F.gelu(s.think(s.drop(torch.cat([x[:,0],cm,cx],-1))))))
        lev=s.rank(s.drop(F.gelu(s.grade(s.drop(torch.cat([x[:,0],cm,pm],-1))))))
        return lab,lev
def batch_of(b):
    L=max(len(e[0]) for e in b); ids=torch.zeros((len(b),L),dtype=torch.long); r=torch.zeros_like(ids)
    for i,e in enumerate(b): ids[i,:len(e[0])]=torch.tensor(e[0]); r[i,:len(e[0])]=torch.tensor(e[1])
    return ids,r
