import numpy as np, torch
from steelyard.judges.embedded.transformer import Packed
for lang,f in (('en','english'),('zh','chinese')):
    z=np.load(f'./src/steelyard/judges/embedded/weights/{f}.npz'); d={}
    t=lambda a: torch.tensor(np.asarray(a,dtype=np.float32))
    d['place.weight']=t(z['place']); d['kind.weight']=t(z['kind'])
    for k in z.files:
        if k.endswith('_halves') and k!='word_halves':
            own=k[:-7]; w=t(Packed(z[k],z[own+'_scales']).lines()); name=own if own in('think','say') else 'layers.'+own.replace('_','.',1)
            b=t(z[own+'_offset'])
            if own=='say': w,b=w[[0,2,1]],b[[0,2,1]]
            d[name+'.weight'],d[name+'.bias']=w,b
        elif k.endswith('_scale'):
            own=k[:-6]; name='bare' if own=='bare' else 'layers.'+own.replace('_','.',1)
            d[name+'.weight'],d[name+'.bias']=t(z[k]),t(z[own+'_shift'])
    torch.save(d,f'kept/{lang}.init.pt'); print(lang,len(d),sorted(d)[:6])
