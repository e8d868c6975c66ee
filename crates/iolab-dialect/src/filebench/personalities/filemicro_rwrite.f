# Random writes to a file until 128 MiB were written.
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
    flowop write name=write-random,filename=bigfile,random,iosize=$iosize
    flowop finishonbytes name=finish,value=$bytes
  }
}
run
