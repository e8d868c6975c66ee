# Files are opened and closed.
set $dir=/tmp
set $nfiles=50000
set $meandirwidth=100
set $filesize=0
set $iosize=1m
set $nthreads=16
set $runtime=60
define fileset name=many,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc

define process name=worker
{
  thread name=worker,memsize=1m,instances=$nthreads
  {
    flowop openfile name=open-one,filesetname=many,fd=1
    flowop closefile name=close-one,fd=1
  }
}
run $runtime
