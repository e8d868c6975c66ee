# Random reads of a file until 128 MiB were read.
set $dir=/tmp
set $bytes=128m
set $filesize=1g
set $iosize=2k
set $nthreads=1
set mode quit firstdone

define file name=bigfile,path=$dir,size=$filesize,prealloc

define process name=micro
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop read name=read-random,filename=bigfile,random,iosize=$iosize
    flowop finishonbytes name=finish,value=$bytes
  }
}
run
