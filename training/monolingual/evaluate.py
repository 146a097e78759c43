import sys,pickle,random,torch
from net import Net,batch_of
from data_tok import start
lang,ckpt=sys.argv[1:3]; most=int(sys.argv[3]) if len(sys.argv)>3 else 300; torch.set_num_threads(1)
net=Net(start(lang).weights); net.load_state_dict(torch.load(ckpt),strict=False); net.eval()
for w in('nli','own'):
    for n,e in pickle.load(open(f'kept/{lang}.{w}.pickle','rb'))['dev'].items():
        e=random.Random(3).sample(e,min(most,len(e))); e.sort(key=lambda x:len(x[0])); ok=[];sup=[]
        for i in range(0,len(e),16):
            b=e[i:i+16]
            with torch.no_grad(): lab,lev=net(*batch_of(b))
            out=(lev if b[0][3]=='servings' else lab).argmax(1).tolist()
            for x,o in zip(b,out): ok.append(o==x[2] or (x[2]<0 and o!=0)); sup.append((x[2]==0,o==0))
        P=[o for y,o in sup if y]; N=[not o for y,o in sup if not y]
        print(f'{lang} {n} {len(e)} right {sum(ok)/len(ok):.3f} balanced(supported) {(sum(P)/max(1,len(P))+sum(N)/max(1,len(N)))/2:.3f}',flush=True)
