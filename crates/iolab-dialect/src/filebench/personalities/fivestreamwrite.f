# Five threads write a file each.
set $dir=/tmp
set $filesize=1g
set $iosize=1m
set $nthreads=1
set $runtime=60

define file name=largefile1,path=$dir,size=$filesize,prealloc
define file name=largefile2,path=$dir,size=$filesize,prealloc
define file name=largefile3,path=$dir,size=$filesize,prealloc
define file name=largefile4,path=$dir,size=$filesize,prealloc
define file name=largefile5,path=$dir,size=$filesize,prealloc

define process name=sequential
{
  thread name=stream1,memsize=10m,instances=$nthreads
  {
    flowop write name=write-1,filename=largefile1,iosize=$iosize
  }
  thread name=stream2,memsize=10m,instances=$nthreads
  {
    flowop write name=write-2,filename=largefile2,iosize=$iosize
  }
  thread name=stream3,memsize=10m,instances=$nthreads
  {
    flowop write name=write-3,filename=largefile3,iosize=$iosize
  }
  thread name=stream4,memsize=10m,instances=$nthreads
  {
    flowop write name=write-4,filename=largefile4,iosize=$iosize
  }
  thread name=stream5,memsize=10m,instances=$nthreads
  {
    flowop write name=write-5,filename=largefile5,iosize=$iosize
  }
}
run $runtime
