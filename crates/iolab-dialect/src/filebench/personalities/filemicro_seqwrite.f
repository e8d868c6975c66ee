# A file is written in order: 1024 appends, then fsync.
set $dir=/tmp
set $count=1024
set $iosize=1m
set $nthreads=1
set mode quit firstdone

define fileset name=bigfiles,path=$dir,size=0,entries=$nthreads,dirwidth=1024,prealloc=100

define process name=micro
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop appendfile name=append-file,filename=bigfiles,iosize=$iosize,iters=$count
    flowop fsync name=sync-file
    flowop finishoncount name=finish,value=1,target=sync-file
  }
}
run
