# 16384 random writes to a file, then fsync.
set $dir=/tmp
set $count=1
set $filesize=1g
set $iosize=8k
set $iters=16384
set $nthreads=1
set mode quit firstdone

define file name=bigfile,path=$dir,size=$filesize,prealloc

define process name=micro
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop write name=write-random,filename=bigfile,random,iosize=$iosize,iters=$iters
    flowop fsync name=sync-file
    flowop finishoncount name=finish,value=$count,target=sync-file
  }
}
run
