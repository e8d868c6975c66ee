# 1024 appends, then fsync, until there were 128 of these.
set $dir=/tmp
set $count=128
set $iosize=8k
set $iters=1024
set $nthreads=1
set mode quit firstdone

define fileset name=bigfiles,path=$dir,size=0,entries=$nthreads,dirwidth=1024,prealloc=100

define process name=micro
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop appendfile name=append-file,filename=bigfiles,iosize=$iosize,iters=$iters
    flowop fsync name=sync-file
    flowop finishoncount name=finish,value=$count,target=sync-file
  }
}
run
