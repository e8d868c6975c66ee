# One thread writes a file that grows, past the page cache.
set $dir=/tmp
set $filesize=1m
set $iosize=1m
set $nthreads=1
set $runtime=60

define file name=largefile1,path=$dir,size=$filesize,prealloc

define process name=sequential
{
  thread name=stream1,memsize=10m,instances=$nthreads
  {
    flowop write name=write-1,filename=largefile1,iosize=$iosize,directio
  }
}
run $runtime
