# Random writes to a file, each durable, 65536 of them.
set $dir=/tmp
set $count=65536
set $filesize=1g
set $iosize=2k
set $nthreads=1
set mode quit firstdone

define file name=bigfile,path=$dir,size=$filesize,prealloc

define process name=micro
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop write name=write-random,filename=bigfile,random,dsync,iosize=$iosize
    flowop finishoncount name=finish,value=$count
  }
}
run
