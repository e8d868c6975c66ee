# Attributes of files are read.
set $dir=/tmp
set $nfiles=10000
set $meandirwidth=20
set $filesize=128k
set $iosize=1m
set $nthreads=20
set $runtime=60
define fileset name=many,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc

define process name=worker
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop statfile name=stat-one,filesetname=many
  }
}
run $runtime
