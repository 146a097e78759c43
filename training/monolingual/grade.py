import sys,pickle,random,torch,torch.nn.functional as F
from net import Net,batch_of
from data_tok import start
lang,ckpt,out=sys.argv[1:4]; torch.set_num_threads(1); torch.manual_seed(1)
net=Net(start(lang).weights); net.load_state_dict(torch.load(ckpt),strict=False); net.eval()
def feats(e):
    e=sorted(e,key=lambda x:len(x[0])); X=[]; 
    def hook(m,i,o): X.append(i[0].detach())
    h=net.grade.register_forward_hook(hook)
    for i in range(0,len(e),32):
        with torch.no_grad(): net(*batch_of(e[i:i+32]))
    h.remove(); return torch.cat(X),torch.tensor([x[2] for x in e])
D=pickle.load(open(f'kept/{lang}.own.pickle','rb')); X,y=feats(D['train']['servings']); XD,yD=feats(D['dev']['servings'])
net.train(); ps=[*net.grade.parameters(),*net.rank.parameters()]; opt=torch.optim.AdamW(ps,lr=1e-3,weight_decay=.05)
for s in range(900):
    for g in opt.param_groups: g['lr']=1e-3*(1-s/900)
    i=torch.randint(len(X),(128,)); l=F.cross_entropy(net.rank(net.drop(F.gelu(net.grade(net.drop(X[i]))))),y[i]); opt.zero_grad(); l.backward(); opt.step()
net.eval()
with torch.no_grad(): p=net.rank(F.gelu(net.grade(XD))).argmax(1)
print(lang,len(X),'dev levels right',(p==yD).float().mean().item(), 'level1 recall',((p==0)&(yD==0)).sum().item()/(yD==0).sum().item(), 'off kept off',((p==2)&(yD==2)).sum().item()/(yD==2).sum().item())
torch.save({k:v for k,v in net.state_dict().items() if k!='word.weight'},out)
