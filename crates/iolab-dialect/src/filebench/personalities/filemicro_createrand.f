# A file grows by random appends, with fsync after ten, to 1 GiB.
set $dir=/tmp
set $bytes=1g
set $iosize=1m
set $iters=10
set $nthreads=1
set mode quit firstdone

define file name=largefile,path=$dir,size=0,prealloc

define process name=micro
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop appendfilerand name=append-file,filename=largefile,iosize=$iosize,iters=$iters
    flowop fsync name=sync-file
    flowop finishonbytes name=finish,value=$bytes
  }
}
run
