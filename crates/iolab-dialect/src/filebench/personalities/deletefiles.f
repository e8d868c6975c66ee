# Files are removed until none is left.
set $dir=/tmp
set $nfiles=50000
set $meandirwidth=100
set $filesize=16k
set $iosize=1m
set $nthreads=16
set mode quit firstdone
define fileset name=many,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=100,paralloc

define process name=worker
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop deletefile name=delete-one,filesetname=many
  }
}
run
