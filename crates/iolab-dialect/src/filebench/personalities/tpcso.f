# Database of many files, as TPC-C lays them out: writes and reads of each in turn.
set $dir=/tmp
set $eventrate=0
set $iosize=2k
set $nshadows=200
set $ndbwriters=10
set $usermode=20000
set $memperthread=1m
set $runtime=60
eventgen rate=$eventrate

define file name=aux.df,path=$dir,size=251m,prealloc,paralloc
define file name=control_001,path=$dir,size=2m,prealloc,paralloc
define file name=cust_0_0,path=$dir,size=6704m,prealloc,paralloc
define file name=cust_0_1,path=$dir,size=6704m,prealloc,paralloc
define file name=cust_0_2,path=$dir,size=6704m,prealloc,paralloc
define file name=cust_0_3,path=$dir,size=6704m,prealloc,paralloc
define file name=dist_0_0,path=$dir,size=31m,prealloc,paralloc
define file name=hist_0_0,path=$dir,size=3002m,prealloc,paralloc
define file name=icust1_0_0,path=$dir,size=4943m,prealloc,paralloc
define file name=icust2_0_0,path=$dir,size=4943m,prealloc,paralloc
define file name=idist_0_0,path=$dir,size=11m,prealloc,paralloc
define file name=iitem_0_0,path=$dir,size=11m,prealloc,paralloc
define file name=iordr2_0_0,path=$dir,size=1651m,prealloc,paralloc
define file name=istok_0_0,path=$dir,size=2262m,prealloc,paralloc
define file name=item_0_0,path=$dir,size=21m,prealloc,paralloc
define file name=iware_0_0,path=$dir,size=11m,prealloc,paralloc
define file name=nord_0_0,path=$dir,size=561m,prealloc,paralloc
define file name=ordr_0_0,path=$dir,size=44301m,prealloc,paralloc
define file name=roll1,path=$dir,size=2001m,prealloc,paralloc
define file name=sp_0,path=$dir,size=1001m,prealloc,paralloc
define file name=stok_0_0,path=$dir,size=8052m,prealloc,paralloc
define file name=stok_0_1,path=$dir,size=8052m,prealloc,paralloc
define file name=stok_0_2,path=$dir,size=8052m,prealloc,paralloc
define file name=stok_0_3,path=$dir,size=8052m,prealloc,paralloc
define file name=stok_0_4,path=$dir,size=8052m,prealloc,paralloc
define file name=system_1,path=$dir,size=401m,prealloc,paralloc
define file name=temp_0_0,path=$dir,size=4943m,prealloc,paralloc
define file name=temp_0_1,path=$dir,size=4943m,prealloc,paralloc
define file name=ware_0_0,path=$dir,size=11m,prealloc,paralloc
define file name=log_1_1,path=$dir,size=1021m,prealloc,paralloc

define process name=dbwriter,instances=$ndbwriters
{
  thread name=dbwriter,memsize=$memperthread
  {
    flowop aiowrite name=write-aux.df,filename=aux.df,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-control_001,filename=control_001,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-cust_0_0,filename=cust_0_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-cust_0_1,filename=cust_0_1,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-cust_0_2,filename=cust_0_2,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-cust_0_3,filename=cust_0_3,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-dist_0_0,filename=dist_0_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-hist_0_0,filename=hist_0_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-icust1_0_0,filename=icust1_0_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-icust2_0_0,filename=icust2_0_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-idist_0_0,filename=idist_0_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-iitem_0_0,filename=iitem_0_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-iordr2_0_0,filename=iordr2_0_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-istok_0_0,filename=istok_0_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-item_0_0,filename=item_0_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-iware_0_0,filename=iware_0_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-nord_0_0,filename=nord_0_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-ordr_0_0,filename=ordr_0_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-roll1,filename=roll1,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-sp_0,filename=sp_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-stok_0_0,filename=stok_0_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-stok_0_1,filename=stok_0_1,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-stok_0_2,filename=stok_0_2,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-stok_0_3,filename=stok_0_3,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-stok_0_4,filename=stok_0_4,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-system_1,filename=system_1,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-temp_0_0,filename=temp_0_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-temp_0_1,filename=temp_0_1,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop aiowrite name=write-ware_0_0,filename=ware_0_0,iosize=$iosize,workingset=10g,random,dsync,directio,iters=10
    flowop hog name=db-hog,value=10000
    flowop semblock name=db-block,value=100,highwater=10000
    flowop aiowait name=db-aiowait
  }
}
define process name=logwriter
{
  thread name=logwriter,memsize=$memperthread
  {
    flowop write name=log-write,filename=log_1_1,iosize=256k,workingset=1g,random,dsync,directio
    flowop semblock name=log-block,value=320,highwater=1000
  }
}
define process name=shadow,instances=$nshadows
{
  thread name=shadow,memsize=$memperthread
  {
    flowop read name=read-aux.df,filename=aux.df,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-control_001,filename=control_001,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-cust_0_0,filename=cust_0_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-cust_0_1,filename=cust_0_1,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-cust_0_2,filename=cust_0_2,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-cust_0_3,filename=cust_0_3,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-dist_0_0,filename=dist_0_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-hist_0_0,filename=hist_0_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-icust1_0_0,filename=icust1_0_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-icust2_0_0,filename=icust2_0_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-idist_0_0,filename=idist_0_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-iitem_0_0,filename=iitem_0_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-iordr2_0_0,filename=iordr2_0_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-istok_0_0,filename=istok_0_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-item_0_0,filename=item_0_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-iware_0_0,filename=iware_0_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-nord_0_0,filename=nord_0_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-ordr_0_0,filename=ordr_0_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-roll1,filename=roll1,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-sp_0,filename=sp_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-stok_0_0,filename=stok_0_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-stok_0_1,filename=stok_0_1,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-stok_0_2,filename=stok_0_2,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-stok_0_3,filename=stok_0_3,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-stok_0_4,filename=stok_0_4,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-system_1,filename=system_1,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-temp_0_0,filename=temp_0_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-temp_0_1,filename=temp_0_1,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-ware_0_0,filename=ware_0_0,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop read name=read-log_1_1,filename=log_1_1,iosize=$iosize,workingset=10g,random,dsync,directio
    flowop hog name=shadow-hog,value=$usermode
    flowop sempost name=shadow-post-log,value=1,target=log-block,blocking
    flowop sempost name=shadow-post-db,value=1,target=db-block,blocking
    flowop eventlimit name=shadow-rate
  }
}
run $runtime
