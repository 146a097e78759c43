import sys, pickle, torch, numpy as np, tempfile, os
from collections import Counter
from pathlib import Path
from torch import nn
from torch.nn.functional import gelu, softmax
from net import Net, HEADS, batch_of
from data_tok import start, tokenizer
from onnxruntime import InferenceSession, SessionOptions
from onnxruntime.quantization import QuantType, quantize_dynamic
lang,ckpt,out=sys.argv[1],sys.argv[2],Path(sys.argv[3]); out.mkdir(exist_ok=True)
torch.set_num_threads(1)
st=start(lang); net=Net(st.weights); net.load_state_dict(torch.load(ckpt),strict=False); net.eval()
parts={}
for w in('nli','own'):
    f=f'kept/{lang}.{w}.pickle'
    if os.path.exists(f):
        for p,x in pickle.load(open(f,'rb')).items():
            for n,e in x.items(): parts[f'{p} {n}']=e
seen=Counter(t for e in parts.values() for x in e for t in x[0])
V=st.vocabulary
def basic(p):
    b=p.removeprefix('##'); return len(b)==1 and (b.isascii() or '\u2000'<=b<='\u9fff' or '\uff00'<=b<='\uffef')
keep=[i for i,p in enumerate(V) if p in('[PAD]','[UNK]','[CLS]','[SEP]') or seen[i]>=2 or basic(p) or (i<20000 and p.removeprefix('##').isascii() and not p.startswith('['))]
keep.sort(key=lambda i:(V[i]!='[PAD]',i))
class Packed(nn.Module):
    def __init__(s):
        super().__init__(); v=net.word.weight.detach()[keep]; sc=v.abs().amax(1,keepdim=True).clamp(min=1e-8)/127
        s.register_buffer('w',(v/sc).round().to(torch.int8)); s.register_buffer('sc',sc.squeeze(1)); s.net=net
    def forward(s,pieces,roles):
        n=s.net; m=(roles==0)[:,None,None,:].float()*-10000.
        x=s.w[pieces].float()*s.sc[pieces].unsqueeze(2)
        x=n.bare(x+n.place.weight[:pieces.shape[1]]+n.kind.weight[(roles==3).long()])
        for l in n.layers:
            B,L,H=x.shape; d=H//HEADS
            q,k,v=l.look(x).view(B,L,3,HEADS,d).permute(2,0,3,1,4)
            a=(softmax(q@k.transpose(-1,-2)*d**-.5+m,dim=-1)@v).transpose(1,2).reshape(B,L,H)
            x=l.seen(x+l.take(a)); x=l.told(x+l.narrow(gelu(l.widen(x))))
        c=(roles==2).unsqueeze(-1).float(); p=(roles==3).unsqueeze(-1).float()
        cm=(x*c).sum(1)/c.sum(1).clamp(min=1); pm=(x*p).sum(1)/p.sum(1).clamp(min=1); cx=(x-1e4*(1-c)).amax(1); z=x[:,0]
        return softmax(n.say(gelu(n.think(torch.cat([z,cm,cx],-1)))),1), softmax(n.rank(gelu(n.grade(torch.cat([z,cm,pm],-1)))),1)
with tempfile.TemporaryDirectory() as d, torch.no_grad():
    f=f'{d}/p.onnx'; ids=torch.randint(5,1000,(2,16)); r=torch.tensor([[1]+[2]*5+[1]+[3]*9]*2)
    torch.onnx.export(Packed().eval(),(ids,r),f,input_names=['pieces','roles'],output_names=['label','level'],dynamic_axes={'pieces':{0:'rows',1:'length'},'roles':{0:'rows',1:'length'},'label':{0:'rows'},'level':{0:'rows'}},opset_version=17,dynamo=False)
    part=out/f'.{lang}.onnx'
    quantize_dynamic(f,part,op_types_to_quantize=['MatMul'],per_channel=True,reduce_range=True,weight_type=QuantType.QInt8)
    os.replace(part,out/f'{lang}.onnx')
tok=tokenizer([V[i] for i in keep]); tok.save(str(out/f'{lang}.json'),pretty=False)
print(lang,len(keep),'pieces',(out/f'{lang}.onnx').stat().st_size/2**20,'MB')
o=SessionOptions(); o.intra_op_num_threads=1; s=InferenceSession(str(out/f'{lang}.onnx'),o)
place={p:i for i,p in enumerate(keep)}
for n,e in parts.items():
    if not n.startswith('dev') or 'servings' in n: continue
    same=diff=tot=0
    for x in e[:25]:
        ids,r=batch_of([x])
        with torch.no_grad(): a=net(ids,r)[0].softmax(1).numpy()[0]
        b=s.run(['label'],{'pieces':np.vectorize(lambda t:place.get(t,place[V.index('[UNK]')]))(ids.numpy()),'roles':r.numpy()})[0][0]
        same+=a.argmax()==b.argmax(); diff+=abs(a-b).mean(); tot+=1
    print(n,'same',same/tot,'diff',round(float(diff)/tot,4))
