# A file grows by 1024 appends of 1 MiB.
set $dir=/tmp
set $count=1024
set $iosize=1m
set $nthreads=1
set mode quit firstdone

define file name=largefile,path=$dir,size=0,prealloc

define process name=micro
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop appendfile name=append-file,filename=largefile,iosize=$iosize
    flowop finishoncount name=finish,value=$count
  }
}
run
