# A file is read in order, once.
set $dir=/tmp
set $filesize=1g
set $iosize=1m
set $nthreads=1
set mode quit firstdone

define file name=bigfile,path=$dir,size=$filesize,prealloc

define process name=micro
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop read name=read-file,filename=bigfile,iosize=$iosize
    flowop finishonbytes name=finish,value=$filesize
  }
}
run
