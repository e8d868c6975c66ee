# Directories of a deep tree are listed.
set $dir=/tmp
set $nfiles=50000
set $meandirwidth=5
set $filesize=0
set $iosize=1m
set $nthreads=16
set $runtime=60
define fileset name=many,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc

define process name=worker
{
  thread name=worker,memsize=1m,instances=$nthreads
  {
    flowop listdir name=list-one,filesetname=many
  }
}
run $runtime
