# One thread reads a file from the front to its end, again and again.
set $dir=/tmp
set $filesize=5g
set $iosize=1m
set $nthreads=1
set $runtime=60

define file name=largefile1,path=$dir,size=$filesize,prealloc

define process name=sequential
{
  thread name=stream1,memsize=10m,instances=$nthreads
  {
    flowop read name=read-1,filename=largefile1,iosize=$iosize
  }
}
run $runtime
